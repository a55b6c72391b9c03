"""Which files an import has read to their end, so that the next one reads only what changed.

It only saves time: without it every call is read again, and its row is there already.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_proxy.system.decoding import msgpack_decoder

State = tuple[int, int, int, int]  # device, inode, size, time of the last change in ns


class _Kept(Struct):
    last: str  # the id of a row that the ledger had then: without it, it is another ledger
    files: dict[bytes, State]


class SeenFiles:
    """Of one ledger, organisation and user. Names of files are kept as digests."""

    def __init__(self, directory: Path, *whose: str) -> None:
        self._path = directory / f"{_digest(chr(0).join(whose)).hex()}.seen"
        self._kept = self._read()

    @property
    def last(self) -> str:
        """A row that must be in the ledger, empty if there was none."""
        return self._kept.last

    def forget(self) -> None:
        self._kept = _Kept("", {})

    def is_unchanged(self, path: Path) -> bool:
        state = state_of(path)
        return state is not None and self._kept.files.get(_digest(str(path))) == state

    def note(self, path: Path, state: State) -> None:
        """Raises nothing; `state` is of before the file was read."""
        self._kept.files[_digest(str(path))] = state

    def save(self, last: str) -> None:
        """Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._path.with_suffix(f".{os.getpid()}.new")
        try:
            new.write_bytes(msgspec.msgpack.encode(_Kept(last or self._kept.last, self._kept.files)))
            new.chmod(0o600)
            new.replace(self._path)
        finally:
            with suppress(OSError):
                new.unlink()

    def _read(self) -> _Kept:
        try:
            return msgpack_decoder(_Kept).decode(self._path.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return _Kept("", {})


def state_of(path: Path) -> State | None:
    """Of a database also what its log has: None for what is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    size, changed = status.st_size, status.st_mtime_ns
    with suppress(OSError):
        log = path.with_name(f"{path.name}-wal").stat()
        size, changed = size + log.st_size, max(changed, log.st_mtime_ns)
    return status.st_dev, status.st_ino, size, changed


def _digest(text: str) -> bytes:
    return hashlib.blake2b(os.fsencode(text), digest_size=12).digest()
