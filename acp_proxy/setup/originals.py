"""What settings were like before the first setup, for its undo: in the state directory, so that nothing is left beside
them. Private, as settings may hold keys; forgotten with the undo.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path

from msgspec import Struct

from acp_proxy.ledger.places import private_directory
from acp_proxy.setup.settings_file import SettingsError
from acp_proxy.system.errors import reason_of

_NOT_THERE, _THERE = b"-", b"+"


class Original(Struct, frozen=True):
    """The original of one file: its bytes, and checksums of what setup made of them."""

    directory: Path
    target: Path

    def keep(self, original: bytes | None, after: bytes) -> None:
        """Remember what it was like, before it becomes `after`. Raises SettingsError."""
        kept = _NOT_THERE if original is None else _THERE + original
        try:
            private_directory(self.directory)
            sums = self._sums() if self._read(self._bytes) == kept else []
            _write(self._sums_made, b"".join(line + b"\n" for line in [*sums, _sum(after)]))
            _write(self._bytes, kept)
        except OSError as error:
            raise SettingsError(f"{self.directory}: cannot be written: {reason_of(error)}, nothing was done") from error

    def kept(self) -> tuple[bool, bytes | None]:
        """Whether there was a setup that was not undone since, and what it found: None for no file.

        Raises SettingsError.
        """
        kept = self._read(self._bytes)
        return kept is not None, kept[1:] if kept and kept.startswith(_THERE) else None

    def made(self, current: bytes) -> bool:
        """Whether `current` is what setup made of it, unchanged since. Raises SettingsError."""
        return self.kept()[0] and _sum(current) in self._sums()

    def forget(self) -> None:
        for path in (self._bytes, self._sums_made):
            with suppress(OSError):
                path.unlink()

    @property
    def _bytes(self) -> Path:
        return self.directory / blake2b(os.fsencode(self.target), digest_size=8).hexdigest()

    @property
    def _sums_made(self) -> Path:
        return self._bytes.with_suffix(".made")

    def _sums(self) -> list[bytes]:
        return (self._read(self._sums_made) or b"").split()

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:  # as after a setup by root, whose copy only root may read
            raise SettingsError(f"{path}: cannot be read: {reason_of(error)}, nothing was done") from error


def _write(path: Path, data: bytes) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _sum(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()
