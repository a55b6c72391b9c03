"""An editor's settings file: read, replaced in one step, and put back as it was. Loses nothing, whatever fails.

What a file was like before is kept in the state directory, so that nothing is left beside it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path

from acp_proxy.ledger.places import private_directory

_LARGEST = 16 * 1024 * 1024


class SettingsError(Exception):
    """The file cannot be read or written; the text is one line that names it."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """`path` as the user knows it; a link is followed, and stays."""

    path: Path
    kept_in: Path  # the directory for what files were like

    def read(self) -> bytes | None:
        """None where there is no file. Raises SettingsError."""
        try:
            with self._target.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("cannot be read", error) from error
        if len(data) > _LARGEST:
            raise SettingsError(f"{self.path}: too large for settings")
        return data

    def replace(self, before: bytes | None, after: bytes) -> None:
        """Write `after` where `before` stands, in one step and with the same mode. Raises SettingsError."""
        target = self._target
        mode = self._mode(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        except OSError as error:
            raise self._error("cannot be written", error) from error
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            if self.read() != before:
                raise SettingsError(f"{self.path}: was changed by another program meanwhile, nothing was done")
            Path(name).replace(target)
        except OSError as error:
            raise self._error("cannot be written", error) from error
        finally:
            with suppress(OSError):
                Path(name).unlink()

    def remove(self) -> None:
        """For a file that was not there before. Raises SettingsError."""
        try:
            self._target.unlink(missing_ok=True)
        except OSError as error:
            raise self._error("cannot be removed", error) from error

    def keep(self, original: bytes | None, after: bytes) -> None:
        """Remember what it was like before it became `after`. Raises SettingsError."""
        try:
            private_directory(self.kept_in)
            for path, data in (
                (self._original, b"-" if original is None else b"+" + original),
                (self._after, _sum(after)),
            ):
                path.write_bytes(data)
                path.chmod(0o600)
        except OSError as error:
            raise SettingsError(
                f"{self.kept_in}: cannot be written: {(error.strerror or str(error)).lower()}"
            ) from error

    def kept(self, current: bytes | None) -> tuple[bool, bytes | None]:
        """Whether `current` is what `keep` was told of, and what it was like before, None for not there."""
        try:
            original, after = self._original.read_bytes(), self._after.read_bytes()
        except OSError:
            return False, None
        if current is None or after != _sum(current):
            return False, None
        return True, original[1:] if original[:1] == b"+" else None

    def forget(self) -> None:
        for path in (self._original, self._after):
            with suppress(OSError):
                path.unlink()

    @property
    def _target(self) -> Path:
        try:
            return self.path.resolve()
        except (OSError, RuntimeError) as error:
            raise SettingsError(f"{self.path}: cannot be read: too many links") from error

    @property
    def _original(self) -> Path:
        return self.kept_in / blake2b(os.fsencode(self._target), digest_size=8).hexdigest()

    @property
    def _after(self) -> Path:
        return self._original.with_suffix(".after")

    def _mode(self, target: Path) -> int:
        """Of the file, with nobody allowed to write meaning just that, also where we are root."""
        try:
            mode = stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            return 0o600
        except OSError as error:
            raise self._error("cannot be read", error) from error
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise SettingsError(f"{self.path}: is read-only, nothing was done")
        return mode

    def _error(self, what: str, error: OSError) -> SettingsError:
        return SettingsError(f"{self.path}: {what}: {(error.strerror or str(error)).lower()}")


def _sum(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()
