"""The client's side of a real relay process, and what the tests ask of the system around it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = (sys.executable, "-m", "tests.agents.plain_relay")
PATIENT = (sys.executable, str(Path(__file__).with_name("patient.py")))  # acp-proxy itself
LIMIT = 120.0  # seconds that anything may take on a busy machine


@contextlib.contextmanager
def running(*command: str, stdin: Any = subprocess.PIPE, **options: Any) -> Iterator[Any]:
    """A Popen with unbuffered pipes (Any: its streams are optional), in a session of its own, which ends with it."""
    process = subprocess.Popen(
        command,
        bufsize=0,
        stdin=stdin,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        cwd=options.pop("cwd", ROOT),
        start_new_session=True,
        **options,
    )
    deadline = threading.Timer(LIMIT, _kill, [process.pid])
    deadline.start()
    try:
        yield process
    finally:
        deadline.cancel()
        _kill(process.pid)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def relayed(*agent: str, grace: float | None = None, **options: Any) -> contextlib.AbstractContextManager[Any]:
    """A plain relay around the agent."""
    ours = ("--grace", str(grace)) if grace is not None else ()
    return running(*PLAIN, *ours, "--", *agent, **options)


def python(code: str) -> tuple[str, ...]:
    """An agent in a few lines of Python that prints nothing unasked."""
    return (sys.executable, "-I", "-S", "-u", "-c", code)


def send(stream: IO[bytes], data: bytes) -> None:
    """All of it: an unbuffered stream writes what fits."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def send_and_close(stream: IO[bytes], data: bytes) -> None:
    send(stream, data)
    stream.close()


def line(stream: IO[bytes]) -> bytes:
    return stream.readline()


def pid_from(stream: IO[bytes]) -> int:
    return int(line(stream))


def still_runs(relay: Any, seconds: float) -> None:
    """Waits for so long, in which it must not end."""
    with pytest.raises(subprocess.TimeoutExpired):
        relay.wait(seconds)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def eventually(condition: Callable[[], bool], within: float = LIMIT / 2) -> bool:
    """Whether it came true in time; for what the system tells to nobody, such as the end of a stranger's child."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)  # a processor that is asked without a pause is taken from those that are waited for
    return True


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
