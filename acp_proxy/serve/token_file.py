"""The token that clients must send: one word in a file of its own, read again when the file has changed.

So a token can be replaced while the server runs. If the file becomes invalid or missing, the last token stays in
force. No message contains the token.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from acp_proxy.system.errors import UsageError, reason_of

_OTHERS = stat.S_IWGRP | stat.S_IRWXO  # a group may read: so a container's secret is handed to its user
_LARGEST = 4096  # bytes

_State = tuple[int, ...] | None  # of a file: whether it is still the one that was read. None where there is none
_ONCE: _State = ()  # of a pipe, which says what it has to say once


class TokenFile:
    """`tell` gets one line about each change that is not taken."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        """Raises UsageError with one line."""
        self._path = path
        self._tell = tell
        self._seen = self._state()  # before it is read: what changes meanwhile is read once more
        self._token = read_token(path)

    def token(self) -> str:
        """As the file has it now; a look at the file costs some 2 µs."""
        state = self._state()
        if state not in (self._seen, _ONCE):
            self._seen = state
            try:
                self._token = read_token(self._path)
            except UsageError as error:
                self._tell(f"{error}; the last token still holds")
        return self._token

    def _state(self) -> _State:
        try:
            status = os.stat(self._path)  # noqa: PTH116  pathlib's takes as long again
        except OSError:
            return None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return _ONCE
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_token(path: Path) -> str:
    """Raises UsageError with one line."""
    try:
        status = path.stat()
        if status.st_mode & _OTHERS and not stat.S_ISDIR(status.st_mode):  # whose mode is to be left alone
            raise UsageError(f"token file {path}: others may read or change it; chmod 600 {path}")
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode().strip()
    except OSError as error:
        raise UsageError(f"token file {path}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"token file {path}: expected UTF-8 text") from error
    if not text:
        raise UsageError(f"token file {path}: it is empty; `openssl rand -hex 32` makes a token")
    if len(text.split()) > 1 or not text.isprintable():
        raise UsageError(f"token file {path}: expected one word")
    return text
