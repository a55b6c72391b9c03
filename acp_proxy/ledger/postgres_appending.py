"""A row's way into a ledger on PostgreSQL: what most rows need goes in one statement, for each is a journey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acp_proxy.ledger import holding, overshoot, tallies
from acp_proxy.ledger.appending import Appending
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import note_unpriced
from acp_proxy.ledger.overshoot import Lock
from acp_proxy.ledger.session_keys import note_sessions
from acp_proxy.ledger.totals import Run, Statement
from acp_proxy.ledger.writing import UPSERT_SESSION, is_first

_OF_TURN = "WHERE org_id = ? AND turn = ?"


def together(statements: Iterable[Statement], found: str) -> Statement:
    """One that does what all do, each as `part0`, `part1` and so on, and then finds something."""
    some = list(statements)
    parts = ", ".join(f"part{number} AS ({sql})" for number, (sql, _) in enumerate(some))
    return f"WITH {parts} {found}", [value for _, values in some for value in values]


class AppendingTogether(Appending):
    """One row of series that are known, as most are; all others step by step."""

    def _write_rest(
        self, run: Run, inserted: Sequence[tuple[Any, ...]], known: set[tuple[str, str]], dialect: Dialect, lock: Lock
    ) -> set[tuple[str, str]]:
        if len(self._rows) > 1 or not inserted or not known.issuperset(self._additions.series):
            return super()._write_rest(run, inserted, known, dialect, lock)
        (row,) = self._rows
        organisation, turn = row.origin.organisation, row.entry.id
        later_rows, opened, holds = self._write_one(run, organisation, turn)
        first = [row] if is_first(run, row, later_rows) else []
        note_sessions(run, first)
        note_unpriced(run, [row])
        ended = holding.settled(run, organisation, {turn: row}, opened, holds)
        tallies.begin_sessions(run, first, [])
        overshoot.count(run, ended, [row], dialect, lock)
        return set(self._additions.series)

    def _write_one(self, run: Run, organisation: str, turn: str) -> Sequence[list[tuple[Any, ...]]]:
        """What was found of its session, of the turn that was open, and of what it held."""
        statements: list[Statement] = [
            (UPSERT_SESSION, self._prepared.sessions[0]),
            (f"{holding.END_TURN} {_OF_TURN} {holding.ENDED_TURN}", (organisation, turn)),
            (f"{holding.END_HOLD} {_OF_TURN} {holding.ENDED_HOLD}", (organisation, turn)),
            *self._prepared.lines,
            *self._additions.statements(),
            *self._tallies,
        ]
        found = run(*together(statements, _FOUND))
        sessions = [(later_rows,) for what, _, _, _, _, later_rows in found if what == "session"]
        opened = [(turn, accounts, watched) for what, turn, accounts, _, _, watched in found if what == "opened"]
        holds = [
            (turn, account, amount, unit, estimate)
            for what, turn, account, unit, estimate, amount in found
            if what == "held"
        ]
        return sessions, opened, holds


_FOUND = """
SELECT 'session', '', '', '', '', later_rows FROM part0
UNION ALL SELECT 'opened', turn, accounts, '', '', watched FROM part1
UNION ALL SELECT 'held', turn, account, unit, estimate, amount FROM part2
"""
