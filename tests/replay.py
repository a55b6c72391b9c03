"""Plays both ends of a recorded session around a relay, and says what was lost, changed or added on the way.

Each end writes a line only when it has read all that stands before it in the recording, so cause and effect keep
their order whatever the relay's timing. `play` is the client's end; it starts the relay, which starts this file as
the agent's end: `python -m tests.replay RECORDING RESULT [SEED]`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

Side = Literal["c2a", "a2c"]
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Line:
    sender: Side
    raw: bytes  # with its newline


@dataclass(frozen=True, slots=True)
class Heard:
    """What one end got beside or instead of what the recording says."""

    missing: list[str]
    added: list[str]


@dataclass(frozen=True, slots=True)
class Replay:
    client: Heard
    agent: Heard
    status: int
    stderr: str


def play(
    relay: Sequence[str],
    recording: Path,
    *,
    seed: int | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = 120,
) -> Replay:
    """Replays `recording` through `relay` (its words up to and with `--`).

    With a seed both ends write in chunks of random sizes; without, whole lines.
    """
    with tempfile.TemporaryDirectory(prefix="replay-") as directory, tempfile.TemporaryFile() as stderr:
        result = Path(directory, "agent.json")
        agent = [
            sys.executable,
            "-m",
            "tests.replay",
            str(recording),
            str(result),
            *([] if seed is None else [str(seed)]),
        ]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*relay, *agent], cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=stderr
        ) as process:
            late = threading.Timer(seconds, process.kill)
            late.start()
            try:
                source, sink = cast(IO[bytes], process.stdout), cast(IO[bytes], process.stdin)
                client = _play("c2a", recorded(recording), source, _Writer(sink, seed))
                status = process.wait()
            finally:
                late.cancel()
                process.kill()
        stderr.seek(0)
        heard = (
            Heard(**json.loads(result.read_text())) if result.exists() else Heard(["everything: it never ended"], [])
        )
        return Replay(client, heard, status, stderr.read().decode(errors="replace"))


def recorded(path: Path) -> list[Line]:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Line(record["dir"], record["raw"].encode() + b"\n") for record in records]


def _play(mine: Side, lines: list[Line], source: IO[bytes], sink: _Writer) -> Heard:
    """One end's part: writes what is its own, expects what is the other's, then lets go and reads the rest."""
    added: list[str] = []
    missing: list[str] = []
    for line in lines:
        if line.sender == mine:
            missing += sink.write(line.raw)
            continue
        for got in source:
            if got == line.raw:
                break
            added.append(got.decode(errors="replace"))
        else:
            missing.append(line.raw.decode()[:400])
    if mine == "c2a":
        sink.close()
    added += [got.decode(errors="replace") for got in source]
    return Heard(missing, added)


class _Writer:
    def __init__(self, sink: IO[bytes], seed: int | None) -> None:
        self._sink = sink
        self._random = None if seed is None else random.Random(seed)

    def write(self, data: bytes) -> list[str]:
        """Returns what could not be written."""
        try:
            for chunk in self._chunks(data):
                self._sink.write(chunk)
                self._sink.flush()
        except BrokenPipeError:
            return [f"the reader was gone before {data.decode()[:400]}"]
        return []

    def close(self) -> None:
        try:
            self._sink.close()
        except BrokenPipeError:
            return

    def _chunks(self, data: bytes) -> list[bytes]:
        if self._random is None:
            return [data]
        most = max(200, len(data) // 20)
        chunks = []
        while data:
            size = self._random.randint(1, most)
            chunks.append(data[:size])
            data = data[size:]
        return chunks


def main(recording: str, result: str, seed: str | None = None) -> None:
    sink = _Writer(sys.stdout.buffer, None if seed is None else int(seed) + 1)
    heard = _play("a2c", recorded(Path(recording)), sys.stdin.buffer, sink)
    Path(result).write_text(json.dumps({"missing": heard.missing, "added": heard.added}))


if __name__ == "__main__":
    main(*sys.argv[1:])
