"""A terminal in tmux, and Toad, a client that lives in one."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

COLUMNS, ROWS = 100, 34
SECONDS = 60  # until something is to be seen
STILL = 3.0


class Screen:
    """A terminal of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def start(self, command: list[str], environment: dict[str, str], directory: Path) -> None:
        shell = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command])
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(directory), shell)

    def types(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self.shows(f"❯ {text}")
        self._tmux("send-keys", "Enter")

    def shows(self, text: str) -> list[str]:
        """The screen when `text` is on it; TimeoutError when it does not come."""
        deadline = time.monotonic() + SECONDS
        while text not in (screen := self._captured()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {text!r} on the screen:\n{screen}")
            time.sleep(0.2)
        return screen.splitlines()

    def still(self) -> list[str]:
        """The screen when nothing on it has changed for a while."""
        deadline, before = time.monotonic() + SECONDS, ""
        while before != (screen := self._captured()) and time.monotonic() < deadline:
            before = screen
            time.sleep(STILL)
        return screen.splitlines()

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")

    def _captured(self) -> str:
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p").splitlines())

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


@contextlib.contextmanager
def screen(home: Path) -> Iterator[Screen]:
    shown = Screen(home / "tmux")
    try:
        yield shown
    finally:
        shown.close()


def toad() -> str | None:
    """The command of Toad: `$TOAD`, or the one on the path; None when it or tmux is missing."""
    return (os.environ.get("TOAD") or shutil.which("toad")) if shutil.which("tmux") else None
