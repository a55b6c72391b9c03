"""Access tokens: JWT for an hour, signed with HS256 by the newest key of this installation, verified by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from joserfc import jwt
from joserfc.errors import BadSignatureError, ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import GuestProtocol, OctKey

from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.store.families import Family
from acp_proxy.hub.store.keys import Key
from acp_proxy.hub.store.people import Holder
from acp_proxy.hub.store.secrets import new_id

LIFETIME = 3600  # seconds
_LEEWAY = 60  # seconds that the clocks of two hubs may differ
_ISSUER = "acp-proxy"
_ALGORITHMS = ("HS256",)
_LONGEST = 8192  # characters


class NotSignedInError(Exception):
    """The request shows nothing that lets it in; the text is one line for who asks."""


class AccessTokens:
    """Of one organisation of one installation. `keys`: the newest first."""

    def __init__(self, keys: Sequence[Key], installation: str, organisation: str) -> None:
        self._keys = {key.id: OctKey.import_key(key.secret) for key in keys}
        self._newest = keys[0].id
        self._audience = f"{installation}/{organisation}"
        self._organisation = organisation

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def sign(self, holder: Holder, family: Family, now: int) -> str:
        claims = {
            "iss": _ISSUER,
            "aud": self._audience,
            "sub": holder.user,
            "iat": now,
            "exp": now + LIFETIME,
            "jti": new_id(),  # two of one second are two
            "sid": family.id,
            "machine": family.machine,
            "team": holder.team,
            "role": holder.role,
            "leads": list(holder.leads),
            "scopes": list(holder.scopes),
        }
        return jwt.encode({"alg": "HS256", "kid": self._newest}, claims, self._keys[self._newest])

    def identity(self, token: str, now: int) -> Identity:
        """Raises NotSignedInError."""
        if len(token) > _LONGEST:
            raise NotSignedInError("this is no token of this hub")
        try:
            claims = jwt.decode(token, self._key_of, algorithms=_ALGORITHMS).claims
            _claims(now, self._audience).validate(claims)
            return _identity(claims, self._organisation)
        except ExpiredTokenError:
            raise NotSignedInError("this token has expired") from None
        except BadSignatureError:
            raise NotSignedInError("this token is not signed by this hub") from None
        except ClaimError as error:
            raise NotSignedInError(_WRONG.get(error.claim, "this token is not made by a hub")) from None
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise NotSignedInError("this is no token of this hub") from None

    def _key_of(self, token: GuestProtocol) -> OctKey:
        key = self._keys.get(str(token.headers().get("kid")))
        if key is None:
            raise NotSignedInError("this token is signed with a key that this hub does not have (any more)")
        return key


_WRONG = {
    "aud": "this token is for another hub",
    "iat": "this token is of the future: a hub's clock is wrong",
}


def key_id(token: str) -> str | None:
    """Which key a token says that it is signed with; None if it is none."""
    found: list[str] = []

    def look(guest: GuestProtocol) -> OctKey:
        found.append(str(guest.headers().get("kid")))
        raise NotSignedInError

    try:
        jwt.decode(token, look, algorithms=_ALGORITHMS)
    except (NotSignedInError, JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return found[0] if found else None
    return None


def _claims(now: int, audience: str) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now,
        _LEEWAY,
        iss={"essential": True, "value": _ISSUER},
        aud={"essential": True, "value": audience},
        exp={"essential": True},
        iat={"essential": True},
        sub={"essential": True},
    )


def _identity(claims: dict[str, Any], organisation: str) -> Identity:
    if claims["role"] not in get_args(Role):
        raise ValueError(claims["role"])
    return Identity(
        user=claims["sub"],
        organisation=organisation,
        team=claims["team"],
        role=claims["role"],
        teams_led=tuple(claims["leads"]),
        token=claims["sid"],
        machine=claims["machine"],
        expires_at=claims["exp"],
        scopes=tuple(claims["scopes"]),
    )
