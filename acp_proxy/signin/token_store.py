"""What this machine keeps of a sign-in: a file for each hub that only its owner can read, beside a lock.

With a keyring the file has only the access token of an hour, and the keyring what makes the next ones.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct, structs

from acp_proxy.signin import SignInError
from acp_proxy.system.directories import state_directory
from acp_proxy.system.errors import reason_of

_SERVICE = "acp-proxy"  # by which a keyring knows us


class Kept(Struct, frozen=True):
    """`secret` is the refresh token, or with `personal` a token that somebody made; None: the keyring has it."""

    hub: str
    user: str
    secret: str | None
    personal: bool = False
    access: str | None = None
    ends_at: float = 0.0  # Unix s, by this machine's clock: of the access token

    def __repr__(self) -> str:
        return f"Kept({self.hub!r}, {self.user!r})"


def directory(environ: Mapping[str, str]) -> Path:
    return state_directory(environ) / "hubs"


def read(hub: str, environ: Mapping[str, str]) -> Kept | None:
    """None where nobody has signed in, or the file is not ours any more. Raises SignInError where it cannot be read."""
    path = _file(hub, environ)
    try:
        found = json.loads(path.read_bytes())
        return Kept(**found)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return None  # cut short by a full disk, or of another version: signing in anew mends it
    except OSError as error:
        raise SignInError(f"{path}: {reason_of(error)}") from error


def write(kept: Kept, environ: Mapping[str, str]) -> None:
    """Whole or not at all. Raises SignInError."""
    path = _file(kept.hub, environ)
    new = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(new, "xb", opener=_private) as file:
            file.write(json.dumps(structs.asdict(kept)).encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise SignInError(f"{path}: {reason_of(error)}") from error


def forget(hub: str, environ: Mapping[str, str]) -> None:
    with suppress(FileNotFoundError):
        _file(hub, environ).unlink()


def all_hubs(environ: Mapping[str, str]) -> list[Kept]:
    """In the order of their names."""
    found = list[Kept]()
    for path in sorted(directory(environ).glob("*.json")):
        with suppress(ValueError, TypeError, OSError):
            found.append(Kept(**json.loads(path.read_bytes())))
    return found


def machine_id(environ: Mapping[str, str]) -> str:
    """The same for each sign-in of this user on this machine, and nobody else's. Raises SignInError."""
    path = directory(environ) / "machine"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError), open(path, "x", opener=_private) as file:
            file.write(os.urandom(8).hex())
        return path.read_text().strip()[:64]
    except OSError as error:
        raise SignInError(f"{path}: {reason_of(error)}") from error


@contextmanager
def locked(hub: str, environ: Mapping[str, str]) -> Iterator[None]:
    """One process, and one thread of it, at a time. Raises SignInError."""
    path = _file(hub, environ).with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SignInError(f"{path}: {reason_of(error)}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def in_keyring(hub: str) -> str | None:
    """Raises SignInError."""
    found: str | None = _keyring(lambda keyring: keyring.get_password(_SERVICE, hub))
    return found


def put_in_keyring(hub: str, secret: str) -> None:
    """Raises SignInError."""
    _keyring(lambda keyring: keyring.set_password(_SERVICE, hub, secret))


def drop_from_keyring(hub: str) -> None:
    with suppress(SignInError):
        _keyring(lambda keyring: keyring.delete_password(_SERVICE, hub))


def has_keyring() -> bool:
    """Whether there is one that keeps anything: not where nobody has a desktop."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        return False
    return not isinstance(keyring.get_keyring(), fail.Keyring | null.Keyring)


def _keyring(work: Any) -> Any:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise SignInError("the package keyring is not installed any more: run acp-proxy login again") from error
    try:
        return work(keyring)
    except KeyringError as error:
        raise SignInError(f"the keyring does not open: {error}") from error


def _file(hub: str, environ: Mapping[str, str]) -> Path:
    return directory(environ) / f"{quote(hub, safe='')}.json"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
