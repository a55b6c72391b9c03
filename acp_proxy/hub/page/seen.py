"""A ledger as one person may see it, for the views of `serve`: each question is answered as the API answers it to them.

What the API does not answer cannot be asked: a view that needs more fails, and tells nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar, cast

from msgspec import structs

from acp_proxy.core.entry import Work
from acp_proxy.hub.api import ANSWERS
from acp_proxy.hub.api.claims import ByToken
from acp_proxy.hub.api.desk import SEES_ALL, Answer, Desk, Tagged
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.ledger import LedgerForbiddenError, Query, Sums
from acp_proxy.ledger.durability import Replication, Restored
from acp_proxy.ledger.hub import questions
from acp_proxy.ledger.hub.connection import HubConnection
from acp_proxy.ledger.hub.reader import HubReader, HubRecent
from acp_proxy.ledger.hub.wire import Call, Nothing
from acp_proxy.ledger.reading.recent import Recent
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.ledger.sums.buckets import A_DAY, FOUR_WEEKS, QUARTER_HOUR
from acp_proxy.ledger.tables import Tables

Q = TypeVar("Q")
A = TypeVar("A")

_BY_CALL: Mapping[Call[Any, Any], Answer] = {answer.call: answer for answer in ANSWERS}
_CORRECTED = ("model", "usage_source", "cost_source")  # of what a correction changes, all that sums are told by
_DAYS = FOUR_WEEKS // A_DAY


class Answered:
    """Calls of the API, answered at once in the ledger's thread to this person. Raises RefusedError and LedgerError."""

    def __init__(self, ledger: SqlLedger, who: Identity, policies: CurrentPolicies, clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._who = who
        self._policies = policies
        self._clock = clock

    def call(self, call: Call[Q, A], asked: Q | None = None) -> A:
        answer = _BY_CALL[call]
        if self._who.role not in answer.roles:
            raise RefusedError(403, f"not for the role {self._who.role}")
        desk = Desk(self._ledger, self._who, ByToken(self._who), self._clock(), self._policies)
        given = answer.give(desk, asked or Nothing())
        return cast(A, given.answer if isinstance(given, Tagged) else given)

    def stream(self, call: Call[Q, A], asked: Q | None = None) -> Iterator[A]:
        return iter(cast("list[A]", self.call(call, asked)))

    def close(self) -> None:
        """The ledger is that of others as well."""


class SeenLedger(HubReader):
    """The methods of a ledger that views use."""

    def __init__(
        self, ledger: SqlLedger, who: Identity, policies: CurrentPolicies, clock: Callable[[], int] = time.time_ns
    ) -> None:
        answered = cast(HubConnection, Answered(ledger, who, policies, clock))
        super().__init__("", answered)
        self._ledger = ledger
        self._sees_all = who.role in SEES_ALL
        self.exports = _Exports(ledger)

    def call(self, call: Call[Q, A], asked: Q) -> A:
        """Another call of the API, as it is answered to them."""
        return self._hub.call(call, asked)

    @property
    def recent(self) -> Recent:
        return cast(Recent, HubRecent(self._hub) if self._sees_all else _SeenRecent(self._hub))

    @property
    def tables(self) -> Tables:
        if not self._sees_all:
            raise LedgerForbiddenError("what the database has beside rows is of everybody")
        return self._ledger.tables

    def settle_dead(self, _: int) -> int:
        """Whoever asks for standings does that."""
        return 0

    def replication(self) -> Replication | None:
        """For those who see all; so is what became of the server."""
        return self._ledger.replication() if self._sees_all else None

    def restored(self, organisation: str, since: int = 0) -> Restored:
        return self._ledger.restored(organisation, since) if self._sees_all else Restored(0, 0, 0, 0, None)


class _Exports:
    """Of the turns of a session that was seen."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    def work(self, organisation: str, turns: Sequence[str]) -> dict[str, Work]:
        return self._ledger.exports.work(organisation, turns)


class _SeenRecent(HubRecent):
    """When others have worked is not told either: a day has changed when the sums of what is seen have.

    A correction may leave all figures of a day as they were and give them to another model, or say how they are known.
    """

    def rows_by_four_weeks(self, organisation: str) -> Mapping[int, int]:
        found: dict[int, int] = {}
        for sums in self._by_day(Query(where=(("organisation", organisation),))):
            block = int(sums.key[0] or 0) // _DAYS
            found[block] = _digest(found.get(block), _mark(sums))
        return found

    def rows_by_day(self, organisation: str, four_weeks: int) -> Mapping[int, int]:
        since = four_weeks * FOUR_WEEKS * QUARTER_HOUR
        where = (("organisation", organisation),)
        found: dict[int, int] = {}
        for sums in self._by_day(Query(since, since + FOUR_WEEKS * QUARTER_HOUR, where)):
            day = int(sums.key[0] or 0)
            found[day] = _digest(found.get(day), _mark(sums))
        return found

    def _by_day(self, query: Query) -> list[Sums]:
        found = self._hub.call(questions.SUMMED, questions.SummedBy(query, ["day", *_CORRECTED]))
        return sorted(found, key=lambda sums: (int(sums.key[0] or 0), *map(str, sums.key[1:])))


def _mark(sums: Sums) -> int:
    """Another one when rows were added, or corrected in what they say of tokens or cost."""
    return _digest(structs.astuple(sums))


def _digest(*values: object) -> int:
    """The same in each process: another hub may be asked next."""
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest())
