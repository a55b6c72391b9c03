"""Plays both ends of a recorded session around a relay, and says what was lost, changed or added on the way.

Each end writes a line only when it has read all that stands before it in the recording, so cause and effect keep
their order whatever the relay's timing. `play` is the client's end; it starts the relay, which starts
`replayed_end.py` as the agent's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tests import replayed_end
from tests.replayed_end import Writer, recorded

ROOT = Path(__file__).parent.parent
END = (sys.executable, "-I", "-S", replayed_end.__file__)


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
        agent = [*END, str(recording), str(result), *([] if seed is None else [str(seed)])]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*relay, *agent], cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=stderr
        ) as process:
            late = threading.Timer(seconds, process.kill)
            late.start()
            try:
                source, sink = cast(IO[bytes], process.stdout), cast(IO[bytes], process.stdin)
                client = Heard(*replayed_end.play("c2a", recorded(recording), source, Writer(sink, seed)))
                status = process.wait()
            finally:
                late.cancel()
                process.kill()
        stderr.seek(0)
        heard = (
            Heard(**json.loads(result.read_text())) if result.exists() else Heard(["everything: it never ended"], [])
        )
        return Replay(client, heard, status, stderr.read().decode(errors="replace"))
