"""The access token of this machine, renewed by one process at a time.

A refresh token is good once. Two proxies that used the same one would look like a thief to the hub, which then ends
the sign-in: so who renews holds a lock, and who waited for it looks first at what the other has got.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping

from msgspec import structs

from acp_proxy.signin import VARIABLE, SignInError, UnreachableError, token_store
from acp_proxy.signin.asking import RefusedError, hub_url, post
from acp_proxy.signin.token_store import Kept

_EARLY = 60.0  # seconds before its end that a token is renewed
_SECONDS = 30.0  # that a process may take which asks a keyring
_UNREACHABLE = 75  # its exit status: EX_TEMPFAIL


def current(url: str, rejected: str | None, environ: Mapping[str, str]) -> str:
    """As `signin.access_token`."""
    if token := environ.get(VARIABLE):
        if token == rejected:
            raise SignInError(f"{url}: the token in {VARIABLE} is refused")
        return token
    found = _signed_in(url, environ)
    if token := _good(found, rejected):
        return token
    with token_store.locked(found.hub, environ):
        found = _signed_in(found.hub, environ)
        if token := _good(found, rejected):
            return token
        try:
            return _renewed(found, environ)
        except UnreachableError:
            if found.access and found.access != rejected and time.time() < found.ends_at:
                return found.access
            raise


def renew(found: Kept, secret: str, environ: Mapping[str, str]) -> str:
    """With the lock: a new access token, kept with its successor before anybody uses it. Raises SignInError."""
    try:
        answer = post(f"{found.hub}/oauth/token", {"grant_type": "refresh_token", "refresh_token": secret})
    except RefusedError as error:
        if error.error == "invalid_grant":
            token_store.forget(found.hub, environ)
        raise SignInError(f"{found.hub}: {error}: {_again(found.hub)}") from error
    return keep(found, answer, environ)


def keep(found: Kept, answer: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """What a hub has granted. Raises SignInError."""
    access, refresh, seconds = answer.get("access_token"), answer.get("refresh_token"), answer.get("expires_in")
    if not (isinstance(access, str) and isinstance(refresh, str) and isinstance(seconds, int)):
        raise SignInError(f"{found.hub}: answers what is no token")
    user = str(answer.get("user") or found.user)
    if found.secret is None:
        token_store.put_in_keyring(found.hub, refresh)
    secret = None if found.secret is None else refresh
    token_store.write(
        structs.replace(found, user=user, secret=secret, access=access, ends_at=time.time() + seconds), environ
    )
    return access


def _signed_in(url: str, environ: Mapping[str, str]) -> Kept:
    hubs = [hub_url(each.strip()) for each in url.split(",")]
    for hub in hubs:
        if found := token_store.read(hub, environ):
            return found
    raise SignInError(f"{url}: nobody is signed in: {_again(hubs[0])}")


def _good(found: Kept, rejected: str | None) -> str | None:
    if found.personal and found.secret is not None:
        if found.secret == rejected:
            raise SignInError(f"{found.hub}: its token is refused: {_again(found.hub)}")
        return found.secret
    if found.access and found.access != rejected and time.time() < found.ends_at - _EARLY:
        return found.access
    return None


def _renewed(found: Kept, environ: Mapping[str, str]) -> str:
    if found.secret is not None:
        return renew(found, found.secret, environ)
    # In a process of its own: the package takes 80 ms and 10 MB, which no relay is to have for it.
    command = [sys.executable, "-P", "-m", "acp_proxy.signin.keyring_refresh", found.hub]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS, env=dict(environ), text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnreachableError(f"{found.hub}: the keyring does not answer") from error
    if done.returncode:
        kind = UnreachableError if done.returncode == _UNREACHABLE else SignInError
        raise kind((done.stderr.strip().splitlines() or [f"{found.hub}: {_again(found.hub)}"])[-1])
    renewed = token_store.read(found.hub, environ)
    if renewed is None or renewed.access is None:
        raise SignInError(f"{found.hub}: nobody is signed in: {_again(found.hub)}")
    return renewed.access


def _again(hub: str) -> str:
    return f"run acp-proxy login {hub}"
