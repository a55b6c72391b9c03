"""Servers of other projects on loopback: each on a port of its own, ready before it is handed on, ended by its id."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

SECONDS = 60.0  # that anything may take on a busy machine
_PAUSE = 0.05  # between two questions to a server that tells nothing unasked

T = TypeVar("T")


@contextmanager
def started(command: Sequence[str | Path], ready: str, log: Path) -> Iterator[int]:
    """Runs `command` until the end of the block, from when the URL `ready` answers; yields its process id.

    What it writes goes to `log`. Raises AssertionError with the end of that when it does not become ready.
    """
    if not shutil.which(command[0]):
        raise AssertionError(f"{command[0]} is not installed; .ci/run installs what real tests need")
    with log.open("ab") as out, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process:
        try:
            until(lambda: _answers(ready, process, log), f"{command[0]} is ready")
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def until(found: Callable[[], T], what: str | Callable[[], str], within: float = SECONDS) -> T:
    """The first true answer of `found`. Raises AssertionError that `what` did not come in time."""
    deadline = time.monotonic() + within
    while not (answer := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(_PAUSE)
    return answer


def get(url: str, **parameters: str | float | None) -> Any:
    """The JSON that an API answers."""
    given = {name: value for name, value in parameters.items() if value is not None}
    question = f"?{urllib.parse.urlencode(given)}" if given else ""
    with urllib.request.urlopen(url + question, timeout=SECONDS) as answer:  # noqa: S310  loopback
        return json.load(answer)


def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()[-2000:]}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  loopback
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:  # not ready; it is an answer, and wants to be closed
        error.close()
        return False
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
