"""Tallies: figures of metrics that running totals do not have; only incremented, in the transaction of the row.

A histogram has a row for each bucket with observations, with their sum. All but the reports of relays can be
recomputed from rows.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from acp_proxy.core import traffic
from acp_proxy.core.digest import digest
from acp_proxy.core.money import NANO
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import LINE_TOKENS
from acp_proxy.ledger.statements import Run, Statement, execute, insertions
from acp_proxy.ledger.sums import labels
from acp_proxy.ledger.sums.buckets import WHOLE
from acp_proxy.ledger.sums.totals import COUNTS, SERIES_AT_FIRST, Series, split

NO_BOUND = 2**63 - 1  # the slot of what is above every bound
SHARDS = 16  # of each tally, where writers do not come one after the other; who reads adds them up
OTHER = "other"  # in place of a label that is too long

# Upper bounds in nano-units. Those of a family may change: what was counted before stays in the buckets it is in.
BOUNDS = {
    "turn_cost": tuple(
        mill * NANO // 1000 for mill in (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000)
    ),
    "turn_duration_seconds": tuple(
        tenths * NANO // 10 for tenths in (10, 25, 50, 100, 300, 600, 1200, 3000, 6000, 18_000, 36_000)
    ),
    "context_used_ratio": tuple(percent * NANO // 100 for percent in (10, 25, 50, 75, 90, 95, 100)),
    "relay_seconds": traffic.BOUNDS,
}
SESSIONS = "sessions"
EXPECTED = "expected"
OF_ROWS = ("turn_cost", "turn_duration_seconds", "context_used_ratio", SESSIONS)


def _fill(run: Run) -> None:
    """From the rows of a ledger that had none of this."""
    run(_WHOLES, (WHOLE, WHOLE - 1))
    columns = ", ".join(f"s.{name}" for name in SERIES_AT_FIRST)
    series = f"""
        SELECT s.org_id, {columns} FROM series s JOIN total t ON t.org_id = s.org_id AND t.series = s.id
        WHERE t.level = ? ORDER BY t.first_at, s.id
    """
    labels.register(run, labels.of_series((found[0], (*found[1:], None)) for found in run(series, (WHOLE,))))
    clients = (
        "SELECT org_id, 'client', client FROM session WHERE client IS NOT NULL GROUP BY 1, 3 ORDER BY min(started_at)"
    )
    labels.register(run, run(clients, ()))
    rebuild(run, [organisation for (organisation,) in run("SELECT DISTINCT org_id FROM session", ())])


_WHOLES = f"""
INSERT INTO total
SELECT org_id, CAST(? AS BIGINT), series, 0, {", ".join(f"sum({column})" for column in COUNTS)},
    min(first_at), max(last_at)
FROM total WHERE level = ? GROUP BY org_id, series
ON CONFLICT DO NOTHING
"""
TABLES = (
    *labels.TABLES,
    """
    CREATE TABLE tally (
        org_id TEXT NOT NULL,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        family TEXT NOT NULL,
        labels TEXT NOT NULL,
        count INTEGER NOT NULL,
        units INTEGER NOT NULL,
        nano INTEGER NOT NULL,
        PRIMARY KEY (org_id, id, slot)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE relayed (
        org_id TEXT NOT NULL,
        process TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        reported_at INTEGER NOT NULL,
        PRIMARY KEY (org_id, process)
    ) STRICT, WITHOUT ROWID
    """,
    "ALTER TABLE session ADD COLUMN later_rows INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX session_by_end ON session (org_id, ended_at)",
    _fill,
)
_ADD = """
ON CONFLICT (org_id, id, slot) DO UPDATE SET
    count = tally.count + excluded.count, units = tally.units + excluded.units, nano = tally.nano + excluded.nano
"""
_CHUNK = 5000
_TURNS = f"""
SELECT t.id, t.agent, t.started_at, t.ended_at, t.context_used, t.context_size,
    l.model, {LINE_TOKENS}, l.cost_nano, l.currency
FROM (SELECT * FROM turn WHERE org_id = ? AND id > ? AND kind = 'turn' ORDER BY id LIMIT {_CHUNK}) t
    JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
ORDER BY t.id, l.position
"""
_REPORT = """
INSERT INTO relayed VALUES (?, ?, ?, ?)
ON CONFLICT (org_id, process) DO UPDATE SET sequence = excluded.sequence, reported_at = excluded.reported_at
WHERE relayed.sequence < excluded.sequence
RETURNING sequence
"""
_LARGEST_RATIO = 1000 * NANO  # of a context that is used; what agents say need not make sense
_FORGET_AFTER = DAY  # a report is repeated within seconds

_Key = tuple[str, str, tuple[str | None, ...], int]  # organisation, family, labels, slot


class Tally(NamedTuple):
    """One slot of a family: of a histogram its bucket by upper bound, else 0."""

    family: str
    labels: tuple[str | None, ...]
    slot: int  # in nano-units; `NO_BOUND` for the last bucket
    number: int
    nano: int  # the sum of what was counted


def begin_sessions(run: Run, first: Sequence[Row], new: Sequence[tuple[str, Series]], shard: int) -> None:
    """The tallies of rows that are the first of their session, and of new series."""
    if not first and not new:
        return
    tallies = Tallies(shard=shard)
    clients: dict[labels.Value, None] = {}
    for row in first:
        origin = row.origin
        tallies.count(origin.organisation, SESSIONS, (origin.agent, origin.client))
        if origin.client is not None:
            clients[origin.organisation, "client", origin.client] = None
    labels.register(run, [*labels.of_series(new), *clients])
    tallies.write(run)


class Tallies:
    """The increments, collected before they are written: to one of the `SHARDS`, so that writers seldom meet."""

    def __init__(self, rows: Iterable[Row] = (), shard: int = 0) -> None:
        self._shard = shard
        self._sums: dict[_Key, list[int]] = {}  # count, nano
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        entry = row.entry
        if entry.kind != "turn":
            return
        costs = [(cost.currency, cost.nano) for cost in entry.costs]
        times = (entry.started_at, entry.ended_at)
        self.turn(
            row.origin.organisation,
            row.origin.agent,
            entry.model,
            times,
            (entry.context_used, entry.context_size),
            costs,
        )

    def turn(
        self,
        organisation: str,
        agent: str,
        model: str | None,
        times: tuple[int, int],
        context: tuple[int | None, int | None],
        costs: Iterable[tuple[str, int]],
    ) -> None:
        for currency, nano in costs:
            self._observe(organisation, "turn_cost", (agent, model, currency), nano)
        self._observe(organisation, "turn_duration_seconds", (agent,), max(0, times[1] - times[0]))
        used, size = context
        if used is not None and size:
            ratio = min(used * NANO // size, _LARGEST_RATIO)
            self._observe(organisation, "context_used_ratio", (agent, model), ratio)

    def count(
        self,
        organisation: str,
        family: str,
        named: tuple[str | None, ...],
        number: int = 1,
        *,
        slot: int = 0,
        nano: int = 0,
    ) -> None:
        key = (organisation, family, bounded(named), slot)
        so_far = self._sums.setdefault(key, [0, 0])
        so_far[0] += number
        so_far[1] += nano

    def write(self, run: Run) -> None:
        execute(run, self.statements())

    def statements(self) -> list[Statement]:
        """In the order of keys, so that two transactions never wait for each other."""
        rows = []
        for (organisation, family, named, slot), (count, nano) in self._sums.items():
            name = tally_id(family, named, self._shard)
            rows.append((organisation, name, slot, family, _text(named), count, *split(nano)))
        return insertions("tally", sorted(rows), _ADD)

    def _observe(self, organisation: str, family: str, named: tuple[str | None, ...], nano: int) -> None:
        bounds = BOUNDS[family]
        index = bisect_left(bounds, nano)
        self.count(organisation, family, named, slot=bounds[index] if index < len(bounds) else NO_BOUND, nano=nano)


def rebuild(run: Run, organisations: Iterable[str]) -> None:
    """Make all that come from rows anew. No other process may write meanwhile."""
    run(f"DELETE FROM tally WHERE family IN ({', '.join('?' * len(OF_ROWS))})", OF_ROWS)
    for organisation in organisations:
        sessions = Tallies()
        counted = "SELECT agent, client, count(*) FROM session WHERE org_id = ? GROUP BY 1, 2"
        for agent, client, number in run(counted, (organisation,)):
            sessions.count(organisation, SESSIONS, (agent, client), number)
        sessions.write(run)
        for turns in _chunks(run, organisation):
            tallies = Tallies()
            for _, group in groupby(turns, lambda found: found[0]):
                _add_counted(tallies, organisation, list(group))
            tallies.write(run)


def _chunks(run: Run, organisation: str) -> Iterator[list[tuple[Any, ...]]]:
    last = ""
    while found := run(_TURNS, (organisation, last)):
        yield found
        last = found[-1][0]


def _add_counted(tallies: Tallies, organisation: str, lines: list[tuple[Any, ...]]) -> None:
    """A turn as `_TURNS` finds it, one row a line."""
    _, agent, started_at, ended_at, used, size, *_ = lines[0]
    model = max(lines, key=lambda line: line[7])[6]
    costs: dict[str, int] = {}
    for *_, nano, currency in lines:
        if nano is not None:
            costs[currency] = costs.get(currency, 0) + nano
    tallies.turn(organisation, agent, model, (started_at, ended_at), (used, size), costs.items())


def is_new_report(run: Run, organisation: str, process: str, sequence: int, now: int) -> bool:
    """Whether this report of a proxy has not come yet. Proxies that reported long ago are forgotten."""
    run("DELETE FROM relayed WHERE org_id = ? AND reported_at < ?", (organisation, now - _FORGET_AFTER))
    return bool(run(_REPORT, (organisation, process, sequence, now)))


def count(run: Run, organisation: str, counts: Iterable[Tally], shard: int = 0) -> None:
    """Add what somebody has counted for an organisation."""
    tallies = Tallies(shard=shard)
    for each in counts:
        tallies.count(organisation, each.family, each.labels, each.number, slot=each.slot, nano=each.nano)
    tallies.write(run)


def bounded(named: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The same labels, with `OTHER` for those that are too long."""
    return tuple(OTHER if label is not None and len(label) > labels.LONGEST else label for label in named)


@lru_cache(maxsize=1024)  # the same few with each row, as what follows
def _text(named: tuple[str | None, ...]) -> str:
    return json.dumps(named)


@lru_cache(maxsize=1024)
def tally_id(family: str, named: tuple[str | None, ...], shard: int = 0) -> str:
    """The key of one shard of a family's tally with these labels."""
    return digest(json.dumps([family, named, *[shard] * (shard > 0)]).encode(), 12)
