"""What administration reads of a hub's store, as values of JSON, and what it changes there. Knows no HTTP.

No secret is among what is read: that of a token is told once, by who makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from msgspec import Struct, structs

from acp_proxy.hub.identity import SCOPES, Role
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.audit import Wanted
from acp_proxy.hub.store.keys import LIFETIME
from acp_proxy.hub.store.tokens import Asked, Token
from acp_proxy.serve.questions import BadQuestionError, number, only

_DAY = 86400  # seconds
_LONGEST_NAME = 200
_LONGEST = 3660  # days that a token may hold
_MOST_LINES = 200  # of the log, in one answer
_FILTERS = ("actor", "action", "subject")

Asks = Mapping[str, str]


class NewToken(Struct, frozen=True, forbid_unknown_fields=True):
    """`days` from now on; None: until it is revoked."""

    name: str
    user: str
    role: Role = "developer"
    team: str = ""
    leads: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    days: int | None = None


class Ended(Struct, frozen=True, forbid_unknown_fields=True):
    """A token or a machine that is to lose its sign-in."""

    id: str


class Rotation(Struct, frozen=True, forbid_unknown_fields=True):
    """`forget`: earlier keys verify nothing any more."""

    forget: bool = False


def people(store: Store, asked: Asks, _: int) -> Any:
    only(asked)
    machines = [structs.asdict(each) for each in store.families.all()]
    found = [structs.asdict(each) for each in store.people.all()]
    for each in found:
        del each["subject"]  # the provider's own name for the account
    return {"people": found, "machines": machines}


def tokens(store: Store, asked: Asks, now: int) -> Any:
    only(asked)
    return {"tokens": [_told(each, now) for each in store.tokens.all()], "scopes": SCOPES}


def keys(store: Store, asked: Asks, _: int) -> Any:
    only(asked)
    found = [
        {"id": each.id, "made_at": each.made_at, "signs_until": each.made_at + LIFETIME} for each in store.keys.all()
    ]
    return {"keys": found}


def audit(store: Store, asked: Asks, _: int) -> Any:
    """The latest lines; `next` is where those before them begin."""
    most = number(asked, "limit", 50, _MOST_LINES)
    before = number(asked, "before", 1, 10**9) if "before" in asked else None
    filters = {name: value for name, value in asked.items() if name not in ("limit", "before")}
    found = store.audit.last(most + 1, before, wanted(filters))
    lines = [
        line | {name: orjson.loads(line[name]) if line[name] else None for name in ("before", "after")}
        for line in found[:most]
    ]
    return {"lines": lines, "next": lines[-1]["number"] if len(found) > most else None}


def wanted(asked: Asks) -> Wanted:
    """Raises BadQuestionError."""
    only(asked, _FILTERS)
    return Wanted(*(asked.get(name, "") for name in _FILTERS))


READS: Mapping[str, Callable[[Store, dict[str, str], int], Any]] = {
    "people": people,
    "tokens": tokens,
    "keys": keys,
    "audit": audit,
}


def make_token(store: Store, asked: NewToken, actor: str, now: int) -> Any:
    """With its secret, this once. Raises BadQuestionError."""
    for name in (asked.name, asked.user, *asked.leads, *([asked.team] if asked.team else [])):
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise BadQuestionError(f"expected names of 1 to {_LONGEST_NAME} characters that can be shown")
    if unknown := set(asked.scopes) - {*SCOPES}:
        raise BadQuestionError(f"no scope {min(unknown)!r}; expected {', '.join(SCOPES)}")
    if asked.role == "service" and asked.days is None:
        raise BadQuestionError("a token with the role service needs an end")
    if asked.days is not None and not 0 < asked.days <= _LONGEST:
        raise BadQuestionError(f"days: expected a number from 1 to {_LONGEST}")
    until = None if asked.days is None else now + asked.days * _DAY
    wants = Asked(asked.name, asked.user, asked.role, asked.team or None, asked.leads, asked.scopes, until)
    secret, token = store.tokens.make(wants, actor, now)
    return {"secret": secret, "token": _told(token, now)}


def revoke_token(store: Store, asked: Ended, actor: str, now: int) -> Any:
    """Raises BadQuestionError where there is none that holds."""
    found = store.tokens.revoke(asked.id, actor, now)
    if found is None:
        raise BadQuestionError("no token that holds has this id", 404)
    return {"revoked": found.id}


def end_machine(store: Store, asked: Ended, actor: str, now: int) -> Any:
    """Raises BadQuestionError where it is signed in no more."""
    if not store.families.revoke(asked.id, actor, now):
        raise BadQuestionError("no machine that is signed in has this id", 404)
    return {"ended": asked.id}


def rotate_keys(store: Store, asked: Rotation, actor: str, now: int) -> Any:
    store.keys.rotate(now, actor, forget=asked.forget)
    return keys(store, {}, now)


def _told(token: Token, now: int) -> dict[str, Any]:
    found = structs.asdict(token)
    del found["kind"], found["parent"]
    return found | {"holds": token.holds(now)}
