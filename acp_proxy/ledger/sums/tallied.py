"""Sums for metrics since the ledger was created. The cost of reading them does not depend on the number of rows.

Nothing that is read here ever falls, but for sessions that are active.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from acp_proxy.core.money import NANO
from acp_proxy.ledger.statements import Read, Run, Write
from acp_proxy.ledger.sums import labels, peaks, tallies
from acp_proxy.ledger.sums.buckets import WHOLE
from acp_proxy.ledger.sums.labels import Label
from acp_proxy.ledger.sums.tallies import EXPECTED, Tally
from acp_proxy.ledger.sums.totals import SERIES
from acp_proxy.system.decoding import json_decoder

_MOST_AT_ONCE = 200  # ids in one statement


class Dimensions(NamedTuple):
    """Of a series. An id always names the same ones.

    `currency` is None for what has no known cost: unless `cost_source` is "parent", its tokens have no price.
    """

    user: str
    team: str | None
    project: str | None
    agent: str
    model: str | None
    kind: str
    stop_reason: str | None
    usage_source: str
    cost_source: str
    currency: str | None
    billing: str | None = None


class Whole(NamedTuple):
    """The sums of a series' rows since the ledger was created. Money is `units` and `nano` together.

    Of a series that lost rows to corrections all but `rows` are what they were at most.
    """

    series: str
    rows: int
    input: int
    cached_read: int
    cached_write: int
    output: int
    thought: int
    units: int
    nano: int
    most_rows: int

    @property
    def tokens(self) -> int:
        return self.input + self.cached_read + self.cached_write + self.output + self.thought


class Tallied:
    """Part of a `BudgetLedger`. All raise LedgerError."""

    def __init__(self, read: Read, write: Write, shard: int) -> None:
        self._read = read
        self._write = write
        self._shard = shard  # what is counted here adds to it

    def wholes(self, organisation: str) -> list[Whole]:
        """Of every series: what it is, `series` tells; to join and group each time takes four times as long."""
        sql = f"""
            SELECT series, row_count, input, cached_read, cached_write, output, thought, units, nano, row_count
            FROM total WHERE org_id = ? AND level = {WHOLE}
        """
        found = map(Whole._make, self._read(sql, (organisation,)))
        most = {series: counts for series, *counts in self._read(peaks.READ, (organisation,))}
        return [_at_most(whole, most.get(whole.series)) for whole in found] if most else list(found)

    def series(self, organisation: str, ids: Sequence[str]) -> dict[str, Dimensions]:
        """The dimensions of series with these ids; unknown ids are left out."""
        found: dict[str, Dimensions] = {}
        for start in range(0, len(ids), _MOST_AT_ONCE):
            some = ids[start : start + _MOST_AT_ONCE]
            sql = f"""
                SELECT id, {", ".join(SERIES)} FROM series WHERE org_id = ? AND id IN ({", ".join("?" * len(some))})
            """
            found |= {name: Dimensions._make(values) for name, *values in self._read(sql, (organisation, *some))}
        return found

    def tallies(self, organisation: str) -> list[Tally]:
        """The tallies of all families of the organisation."""
        sql = """
            SELECT family, labels, slot, sum(count), sum(units), sum(nano) FROM tally WHERE org_id = ? GROUP BY 1, 2, 3
        """
        parsed: dict[str, tuple[str | None, ...] | None] = {}
        found = []
        for family, text, slot, count, units, nano in self._read(sql, (organisation,)):
            if text not in parsed:
                parsed[text] = _labels(text)
            if (labels := parsed[text]) is not None:
                found.append(Tally(family, labels, slot, count, units * NANO + nano))
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

    def count_relayed(self, organisation: str, process: str, sequence: int, counts: Sequence[Tally], now: int) -> None:
        """Add what a proxy counted since its last report. A report comes in once, by its ascending number."""

        def work(run: Run) -> None:
            if tallies.is_new_report(run, organisation, process, sequence, now):
                tallies.count(run, organisation, counts, self._shard)

        self._write(work)


def _at_most(whole: Whole, peak: Sequence[int] | None) -> Whole:
    return whole if peak is None else Whole(whole.series, whole.rows, *peaks.highest(whole[2:], peak))


def _labels(text: str) -> tuple[str | None, ...] | None:
    """None for what cannot be decoded."""
    try:
        return json_decoder(tuple[str | None, ...]).decode(text)
    except msgspec.MsgspecError:
        return None
