"""Answers about requests for more: developers ask, leads of their team and administrators decide."""

from __future__ import annotations

import re

from acp_proxy.core.budget.requests import Decision, MoreRequest, Wish
from acp_proxy.core.notice import more_asked
from acp_proxy.core.windows import DAY
from acp_proxy.hub.api.desk import Desk, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.requests import NotToDecideError, Requests, TooManyError
from acp_proxy.ledger.hub import asking

_DECIDES: tuple[Role, ...] = ("administrator", "lead")
_SEES_ALL = ("administrator", "finance")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_LONGEST_NAME, _LONGEST_UNIT, _LONGEST_TEXT = 200, 32, 500  # characters
_MOST = 2**63 - 1  # what a ledger's column holds
_LONGEST_GRANT = 3660 * DAY


def ask(desk: Desk, wish: Wish) -> MoreRequest:
    _check(wish, desk.who)
    who, asked = desk.who, MoreRequest(wish, desk.who.user, desk.who.team, desk.now)
    link = f"{desk.url}/requests/{wish.id}" if desk.url else None
    try:
        kept = _requests(desk).ask(asked, more_asked(who.organisation, who.user, who.team, wish, link, desk.now))
    except TooManyError as error:
        raise RefusedError(429, str(error)) from error
    if kept is None:
        raise RefusedError(409, f"request {wish.id}: its id is another user's")
    return kept


def search(desk: Desk, asked: asking.Wanted) -> list[MoreRequest]:
    who, requests = desk.who, _requests(desk)
    if who.role in _SEES_ALL and not asked.own:
        found = requests.all(state=asked.state)
    else:
        teams = who.teams_led if who.role == "lead" and not asked.own else ()
        found = requests.all(state=asked.state, user=who.user, teams=teams)
    return [each for each in found if asked.id in (None, each.wish.id)]


def decide(desk: Desk, asked: Decision) -> MoreRequest:
    requests = _requests(desk)
    known = requests.find(asked.id)
    if known is None or not may_decide(desk.who, known):
        raise RefusedError(403, f"no request {asked.id!r} that a {desk.who.role} like you decides on")
    try:
        return requests.decide(_sound(asked, desk.now), desk.who.user, desk.now, desk.ledger.grant_in)
    except NotToDecideError as error:
        raise RefusedError(409, str(error)) from error


def may_decide(who: Identity, request: MoreRequest) -> bool:
    """A lead: on what others of their teams ask for themselves or for that team, not on what several teams share."""
    if who.scopes:  # a token for programs
        return False
    if who.role == "administrator":
        return True
    of_team = request.team is not None and request.team in who.teams_led and request.user != who.user
    return who.role == "lead" and of_team and request.wish.value in (request.user, request.team)


def _check(wish: Wish, who: Identity) -> None:
    """Raises RefusedError."""
    if not _ID.fullmatch(wish.id):
        raise RefusedError(400, "expected an id of up to 64 letters and digits")
    if wish.layer == "flag":
        raise RefusedError(400, "a budget of one run has no grants: start the agent with a larger --budget")
    if not 0 < wish.amount <= _MOST or not _is_text(wish.unit, _LONGEST_UNIT):
        raise RefusedError(400, "expected an amount above 0 of a currency, tokens or turns")
    if not _is_text(wish.budget, _LONGEST_NAME) or not _is_text(wish.value or "-", _LONGEST_NAME):
        raise RefusedError(400, f"expected names of up to {_LONGEST_NAME} printable characters")
    if not _is_text(wish.why, _LONGEST_TEXT):
        raise RefusedError(400, f"expected a reason of up to {_LONGEST_TEXT} printable characters")
    of_user: tuple[str | None, ...] = (None, who.user) if wish.per is None else (who.user,)
    if (wish.per in (None, "user") and wish.value not in of_user) or (wish.per == "team" and wish.value != who.team):
        raise RefusedError(403, "more can be asked for yourself and your team only")


def _sound(asked: Decision, now: int) -> Decision:
    if asked.approve and (asked.until is None or not 0 < asked.until - now <= _LONGEST_GRANT):
        raise RefusedError(400, "expected an end after now, and within ten years")
    if asked.amount is not None and not 0 < asked.amount <= _MOST:
        raise RefusedError(400, "expected an amount above 0")
    if asked.note and not _is_text(asked.note, _LONGEST_TEXT):
        raise RefusedError(400, f"expected a note of up to {_LONGEST_TEXT} printable characters")
    return asked


def _is_text(text: str, longest: int) -> bool:
    return 0 < len(text) <= longest and text.isprintable() and bool(text.strip())


def _requests(desk: Desk) -> Requests:
    return Store(desk.ledger.tables, desk.who.organisation).requests


ANSWERS = [
    writes(asking.ASK, ask),
    writes(asking.REQUESTS, search),  # the first one makes the tables
    writes(asking.DECIDE, decide, _DECIDES),
]
