"""One end of a recorded session: writes each of its lines when it has read all that stands before it.

The agent's end is this file as a program, once for every recording that is played: `replayed_end.py RECORDING RESULT
[SEED]`. So it imports only what Python has read anyway to know JSON: `pathlib` and `dataclasses` alone would double
what it takes.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from random import Random
    from typing import IO, Literal

    Side = Literal["c2a", "a2c"]


class Line:
    __slots__ = ("raw", "sender")

    def __init__(self, sender: Side, raw: bytes) -> None:
        self.sender = sender
        self.raw = raw  # with its newline


def recorded(path: Path | str) -> list[Line]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  without pathlib
        records = [json.loads(line) for line in file]
    return [Line(record["dir"], record["raw"].encode() + b"\n") for record in records]


def play(mine: Side, lines: list[Line], source: IO[bytes], sink: Writer) -> tuple[list[str], list[str]]:
    """One end's part: writes what is its own, expects what is the other's, then lets go and reads the rest.

    Returns what was missing, and what was added.
    """
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
    return missing, added


class Writer:
    """With a seed it writes in chunks of random sizes; without, whole lines."""

    def __init__(self, sink: IO[bytes], seed: int | None) -> None:
        self._sink = sink
        self._random = None if seed is None else _random(seed)

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


def _random(seed: int) -> Random:
    from random import Random

    return Random(seed)


def main(recording: str, result: str, seed: str | None = None) -> None:
    sink = Writer(sys.stdout.buffer, None if seed is None else int(seed) + 1)
    missing, added = play("a2c", recorded(recording), sys.stdin.buffer, sink)
    with open(result, "w", encoding="utf-8") as file:  # noqa: PTH123  as well
        json.dump({"missing": missing, "added": added}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
