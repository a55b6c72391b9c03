"""What a ledger tells metrics: sums since it began, whose reading costs the same however many rows there are.

Nothing that is read here ever falls, but for sessions that are active.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from acp_proxy.core.money import NANO
from acp_proxy.ledger import labels, tallies
from acp_proxy.ledger.labels import Label
from acp_proxy.ledger.tallies import EXPECTED, Tally
from acp_proxy.ledger.totals import WHOLE, Run

T = TypeVar("T")

_COLUMNS = {"agent": "s.agent", "model": "s.model", "team": "s.team", "user": "s.user_id", "project": "s.project"}


class Whole(NamedTuple):
    """What rows of the same dimensions, sources and currency add up to since the ledger began.

    `currency` is None for what has no known cost: unless `cost_source` is "parent", its tokens have no price.
    """

    kind: str
    stop_reason: str | None
    usage_source: str
    cost_source: str
    currency: str | None
    rows: int
    input: int
    cached_read: int
    cached_write: int
    output: int
    thought: int
    nano: int
    key: tuple[str | None, ...]  # the values of the dimensions that were asked for, in that order


class Tallied:
    """Part of a `BudgetLedger`. All raise LedgerError."""

    def __init__(
        self,
        read: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]],
        write: Callable[[Callable[[Run], None]], None],
    ) -> None:
        self._read = read
        self._write = write

    def wholes(self, organisation: str, by: Sequence[str]) -> list[Whole]:
        """By dimensions of "agent", "model", "team", "user" and "project"."""
        groups = ", ".join(["s.kind", "s.stop_reason", "s.usage_source", "s.cost_source", "s.currency"])
        groups += "".join(f", {_COLUMNS[dimension]}" for dimension in by)
        sql = f"""
            SELECT sum(t.row_count), sum(t.input), sum(t.cached_read), sum(t.cached_write), sum(t.output),
                sum(t.thought), sum(t.units), sum(t.nano), {groups}
            FROM total t JOIN series s ON s.org_id = t.org_id AND s.id = t.series
            WHERE t.org_id = ? AND t.level = {WHOLE}
            GROUP BY {groups}
        """
        return [
            Whole._make((*found[8:13], *found[:6], found[6] * NANO + found[7], found[13:]))
            for found in self._read(sql, (organisation,))
        ]

    def tallies(self, organisation: str) -> list[Tally]:
        """Of all families that the organisation has."""
        sql = "SELECT family, labels, slot, count, units, nano FROM tally WHERE org_id = ?"
        parsed: dict[str, tuple[str | None, ...]] = {}
        found = []
        for family, text, slot, count, units, nano in self._read(sql, (organisation,)):
            if text not in parsed:
                parsed[text] = tuple(json.loads(text))
            found.append(Tally(family, parsed[text], slot, count, units * NANO + nano))
        return found

    def labels(self, organisation: str) -> list[Label]:
        """The values that dimensions have had, by position."""
        return labels.read_labels(self._read, organisation)

    def active_sessions(self, organisation: str, since: int) -> dict[str, int]:
        """How many sessions of each agent have a row that ended at `since` (Unix ns) or later."""
        sql = "SELECT agent, count(*) FROM session WHERE org_id = ? AND ended_at >= ? GROUP BY agent"
        return dict(self._read(sql, (organisation, since)))

    def expect(self, organisation: str, agent: str, team: str | None, model: str | None) -> None:
        """Turns are about to come: their series are there before they have anything to show."""
        named = tallies.bounded((agent, team, model))
        sql = "SELECT 1 FROM tally WHERE org_id = ? AND id = ?"
        if self._read(sql, (organisation, tallies.tally_id(EXPECTED, named))):
            return

        def work(run: Run) -> None:
            dimensions = zip(("agent", "team", "model"), (agent, team, model), strict=True)
            values = [(organisation, dimension, value) for dimension, value in dimensions if value is not None]
            labels.register(run, values)
            tallies.count(run, organisation, [Tally(EXPECTED, named, 0, 0, 0)])

        self._write(work)

    def reporters(self, organisation: str) -> int:
        """How many proxies reported lately."""
        return int(self._read("SELECT count(*) FROM relayed WHERE org_id = ?", (organisation,))[0][0])

    def count_relayed(self, organisation: str, process: str, sequence: int, counts: Sequence[Tally], now: int) -> None:
        """Add what a proxy counted since its last report. A report comes in once, by its ascending number."""

        def work(run: Run) -> None:
            if tallies.is_new_report(run, organisation, process, sequence, now):
                tallies.count(run, organisation, counts)

        self._write(work)
