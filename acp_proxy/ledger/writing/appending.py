"""Rows that are about to be appended, prepared before the transaction, because other writers wait for that.

What a server is asked is one journey, and what follows from the answers another, with which the transaction ends: what
everybody adds to is locked in that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain

from msgspec import Struct

from acp_proxy.core.entry import IMPORT, Entry
from acp_proxy.ledger import Row, exports
from acp_proxy.ledger.accounts import balance_updates, holding, overshoot, pending_rows
from acp_proxy.ledger.accounts.overshoot import Lock
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import of_unpriced
from acp_proxy.ledger.session_keys import note_sessions
from acp_proxy.ledger.statements import Journey, NotAsAssumedError, Run, Statement, execute
from acp_proxy.ledger.sums import tallies
from acp_proxy.ledger.sums.tallies import Tallies
from acp_proxy.ledger.sums.totals import Additions
from acp_proxy.ledger.turn_work import works
from acp_proxy.ledger.writing import at_once
from acp_proxy.ledger.writing.at_once import Known
from acp_proxy.ledger.writing.rows import Prepared
from acp_proxy.ledger.writing.sessions import begin_sessions


class Appending:
    """Written as often as the transaction has to be tried; of rows that are there already nothing changes."""

    def __init__(self, rows: Sequence[Row], known: Known, dialect: Dialect, shard: int, *, in_order: bool) -> None:
        self._rows = rows
        self._known = known
        self._dialect = dialect
        self._shard = shard
        self._in_order = in_order
        self._parts = _Parts.of(rows, shard, in_order=in_order)
        self._looks_first = not dialect.remote
        self._all_there = False  # as it seems
        self._may_exceed = dialect.remote and any(map(known.may_exceed, rows))
        self._locks_first = self._may_exceed and any(known.may_exceed(row, granted=True) for row in rows)
        self._series = set(self._parts.additions.series)
        self._series_written: Collection[tuple[str, str]] = ()
        self.new: Sequence[Row] = ()  # rows that were not there
        self.due: list[str] = []  # organisations whose rows are to be added up when these are committed

    def tries(self, lock: Lock) -> Iterator[Callable[[Run], None]]:
        """What to do in a transaction: the next one where a NotAsAssumedError came of it. Of the last one none does."""
        if self._begins_nothing and not self._may_exceed:
            yield self._write_at_once
        for _ in range(2):
            if self._all_there:
                yield self._write_nothing
            yield partial(self.write, lock=lock)

    @property
    def _begins_nothing(self) -> bool:
        return self._dialect.remote and self._known.has(self._rows, self._series)

    def _write_at_once(self, run: Run) -> None:
        """All rows, where they begin nothing. Raises NotAsAssumedError where they do, or must be looked at."""
        if not self._begins_nothing:  # on a new connection less is known
            raise NotAsAssumedError
        parts, journey = self._parts, Journey()
        sessions = [each for chapter in parts.rows.sessions for each in chapter.one_by_one()]
        journey.add([*parts.rows.all_new, *parts.rows.lines, *sessions])
        self.due = pending_rows.note(journey, self._rows)
        journey.add([*parts.beside, *parts.additions.statements(), *parts.tallies])
        journey.add(list(at_once.ends(self._rows, self._known, self._dialect)))
        try:
            journey.make(run, last=True)
        except NotAsAssumedError as error:
            self._looks_first, self._locks_first = error.is_there, not error.is_there
            self._all_there = error.is_there and len(self._rows) == 1
            raise
        self.new, self._series_written = self._rows, self._series

    def _write_nothing(self, run: Run) -> None:
        """Where all are there, and hold nothing: only that it is kept is waited for."""
        self._all_there = False
        run.each(list(at_once.none_new(self._rows)), last=True)
        self.new, self._series_written, self.due = (), (), []

    def write(self, run: Run, lock: Lock) -> None:
        """Raises NotAsAssumedError once, where some are there and it takes a journey less with those that are not."""
        parts, journey = self._parts, Journey()
        turns = journey.add(parts.rows.turns)
        if self._looks_first:
            journey.make(run)
            parts, journey = self._of_new(parts.rows.new(chain.from_iterable(turns()))), Journey()
        rows = parts.rows.rows
        journey.add(parts.rows.lines)
        sessions = journey.add([chapter.together for chapter in parts.rows.sessions])
        series = journey.add(parts.additions.unsure(self._known.series))
        self.due = [] if self._dialect.serial else pending_rows.note(journey, rows)
        settlement = holding.Settlement(journey, self._rows)
        prefetched = overshoot.PrefetchedStandings(journey, rows, self._known.admitted, self._dialect)
        for row in self._rows:
            if unsure := self._known.unsure.get(row.entry.id):
                lock(run, unsure)
        if self._locks_first:
            prefetched.lock(run, lock)
        journey.make(run)
        if not self._looks_first:
            new = parts.rows.new(chain.from_iterable(turns()))
            if len(new) < len(self._rows):
                self._looks_first, self._all_there = True, not new
                raise NotAsAssumedError(is_there=True)

        self.new, self._series_written = rows, parts.additions.series
        first = begin_sessions(run, parts.rows.sessions, sessions())
        note_sessions(run, first)
        execute(run, [*of_unpriced(rows), *parts.beside])
        ended = settlement.settle(run)
        if self._dialect.serial:
            balance_updates.add(run, parts.by_balance)
        execute(run, parts.additions.statements())
        overshoot.count(run, ended, rows, prefetched, lock)
        tallies.begin_sessions(run, first, parts.additions.named(chain.from_iterable(series())), self._shard)
        execute(run, parts.tallies)

    def committed(self) -> None:
        """What is known from now on: of a row that was there already, perhaps with other figures, nothing."""
        self._known.series.update(self._series_written)
        if self._dialect.remote:
            self._known.ended(self._rows)
            self._known.appended(self.new)

    def _of_new(self, rows: Sequence[Row]) -> _Parts:
        same = len(rows) == len(self._rows)
        return self._parts if same else _Parts.of(rows, self._shard, in_order=self._in_order)


class _Parts(Struct, frozen=True):
    """What all tables need of rows."""

    rows: Prepared
    additions: Additions
    tallies: Sequence[Statement]
    beside: Sequence[Statement]
    by_balance: Sequence[balance_updates.RowsByBalance]

    @classmethod
    def of(cls, rows: Sequence[Row], shard: int, *, in_order: bool) -> _Parts:
        return cls(
            Prepared.of(rows, in_order=in_order),
            Additions.of(rows),
            Tallies(rows, shard).statements(),
            [*works(rows), *_exported(rows)],
            balance_updates.rows_by_balance(rows),
        )


def _exported(rows: Sequence[Row]) -> list[Statement]:
    """For exporters, who have no use for what was done before there were any."""
    told: dict[str, list[Entry]] = {}
    for row in rows:
        if row.origin.client != IMPORT:
            told.setdefault(row.origin.organisation, []).append(row.entry)
    statements: list[Statement] = []
    for organisation in sorted(told):
        entries = told[organisation]
        at = max(each.ended_at for each in entries)
        statements += exports.noting(organisation, "turn", [entry.id for entry in entries], at)
        if crashed := [each.id for each in entries if each.stop_reason == "crashed"]:
            statements += exports.noting(organisation, "crash", crashed, at)
    return statements
