"""Who asks, by what a request shows: an access token, a token that somebody made, or a browser's cookie.

What was found out holds for some seconds in which the store is not asked: so long may what was revoked go on.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from functools import partial

from msgspec import Struct

from acp_proxy.hub.auth.access_tokens import LIFETIME, AccessTokens, NotSignedInError, key_id
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store import Ask, Store
from acp_proxy.hub.store.families import Granted
from acp_proxy.hub.store.secrets import SESSION, TOKEN, digest

FRESH = 5  # seconds
_MOST = 10_000  # tokens that are remembered


class _Found(Struct, frozen=True):
    identity: Identity
    at: int

    def holds(self, now: int) -> bool:
        ends = self.identity.expires_at
        return 0 <= now - self.at < FRESH and (ends is None or now < ends)


class Authenticator:
    """Of one hub: asks the store through `ask`, in the loop of whoever calls."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._found: dict[str, _Found] = {}  # by the digest of what was shown
        self._tokens: AccessTokens | None = None
        self._ended = set[str]()  # families, whose access tokens hold no more
        self._looked_at = 0

    async def identity_of(self, authorization: str | None, cookie: str | None, now: int) -> Identity:
        """`authorization` is the header, `cookie` the session's value. Raises NotSignedInError and LedgerError."""
        shown = _shown(authorization, cookie)
        known = digest(shown)
        if (found := self._found.get(known)) and found.holds(now):
            return found.identity
        is_made = shown.startswith((TOKEN, SESSION))
        identity = await (self._made(shown, now) if is_made else self._signed(shown, now))
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[known] = _Found(identity, now)
        return identity

    async def access_token(self, granted: Granted, now: int) -> str:
        """A new one. Raises LedgerError."""
        return (await self._access_tokens(now, None)).sign(granted.holder, granted.family, now)

    def forget(self) -> None:
        """What was found out: something was revoked on this hub."""
        self._found.clear()
        self._looked_at = 0

    async def _signed(self, shown: str, now: int) -> Identity:
        tokens = await self._access_tokens(now, key_id(shown))
        identity = tokens.identity(shown, now)
        if identity.token in self._ended:
            raise NotSignedInError("this token has been revoked")
        return identity

    async def _access_tokens(self, now: int, key: str | None) -> AccessTokens:
        """With the keys and the revocations of some seconds ago; another hub may have made a new key since."""
        tokens, is_old = self._tokens, not 0 <= now - self._looked_at < FRESH
        if tokens is None or is_old or (key and key not in tokens and now != self._looked_at):
            found, self._ended = await self._ask(partial(_look, now))
            self._tokens, self._looked_at = found, now
            return found
        return tokens

    async def _made(self, shown: str, now: int) -> Identity:
        found = await self._ask(lambda store: (store.tokens.find(shown, now), store.organisation))
        if found[0] is None:
            raise NotSignedInError("this is no token of this hub")
        (token, holder), organisation = found[0], found[1]
        if token.revoked_at is not None:
            raise NotSignedInError("this token has been revoked")
        if not token.holds(now):
            raise NotSignedInError("this token has expired")
        if holder is None:
            raise NotSignedInError("the user of this token may not sign in any more")
        rights = (holder.team, holder.role, holder.leads)
        return Identity(token.user, organisation, *rights, token.id, None, token.expires_at, holder.scopes)


def _look(now: int, store: Store) -> tuple[AccessTokens, set[str]]:
    tokens = AccessTokens(store.keys.current(now), store.installation, store.organisation)
    return tokens, store.families.ended_since(now - 2 * LIFETIME)


def csrf_of(cookie: str) -> str:
    """What a page of ours sends with whatever it changes, and another site cannot know."""
    return hmac.digest(cookie.encode(), b"csrf", "sha256").hex()


def is_own_request(cookie: str, said: str | None) -> bool:
    return hmac.compare_digest(csrf_of(cookie).encode(), (said or "").encode())


def _shown(authorization: str | None, cookie: str | None) -> str:
    """A bearer, or the password of whatever user, for programs that know no other way."""
    if authorization is None:
        if cookie:
            return cookie
        raise NotSignedInError("a token is needed")
    scheme, _, credentials = authorization.partition(" ")
    match scheme.lower():
        case "bearer" if credentials.strip():
            return credentials.strip()
        case "basic":
            try:
                return b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
            except ValueError:
                raise NotSignedInError("this is no password") from None
    raise NotSignedInError("expected Authorization: Bearer TOKEN")
