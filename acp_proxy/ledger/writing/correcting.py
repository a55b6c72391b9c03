"""One row in the place of another with its id, for a turn of which more is known now than when it was booked.

Everything that stands on rows moves along in the same transaction: sums, budgets, and the series of metrics. What was
there before is kept, and exporters hear of it. A correction that was made already changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import Row, corrections, exports
from acp_proxy.ledger.accounts.balances import whose_are
from acp_proxy.ledger.notices import of_unpriced
from acp_proxy.ledger.reading.rows import read_some
from acp_proxy.ledger.statements import Run, execute, insertions
from acp_proxy.ledger.sums import peaks, tallies
from acp_proxy.ledger.sums.totals import Additions
from acp_proxy.ledger.writing.rows import line_values

_CHANGE = "UPDATE turn SET usage_source = ?, cost_source = ?, unpriced = ?, detail = ? WHERE org_id = ? AND id = ?"
LockSums = Callable[[Run, str], None]  # of an organisation, as `SqlLedger` has it


class Correcting:
    """Of one row: `before` is what it must be, and `after` has the same id, origin, session, kind and times."""

    def __init__(self, before: Row, after: Row, now: int) -> None:
        self._before, self._after, self._now = before, after, now
        self._key = (after.origin.organisation, after.entry.id)
        self._moved = Additions()
        self._moved.add(before, times=-1)
        self._moved.add(after)

    def write(self, run: Run, known: set[tuple[str, str]], lock_sums: LockSums) -> set[tuple[str, str]] | None:
        """The ids of series that are there now, with their organisations; None where the row is another one by now."""
        found = read_some(run, self._key[0], [self._key[1]])
        if not found or found[0].entry != self._before.entry:
            return None
        number = corrections.note(run, self._before, self._now)
        told = msgspec.json.encode((self._key[1], number, self._now)).decode()
        exports.note(run, self._key[0], "correction", [told], self._now)
        self._replace(run)
        series = self._moved.named(execute(run, self._moved.unsure(known)))
        execute(run, self._moved.statements())
        tallies.begin_sessions(run, (), series, 0)
        peaks.note(run, self._moved)
        lock_sums(run, self._key[0])
        self._settle(run, found[0].process)
        return set(self._moved.series)

    def _replace(self, run: Run) -> None:
        entry = self._after.entry
        run(_CHANGE, (entry.usage_source, entry.cost_source, int(entry.unpriced), entry.detail, *self._key))
        run("DELETE FROM line WHERE org_id = ? AND turn = ?", self._key)
        execute(run, insertions("line", list(line_values(self._after))))

    def _settle(self, run: Run, process: str | None) -> None:
        """Sums of accounts that count it are made anew by who needs them next. What it was charged beyond its row is
        charged no more if the row tells all.
        """
        organisation, entry = self._key[0], self._after.entry
        whose = whose_are(self._after.origin, booked(entry.session), process)
        places = ", ".join("?" * len(whose))
        run(f"DELETE FROM kept_sum WHERE org_id = ? AND whose IN ({places})", (organisation, *whose))
        if not entry.usage_untold and not entry.unpriced:
            run("DELETE FROM surcharge WHERE org_id = ? AND turn = ?", self._key)
        if entry.unpriced and not self._before.entry.unpriced:
            execute(run, of_unpriced([self._after]))
