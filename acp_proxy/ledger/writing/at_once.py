"""An append in one journey, for those that go on with what this process has begun: nothing needs to be asked first.

The server checks what is assumed, and else does nothing of it. Only on PostgreSQL.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from msgspec import Struct, field

from acp_proxy.core.budget import Account
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts import holding, overshoot
from acp_proxy.ledger.accounts.overshoot import Opened
from acp_proxy.ledger.columns import key_values
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import of_unpriced
from acp_proxy.ledger.statements import Statement

_BELIEVED = 600.0  # seconds
_MOST = 10_000  # of each kind that are remembered: of others the ledger is asked
# Two rows where there can be one: it fails.
_NONE_OPEN = "SELECT (SELECT 1 UNION ALL SELECT 1 FROM open_turn WHERE org_id = ? AND turn IN ({turns}))"
_ALL_THERE = """
SELECT (SELECT 1 UNION ALL SELECT 1 WHERE (SELECT count(*) FROM turn WHERE org_id = ? AND id IN ({turns})) < ?)
"""

Session = tuple[str, str, str, str, str]
T = TypeVar("T")


class Known(Struct):
    """What a process knows to be in the ledger, as long as its connection leads to the same server: of a file's
    sessions and turns nothing, for there no journey is saved by it.

    Now and then it looks again: another process may have given what is there another name, as `forget-user` does.
    """

    series: set[tuple[str, str]] = field(default_factory=set)  # ids, with their organisations
    sessions: dict[Session, int] = field(default_factory=dict)  # with when they began, or later
    turns: dict[str, Opened] = field(default_factory=dict)
    earlier: dict[str, Opened] = field(default_factory=dict)  # of connections before: may be otherwise by now
    unsure: dict[str, Sequence[Account]] = field(default_factory=dict)  # turns of which a server may hold more, later
    since: float = 0  # by `time.monotonic`

    def opened(self, turn: str, opened: Opened) -> None:
        _put(self.turns, turn, opened)

    def not_answered(self, turn: str, accounts: Sequence[Account]) -> None:
        """What was asked to be held may be done by the server yet, on a connection that is lost."""
        _put(self.unsure, turn, accounts)

    def look_again(self, now: float) -> None:
        if now - self.since > _BELIEVED:
            self.series.clear()
            self.sessions.clear()
            self.since = now

    def ended(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.released(row.entry.id)

    def released(self, turn: str) -> None:
        self.turns.pop(turn, None)
        self.earlier.pop(turn, None)
        self.unsure.pop(turn, None)

    def appended(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if len(self.sessions) >= _MOST:
                self.sessions.clear()
            key = session_of(row)
            self.sessions[key] = min(row.entry.started_at, self.sessions.get(key, row.entry.started_at))

    def clear(self) -> None:
        self.series.clear()
        self.sessions.clear()
        for turn, opened in self.turns.items():
            _put(self.earlier, turn, opened)
        self.turns.clear()

    def goes_on(self, row: Row) -> bool:
        """Whether it begins nothing but perhaps a series, and all of it will fit into what was left."""
        return self.has([row], set()) and not self.may_exceed(row)

    @property
    def admitted(self) -> Mapping[str, Opened]:
        """Turns by which accounts can be asked for, as far as these are still theirs."""
        return ChainMap(self.turns, self.earlier)

    def may_exceed(self, row: Row, *, granted: bool = False) -> bool:
        """As `Opened.may_exceed`; of a turn that is not known it is not said, and of one that is unsure it is."""
        if row.entry.id in self.unsure:
            return True
        opened = self.admitted.get(row.entry.id)
        return opened is not None and opened.may_exceed(row, granted=granted)

    def has(self, rows: Sequence[Row], series: set[tuple[str, str]]) -> bool:
        """Whether these rows begin nothing."""
        begun = (self.sessions.get(session_of(row), row.entry.started_at + 1) for row in rows)
        return series <= self.series and all(at <= row.entry.started_at for at, row in zip(begun, rows, strict=True))


def _put(turns: dict[str, T], turn: str, opened: T) -> None:
    if len(turns) >= _MOST:  # the oldest may have ended elsewhere
        del turns[next(iter(turns))]
    turns[turn] = opened


def session_of(row: Row) -> Session:
    return key_values(row.origin, booked(row.entry.session))


def ends(rows: Sequence[Row], known: Known, dialect: Dialect) -> Iterator[Statement]:
    """What ends the turns of rows that are written in the same journey, and says that no limit is exceeded by that."""
    ordered = sorted(rows, key=lambda row: (row.origin.organisation, row.entry.id))
    for organisation, group in groupby(ordered, lambda row: row.origin.organisation):
        turns = [row.entry.id for row in group]
        if others := [turn for turn in turns if turn not in known.turns]:
            yield _NONE_OPEN.format(turns=", ".join("?" * len(others))), (organisation, *others)
        if len(others) < len(turns):
            yield from holding.ends(organisation, turns)
    yield from of_unpriced(rows)
    ended = [(row, opened) for row in ordered if (opened := known.turns.get(row.entry.id))]
    for row, opened in ended:
        yield from holding.surcharges(row, holding.beyond(opened.holds, row))
    yield from overshoot.none_of([(row, opened.accounts) for row, opened in ended], dialect)


def none_new(rows: Sequence[Row]) -> Iterator[Statement]:
    """Says that all rows are there, and that their turns hold nothing."""
    turns: dict[str, set[str]] = {}
    for row in rows:
        turns.setdefault(row.origin.organisation, set()).add(row.entry.id)
    for organisation, some in turns.items():
        marks, values = ", ".join("?" * len(some)), (organisation, *sorted(some))
        yield _ALL_THERE.format(turns=marks), (*values, len(some))
        yield _NONE_OPEN.format(turns=marks), values
