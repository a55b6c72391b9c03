"""Windows of plans, and how they came to be as full as they are: for people, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from acp_proxy.core.plans import FULL, PlanChange, PlanState
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.text import table
from acp_proxy.text.figures import clean
from acp_proxy.text.plans import time_text, used_text, window_name
from acp_proxy.text.times import SECOND, Zone, rfc3339, rfc3339_or_none

_BACK = 7 * DAY  # of history where no interval is asked for
_SHOWN = 40  # changes in a table where nothing else is asked for
_NOTHING = "No agent has told anything of a plan. Claude's tells it where it is signed in to one.\n"
_COLUMNS = ("at", "user", "agent", "window", "used", "status", "resets_at", "overage")


class PlanReport(Struct, frozen=True):
    """`states` as they are now; `changes` of an interval, in the order of time."""

    now: int  # Unix ns
    zone: Zone
    states: Sequence[PlanState]
    changes: Sequence[PlanChange]


def plan_report(
    ledger: BudgetReader,
    organisation: str,
    zone: Zone,
    now: int,
    interval: tuple[int | None, int | None] = (None, None),
    user: str | None = None,
    agent: str | None = None,
) -> PlanReport:
    """With the history of an interval, or of the last seven days. Raises LedgerError."""
    since, until = interval if interval != (None, None) else (now - _BACK, None)
    changes = ledger.plan_changes(organisation, since, until, user)
    return PlanReport(
        now,
        zone,
        [state for state in ledger.plans(organisation, user) if agent in (None, state.agent)],
        sorted((each for each in changes if agent in (None, each.agent)), key=lambda change: change.told.seen_at),
    )


def as_text(report: PlanReport, limit: int | None = None) -> str:
    """Two tables. `limit` is how many changes are shown at most, the latest."""
    if not (report.states or report.changes):
        return _NOTHING
    most = _SHOWN if limit is None else limit
    shown = report.changes[-most:]
    omitted = len(report.changes) - len(shown)
    parts = [table.plain(_standing(report))] if report.states else []
    if shown:
        notes = [f"{omitted:,} earlier changes are not shown; --limit N shows more."] if omitted else []
        parts.append(table.plain(_history(report, shown), notes))
    return "\n".join(parts)


def described(state: PlanState, now: int) -> dict[str, Any]:
    """As in the JSON of a status: `used` is a fraction, null where it is not known, or no longer."""
    told, full_at = state.told, state.full_at(now)
    return {
        "agent": state.agent,
        "window": told.window,
        "used": _fraction(state.used(now)),
        "status": told.status,
        "resets_at": rfc3339_or_none(told.resets_at),
        "overage": told.overage,
        "seen_at": rfc3339(told.seen_at),
        "projected_full_at": None if full_at is None else rfc3339(full_at // SECOND * SECOND),
    }


def as_json(report: PlanReport) -> str:
    from acp_proxy.report.formats import as_json_text

    return as_json_text(
        {
            "at": rfc3339(report.now),
            "plans": [{"user": state.user, **described(state, report.now)} for state in report.states],
            "history": [dict(zip(_COLUMNS, _cells(change), strict=True)) for change in report.changes],
        }
    )


def as_csv(report: PlanReport) -> Iterator[str]:
    """The history alone."""
    from acp_proxy.report.spreadsheet import csv_in_pieces, spreadsheet_text

    def quoted(change: PlanChange) -> list[object]:
        return [spreadsheet_text(cell) if isinstance(cell, str) else cell for cell in _cells(change)]

    return csv_in_pieces(_COLUMNS, map(quoted, report.changes))


def _cells(change: PlanChange) -> tuple[object, ...]:
    told = change.told
    whose = (rfc3339(told.seen_at), change.user, change.agent, told.window)
    return (*whose, _fraction(told.used), told.status, rfc3339_or_none(told.resets_at), told.overage)


def _fraction(used: int | None) -> float | None:
    return None if used is None else used / FULL


def _standing(report: PlanReport) -> list[table.Column]:
    now, states = report.now, report.states

    def times(title: str, each: Sequence[int | None]) -> table.Column:
        return _words(title, ["-" if at is None else time_text(at, now, report.zone) for at in each])

    return [
        *_whose([(state.user, state.agent) for state in states]),
        _words("window", [window_name(state.told.window) for state in states]),
        table.Column("used", [used_text(state.used(now)) for state in states]),
        _words("status", ["was reset" if each.is_over(now) else _word(each.told.status) for each in states]),
        times("resets", [state.told.resets_at for state in states]),
        times("full at this pace", [state.full_at(now) for state in states]),
        times("seen", [state.told.seen_at for state in states]),
    ]


def _history(report: PlanReport, changes: Sequence[PlanChange]) -> list[table.Column]:
    return [
        _words("when", [f"{report.zone.local(each.told.seen_at):%Y-%m-%d %H:%M}" for each in changes]),
        *_whose([(each.user, each.agent) for each in changes]),
        _words("window", [window_name(each.told.window) for each in changes]),
        table.Column("used", [used_text(each.told.used) for each in changes]),
        _words("status", [_word(each.told.status) for each in changes]),
    ]


def _whose(each: Sequence[tuple[str, str]]) -> list[table.Column]:
    """Users where there are several."""
    users = [clean(user) for user, _ in each]
    agents = _words("agent", [clean(agent.rpartition("/")[2]) for _, agent in each])
    return [_words("user", users), agents] if len(set(users)) > 1 else [agents]


def _words(title: str, cells: Sequence[str]) -> table.Column:
    return table.Column(title, cells, right=False)


def _word(status: str | None) -> str:
    return clean(status) if status else "-"
