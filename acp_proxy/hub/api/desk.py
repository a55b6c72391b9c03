"""What an answer is made with: the ledger, who asks, the policy, and the hub's clock; and which answers there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from starlette.responses import Response

from acp_proxy.core.budget.lease import Terms
from acp_proxy.hub.api.claims import Claims
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.places import Places
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.ledger.hub.place import Place
from acp_proxy.ledger.hub.wire import Call
from acp_proxy.ledger.sql_ledger import SqlLedger

EVERYBODY: tuple[Role, ...] = ("administrator", "finance", "lead", "developer", "service")
SEES_ALL: tuple[Role, ...] = ("administrator", "finance")
ADMINISTRATOR: tuple[Role, ...] = ("administrator",)

Q = TypeVar("Q")
A = TypeVar("A")


class Desk(Struct, frozen=True):
    """In the ledger's thread. `now` is Unix ns, `if_match` the header of that name."""

    ledger: SqlLedger
    who: Identity
    claims: Claims
    now: int
    policies: CurrentPolicies
    if_match: str | None = None
    lease: Terms = Terms()  # of what is lent
    url: str = ""  # at which people reach the hub; empty where nothing says it
    places: Places | None = None  # told to proxies, which keep what is acknowledged

    def place(self) -> Place | None:
        """Raises LedgerError."""
        return None if self.places is None else self.places.of(self.ledger, self.who)


class Tagged(Struct, Generic[A], frozen=True):
    """An answer with its ETag: who has it already is told so, and no more."""

    tag: str
    answer: A


class Dialect(Struct, frozen=True):
    """Where an API that is not ours differs."""

    key: str  # a header that may have the token, beside Authorization
    answered: Callable[[Response], Response]  # what an answer becomes, and a problem
    error: type[Struct]  # of every error, as JSON


class Batching(Struct, frozen=True):
    """How calls that come at one moment are answered in one go: for each its answer, or the error that is its alone."""

    give: Callable[[Sequence[tuple[Desk, Any]]], Sequence[Any]]
    fits: Callable[[Any], bool]  # whether what is asked keeps others waiting no longer than they would by themselves


class Answer(Struct, frozen=True):
    """How a call is answered, and who may make it. `writes`: it needs the thread that writes."""

    call: Call[Any, Any]
    give: Callable[[Desk, Any], Any]
    roles: tuple[Role, ...]
    writes: bool
    dialect: Dialect | None = None
    batching: Batching | None = None


def reads(call: Call[Q, A], give: Callable[[Desk, Q], A | Tagged[A]], roles: tuple[Role, ...] = EVERYBODY) -> Answer:
    return Answer(call, give, roles, writes=False)


def writes(call: Call[Q, A], give: Callable[[Desk, Q], A | Tagged[A]], roles: tuple[Role, ...] = EVERYBODY) -> Answer:
    return Answer(call, give, roles, writes=True)


def streams(call: Call[Q, A], give: Callable[[Desk, Q], Iterable[A]], roles: tuple[Role, ...] = EVERYBODY) -> Answer:
    return Answer(call, give, roles, writes=False)
