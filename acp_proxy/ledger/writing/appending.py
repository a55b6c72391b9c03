"""Rows that are about to be appended, prepared before the transaction, because other writers wait for that."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core.entry import IMPORT
from acp_proxy.ledger import Row, exports
from acp_proxy.ledger.accounts import balance_updates, holding, overshoot, pending_rows
from acp_proxy.ledger.accounts.overshoot import Lock
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import note_unpriced
from acp_proxy.ledger.session_keys import note_sessions
from acp_proxy.ledger.statements import Run, execute
from acp_proxy.ledger.sums import tallies
from acp_proxy.ledger.sums.tallies import Tallies
from acp_proxy.ledger.sums.totals import Additions
from acp_proxy.ledger.turn_work import write_work
from acp_proxy.ledger.writing.rows import Prepared, write_rows


class Appending:
    """Written as often as the transaction has to be tried; of rows that are there already nothing changes."""

    def __init__(self, rows: Sequence[Row], *, in_order: bool = False) -> None:
        self._rows = rows
        self._in_order = in_order
        self._prepared = Prepared.of(rows)
        self._additions = Additions.of(rows)
        self._tallies = Tallies(rows).statements()
        self._concerned = balance_updates.concerned(rows)
        self.new = 0  # rows that were not there
        self.due: list[str] = []  # organisations whose rows are to be added up when these are committed

    def write(self, run: Run, known: set[tuple[str, str]], dialect: Dialect, lock: Lock) -> set[tuple[str, str]]:
        """The ids of series that are there now, with their organisations; `known` ones were before."""
        written = write_rows(run, self._prepared, in_order=self._in_order)
        self.new = len(written.rows)
        additions, counted, concerned = self._additions, self._tallies, self._concerned
        if len(written.rows) < len(self._rows):
            additions, counted = Additions.of(written.rows), Tallies(written.rows).statements()
            concerned = balance_updates.concerned(written.rows)
        note_sessions(run, written.first)
        write_work(run, written.rows)
        note_unpriced(run, written.rows)
        ended = holding.settle(run, self._rows)
        tallies.begin_sessions(run, written.first, additions.write(run, known))
        execute(run, counted)
        if dialect.serial:
            balance_updates.add(run, concerned)
        else:
            self.due = pending_rows.note(run, written.rows)
        overshoot.count(run, ended, written.rows, dialect, lock)
        _note_turns(run, written.rows)
        return set(additions.series)


def _note_turns(run: Run, rows: Sequence[Row]) -> None:
    """For exporters, who have no use for what was done before there were any."""
    told = [row for row in rows if row.origin.client != IMPORT]
    for organisation in sorted({row.origin.organisation for row in told}):
        of_one = [row.entry for row in told if row.origin.organisation == organisation]
        at = max(entry.ended_at for entry in of_one)
        exports.note(run, organisation, "turn", [entry.id for entry in of_one], at)
        exports.note(run, organisation, "crash", [each.id for each in of_one if each.stop_reason == "crashed"], at)
