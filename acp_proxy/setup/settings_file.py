"""An editor's settings file: read, replaced in one step, and put back as it was. Loses nothing, whatever fails."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_proxy.system.errors import reason_of

_LARGEST = 4 * 1024 * 1024  # read in a few seconds, and no one writes so many settings
# A copy made with `cp -l` must keep the old text, a shared dotfile must get the new one. Only the user knows which one
# it is.
_LINKED = "has another hard link, which would keep the old text; replace one of them by a copy or a symbolic link"


class SettingsError(Exception):
    """The file cannot be read or written; the text is one line that names it."""


class SettingsFile(Struct, frozen=True):
    """`path` as the user knows it; a link is followed, and stays."""

    path: Path

    @property
    def target(self) -> Path:
        """The target of the path. Raises SettingsError."""
        try:
            return self.path.resolve()
        except (OSError, RuntimeError) as error:  # Python before 3.13 has the latter for a loop
            raise SettingsError(f"{self.path}: cannot be read: too many links") from error

    def read(self) -> bytes | None:
        """None where there is no file. Raises SettingsError."""
        try:
            if not stat.S_ISREG(self.target.stat().st_mode):  # a pipe would never end
                raise SettingsError(f"{self.path}: is not a file")
            with self.target.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("cannot be read", error) from error
        if len(data) > _LARGEST:
            raise SettingsError(f"{self.path}: too large for settings, nothing was done")
        return data

    def check(self) -> None:
        """Raises SettingsError if the file must not be replaced: it is read-only, also for root, or has hard links."""
        for path in (self.target, self.target.parent):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._error("cannot be read", error) from error
            if path == self.target and found.st_nlink > 1:
                raise SettingsError(f"{self.path}: {_LINKED}, nothing was done")
            if found.st_mode & 0o222 and os.access(path, os.W_OK):
                continue
            if path == self.target:
                raise SettingsError(f"{self.path}: is read-only, nothing was done")
            raise SettingsError(f"{self.path}: is in a read-only directory, nothing was done")

    def replace(self, before: bytes | None, after: bytes) -> None:
        """Write `after` where `before` stands, in one step, with the same mode and owner. Raises SettingsError."""
        self.check()
        target = self.target
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
            if before is not None:
                _like(Path(name), target.stat())
            self._unchanged(before)
            Path(name).replace(target)
        except OSError as error:
            raise self._error("cannot be written", error) from error
        finally:
            with suppress(OSError):
                Path(name).unlink()

    def remove(self, before: bytes) -> None:
        """For a file that was not there before. Raises SettingsError."""
        self.check()
        self._unchanged(before)
        try:
            self.target.unlink(missing_ok=True)
        except OSError as error:
            raise self._error("cannot be removed", error) from error

    def _unchanged(self, before: bytes | None) -> None:
        if self.read() != before:
            raise SettingsError(f"{self.path}: was changed by another program meanwhile, nothing was done")

    def _error(self, what: str, error: OSError) -> SettingsError:
        return SettingsError(f"{self.path}: {what}: {reason_of(error)}, nothing was done")


def _like(path: Path, original: os.stat_result) -> None:
    """Give it the owner and the mode of the original; a mode that is not ours to give away is what it is for."""
    if (original.st_uid, original.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.chown(path, original.st_uid, original.st_gid)
    path.chmod(stat.S_IMODE(original.st_mode))
