"""Budgets, prices and grants on the page: for those who administer, see all or lead, and changed as far as each may.

Every change is a line in the log, written in its transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import orjson
from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from acp_proxy.budget import grants as wanted
from acp_proxy.config.files import ConfigError
from acp_proxy.core.money import exact_text
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import SECOND
from acp_proxy.hub.api import budgets as api
from acp_proxy.hub.api.claims import ByToken
from acp_proxy.hub.api.desk import Desk as ApiDesk
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.ledgers import Ledgers
from acp_proxy.hub.page.parts import answered, changed
from acp_proxy.hub.policy import CurrentPolicies, history_for, is_led, not_theirs, shown_to
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.policies import NONE
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.policy import Changes, Document, Table
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.policy import changed as applied
from acp_proxy.policy import policy_of, understood
from acp_proxy.policy.editing import changes_of
from acp_proxy.serve.questions import BadQuestionError, only
from acp_proxy.serve.site import asked_of
from acp_proxy.system.errors import UsageError

READERS: Final[tuple[Role, ...]] = ("administrator", "finance", "lead")
CHANGERS: Final[tuple[Role, ...]] = ("administrator", "lead")
_PATH = "/api/administration"
_MOST_VERSIONS = 30
_MOST_GRANTS = 200


class Revision(Struct, frozen=True, forbid_unknown_fields=True):
    """What budgets and prices are to be instead of those of a version; None removes one."""

    version: int
    budgets: dict[str, Table | None] = {}
    prices: dict[str, Table | None] = {}


class NewGrant(Struct, frozen=True, forbid_unknown_fields=True):
    """More of a budget of the policy, for so long (`2h`, `7d`). `value` is whose it is, if that is `per` user, team …,
    and `*` is for all of them.
    """

    budget: str
    amount: str
    duration: str
    why: str
    value: str = ""


class Policies:
    """`clock` is Unix time in ns."""

    def __init__(self, desk: Desk, ledgers: Ledgers, clock: Callable[[], int]) -> None:
        self._desk = desk
        self._ledgers = ledgers
        self._clock = clock
        self._current = CurrentPolicies()

    def routes(self) -> list[Route]:
        return [
            Route(f"{_PATH}/policy", self._policy, methods=["GET"]),
            Route(f"{_PATH}/grants", self._grants, methods=["GET"]),
            self._changes("policy", Revision, self._revise),
            self._changes("grants", NewGrant, self._grant),
        ]

    async def _policy(self, request: Request) -> Response:
        async def question(who: Identity) -> bytes:
            only(asked_of(request))
            return orjson.dumps(await self._desk.ask(lambda store: told(store, who)))

        return await answered(self._desk, request, READERS, question)

    async def _grants(self, request: Request) -> Response:
        async def question(who: Identity) -> bytes:
            only(asked_of(request))
            return await self._given(who)

        return await answered(self._desk, request, READERS, question)

    async def _revise(self, who: Identity, asked: Revision) -> bytes:
        now = self._desk.clock()
        return orjson.dumps(await self._desk.ask(lambda store: revised(store, asked, who, now)))

    async def _grant(self, who: Identity, asked: NewGrant) -> bytes:
        await self._ledgers.ask(lambda ledger: granted(self._at(ledger, who), asked), writes=True)
        return await self._given(who)

    async def _given(self, who: Identity) -> bytes:
        return orjson.dumps(await self._ledgers.ask(lambda ledger: grants(self._at(ledger, who)), writes=False))

    def _at(self, ledger: SqlLedger, who: Identity) -> ApiDesk:
        return ApiDesk(ledger, who, ByToken(who), self._clock(), self._current)

    def _changes(self, name: str, kind: type[Any], work: Callable[[Identity, Any], Awaitable[bytes]]) -> Route:
        endpoint = partial(changed, self._desk, roles=CHANGERS, kind=kind, change=work)
        return Route(f"{_PATH}/{name}", endpoint, methods=["POST"])


def told(store: Store, who: Identity) -> dict[str, Any]:
    """What holds and is about somebody, what of it they may change, and what each of the last versions has changed."""
    kept = store.policies.history(_MOST_VERSIONS)
    current = shown_to(who, kept[0] if kept else NONE)
    history: dict[int, dict[str, Any]] = {}
    for each in changes_of(history_for(who, kept)):
        version = history.setdefault(
            each.version, {"version": each.version, "at": each.at, "who": each.who, "changes": []}
        )
        version["changes"].append({"kind": each.kind, "name": each.name, "before": each.before, "after": each.after})
    everything = who.role == "administrator"
    return {
        "version": current.version,
        "document": structs.asdict(current.document),
        "changes": [each["name"] for each in current.document.budgets if everything or is_led(who, each)],
        "history": list(history.values()),
    }


def revised(store: Store, asked: Revision, who: Identity, now: int) -> dict[str, Any]:
    """Raises BadQuestionError for what is no policy or too late, and RefusedError for what is not theirs."""

    def change(before: Document) -> Document:
        after = applied(before, Changes(asked.budgets, asked.prices))
        policy_of(after)
        if wrong := not_theirs(who, before, after):
            raise RefusedError(403, wrong)
        return after

    try:
        kept = store.policies.change(change, asked.version, who.user, now)
    except ConfigError as error:
        raise BadQuestionError(str(error)) from error
    if kept is None:
        raise BadQuestionError("the budgets were changed meanwhile: load this page again", 409)
    return told(store, who)


def granted(desk: ApiDesk, asked: NewGrant) -> None:
    """Raises BadQuestionError and RefusedError."""
    kept = desk.policies.of(desk.ledger, desk.who.organisation).kept
    known = understood(shown_to(desk.who, kept).document).budgets
    per = next((each.per for each in known if each.name == asked.budget), None)
    if per is not None and not asked.value:
        raise BadQuestionError(f"for: expected the name of the {per}, or {wanted.EACH} for all")
    values: dict[str, str] = {} if per is None else {per: asked.value}
    own = Subject(desk.who.organisation, desk.who.user, desk.who.team, None, "", "")
    grant = wanted.Asked(asked.budget, asked.amount.strip(), asked.duration, asked.why, None, values)
    try:
        api.grant(desk, wanted.granted(grant, known, own, desk.now)[1])
    except UsageError as error:
        raise BadQuestionError(str(error).removeprefix("--")) from error


def grants(desk: ApiDesk) -> dict[str, Any]:
    """The latest first, as far as who asks sees them."""
    found = api.grants(desk, wire.GrantsAt(desk.who.organisation))
    of_hub = [grant for grant in found if grant.layer == "hub"]
    return {"grants": [_grant(grant, desk.now) for grant in of_hub[: -_MOST_GRANTS - 1 : -1]]}


def _grant(grant: Grant, now: int) -> dict[str, Any]:
    return {
        "budget": grant.budget,
        "for": grant.value,
        "amount": exact_text(grant.amount, grant.unit),
        "unit": grant.unit,
        "at": grant.at // SECOND,
        "until": grant.until // SECOND,
        "counts": grant.at <= now < grant.until,
        "who": grant.who,
        "why": grant.why,
    }
