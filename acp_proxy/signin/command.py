"""`acp-proxy login`, `logout` and `whoami`: what they ask and keep, and the text that they answer with."""

from __future__ import annotations

import socket
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_proxy.signin import VARIABLE, SignInError, access_token, token_store
from acp_proxy.signin.asking import discovered, hub_url, post, who_is
from acp_proxy.signin.device import begin, granted
from acp_proxy.signin.token_refresh import keep
from acp_proxy.signin.token_store import Kept
from acp_proxy.system.errors import reason_of

Store = Literal["keyring", "file"]
_LARGEST = 4096  # characters of a token


class Asked(Struct, frozen=True):
    """`token_file` is a file with a token that somebody made, `-` for stdin. `store` is None where all are right."""

    url: str
    token_file: str | None = None
    store: Store | None = None
    browser: bool = True


def login(asked: Asked, environ: Mapping[str, str], tell: Callable[[str], object]) -> str:
    """`tell` says at once what the user has to do. Raises SignInError."""
    hub = hub_url(asked.url)
    addresses = discovered(hub)
    where = asked.store or ("keyring" if token_store.has_keyring() else "file")
    if where == "keyring" and not token_store.has_keyring():
        raise SignInError("this machine has no keyring that keeps anything: pip install keyring, or --store file")
    if asked.token_file is not None:
        token = _token(asked.token_file)
        user = str(who_is(addresses["userinfo_endpoint"], token).get("user"))
        _replace(Kept(hub, user, token, personal=True), addresses, environ)
        return _done(user, hub, "file")
    code = begin(addresses, token_store.machine_id(environ), socket.gethostname())
    tell(f"Open {code.page}\nand let this machine in, if it shows the code {code.code}\n")
    if asked.browser:
        with suppress(webbrowser.Error):
            webbrowser.open(code.page)
    answer = granted(addresses, code, time.sleep, time.monotonic)
    user = str(answer.get("user"))
    _replace(Kept(hub, user, None if where == "keyring" else ""), addresses, environ, answer)
    return _done(user, hub, where)


def logout(url: str | None, environ: Mapping[str, str]) -> str:
    """At one hub, or at all; the machine forgets also if a hub does not answer. Raises SignInError."""
    hubs = [each.hub for each in token_store.all_hubs(environ)] if url is None else [hub_url(url)]
    lines = list[str]()
    for hub in hubs:
        found = token_store.read(hub, environ)
        if found is None:
            raise SignInError(f"{hub}: nobody is signed in")
        with token_store.locked(hub, environ):
            told = _revoked(found)
            token_store.forget(hub, environ)
        lines.append(f"signed out at {hub}{told}\n")
    return "".join(lines) or "nobody is signed in at any hub\n"


def whoami(url: str | None, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """Who is signed in at one hub, or at all, with what each says of them. Raises SignInError."""
    hubs = [each.hub for each in token_store.all_hubs(environ)] if url is None else [hub_url(url)]
    if not hubs:
        by_token = f"; {VARIABLE} is set, name its hub" if environ.get(VARIABLE) else ": run acp-proxy login URL"
        raise SignInError(f"nobody is signed in at any hub{by_token}")
    found: list[dict[str, object]] = []
    for hub in hubs:
        addresses = discovered(hub)
        found.append({"hub": hub, **who_is(addresses["userinfo_endpoint"], access_token(hub, environ=environ))})
    return found


def in_words(found: Mapping[str, object]) -> str:
    from acp_proxy.text.figures import clean

    team = f", team {found['team']}" if found.get("team") else ""
    text = f"{found.get('user')}: {found.get('role')}{team}, {found.get('organisation')}, at {found['hub']}"
    return clean(text)


def _replace(
    new: Kept, addresses: Mapping[str, str], environ: Mapping[str, str], answer: Mapping[str, object] | None = None
) -> None:
    """In place of an earlier sign-in there, which ends. A token that somebody made is theirs to end."""
    with token_store.locked(new.hub, environ):
        old = token_store.read(new.hub, environ)
        if old is not None and not old.personal:
            secret = old.secret or token_store.in_keyring(new.hub)
            if secret:
                with suppress(SignInError):
                    post(addresses["revocation_endpoint"], {"token": secret})
        if answer is None:
            token_store.write(new, environ)
        else:
            keep(new, answer, environ)


def _revoked(found: Kept) -> str:
    if found.personal:
        return "; the token still holds: an administrator can revoke it"
    try:
        secret = found.secret or token_store.in_keyring(found.hub)
        if secret:
            post(f"{found.hub}/oauth/revoke", {"token": secret})
    except SignInError as error:
        return f" on this machine alone: {error}"
    finally:
        if found.secret is None:
            token_store.drop_from_keyring(found.hub)
    return ""


def _token(path: str) -> str:
    try:
        text = sys.stdin.read(_LARGEST) if path == "-" else Path(path).read_text()[:_LARGEST]
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "expected text"
        raise SignInError(f"{path}: {reason}") from error
    if len(text.split()) != 1:
        raise SignInError(f"{path}: expected one token")
    return text.strip()


def _done(user: str, hub: str, where: Store) -> str:
    from acp_proxy.text.figures import clean

    kept_in = "in the keyring" if where == "keyring" else "in a file that only you can read"
    return f"signed in as {clean(user)} at {hub}; the token is kept {kept_in}\n"
