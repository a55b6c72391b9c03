"""What a ledger keeps beside rows and budgets, by a hub: notices, sums for metrics, and what a copy needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acp_proxy.core.notice import Notice
from acp_proxy.ledger import LedgerForbiddenError
from acp_proxy.ledger.hub import questions, wire
from acp_proxy.ledger.hub.connection import HubConnection
from acp_proxy.ledger.sums.labels import Label
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import Tally

_MOST_AT_ONCE = 1000  # rows of a table


class HubOutbox:
    """`Outbox` for who notes. The hub itself sends."""

    def __init__(self, hub: HubConnection) -> None:
        self._hub = hub

    def note(self, notices: Iterable[Notice]) -> None:
        self._hub.call(wire.NOTICES, wire.Notices(list(notices)))

    def __getattr__(self, name: str) -> Any:
        raise LedgerForbiddenError("the hub sends notices; [[notify]] belongs into its own configuration")


class HubTallied:
    """`Tallied` by a hub."""

    def __init__(self, hub: HubConnection) -> None:
        self._hub = hub

    def wholes(self, organisation: str) -> list[Whole]:
        return self._hub.call(questions.WHOLES, questions.Of(organisation))

    def series(self, organisation: str, ids: Sequence[str]) -> dict[str, Dimensions]:
        return self._hub.call(questions.SERIES, questions.Ids(organisation, list(ids)))

    def tallies(self, organisation: str) -> list[Tally]:
        return self._hub.call(questions.TALLIES, questions.Of(organisation))

    def labels(self, organisation: str) -> list[Label]:
        return self._hub.call(questions.LABELS, questions.Of(organisation))

    def active_sessions(self, organisation: str, since: int) -> dict[str, int]:
        return self._hub.call(questions.ACTIVE, questions.At(organisation, since))

    def expect(self, organisation: str, agent: str, team: str | None, model: str | None) -> None:
        self._hub.call(questions.EXPECT, questions.Expected(organisation, agent, team, model))

    def count_relayed(self, organisation: str, process: str, sequence: int, counts: Sequence[Tally], now: int) -> None:
        self._hub.call(questions.RELAYED, questions.Relayed(organisation, process, sequence, list(counts), now))


class HubTables:
    """`CopiedTables` by a hub."""

    def __init__(self, hub: HubConnection) -> None:
        self._hub = hub

    def all(self) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
        tables: dict[str, list[list[Any]]] = {}
        for part in self._hub.stream(questions.TABLES):
            tables.setdefault(part.table, []).extend(part.rows)
        yield from tables.items()

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> int:
        new = 0
        for start in range(0, len(rows), _MOST_AT_ONCE):
            some = [list(row) for row in rows[start : start + _MOST_AT_ONCE]]
            new += self._hub.call(questions.ADD_TO_TABLE, questions.Table(table, some)).number
        return new
