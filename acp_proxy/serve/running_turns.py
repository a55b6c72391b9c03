"""Running turns: those of this host from the journals of its proxies, those of other hosts if a budget holds for them.

Journals are only read. The journal of a dead proxy shows no running turn: opening the ledger takes it over.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.core.entry import Origin
from acp_proxy.core.money import Money
from acp_proxy.core.scope import PLAN
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.records import last_rows, read_journal
from acp_proxy.report import Line, session_key
from acp_proxy.report.formats import figures
from acp_proxy.text.times import milliseconds


class Running(Struct, frozen=True):
    """A turn and what is known of it by now; times are Unix ns."""

    id: str
    origin: Origin
    session: str
    started_at: int
    model: str | None
    usage: Usage = NOTHING
    costs: tuple[Money, ...] = ()
    context_used: int | None = None
    context_size: int | None = None

    @property
    def key(self) -> str:
        """The key of its session, as in reports."""
        return session_key(self.origin, self.session)


def running_turns(ledger: BudgetLedger, organisation: str, journals: Sequence[Path], now: int) -> list[Running]:
    """The oldest first. Raises LedgerError."""
    found = {
        row.entry.id: _of_row(row)
        for contents in filter(None, map(read_journal, _journals_of_the_living(journals)))
        if contents.ledger == ledger.url
        for row in contents.open
        if row.origin.organisation == organisation
    }
    for turn in ledger.recent.open_turns(organisation, now):
        if turn.id not in found and not turn.owner.is_gone:
            found[turn.id] = _of_hold(turn)
    return sorted(found.values(), key=lambda turn: (turn.started_at, turn.id))


def attended_sessions(ledger: BudgetLedger, organisation: str, journals: Sequence[Path]) -> set[str]:
    """The keys of sessions on which a proxy of this host worked last that still runs, and so does its agent.

    Of proxies on other hosts nothing is known here but the turns for which a budget holds.
    """
    return {
        session_key(row.origin, row.entry.session)
        for url, rows in map(last_rows, _journals_of_the_living(journals))
        if url == ledger.url
        for row in rows
        if row.origin.organisation == organisation
    }


def described(turn: Running, ledger: BudgetLedger) -> dict[str, Any]:
    """For the page; what the turn does not know of its session's context is what the one before it knew."""
    session = ledger.recent.session(turn.origin, turn.session)
    listed = turn.costs if turn.origin.billing == PLAN else ()
    line = figures(Line(turn.id, usage=turn.usage, costs=turn.costs, not_billed=listed))
    return {
        "id": turn.id,
        "key": turn.key,
        "session": turn.session,
        "title": session.title if session else None,
        "agent": turn.origin.agent,
        "project": turn.origin.project,
        "user": turn.origin.user,
        "team": turn.origin.team,
        "model": turn.model,
        "started_at": milliseconds(turn.started_at),
        "session_started_at": milliseconds(session.started_at if session else turn.started_at),
        "tokens": line["tokens"],
        "cost": line["cost"],
        **({"not_billed": line["not_billed"]} if listed else {}),
        "estimated": True,
        "context_used": _first(turn.context_used, session.context_used if session else None),
        "context_size": _first(turn.context_size, session.context_size if session else None),
    }


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _of_row(row: Row) -> Running:
    entry = row.entry
    return Running(
        entry.id,
        row.origin,
        entry.session,
        entry.started_at,
        entry.model,
        entry.usage,
        entry.costs,
        entry.context_used,
        entry.context_size,
    )


def _of_hold(turn: OpenTurn) -> Running:
    return Running(turn.id, turn.origin, turn.session, turn.started_at, turn.model)


def _journals_of_the_living(directories: Iterable[Path]) -> Iterator[bytes]:
    for directory in directories:
        for path in sorted(directory.glob("*.journal")):
            data = _read_if_locked(path)
            if data is not None:
                yield data


def _read_if_locked(path: Path) -> bytes | None:
    """The journal of a running process; None for a file of a dead process, or a missing one."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read()
            return None
    except OSError:
        return None
