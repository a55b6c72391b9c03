"""What a replay found, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from acp_proxy import table
from acp_proxy.budget import with_unit, zone_of
from acp_proxy.budget.replay import Replay, Tally
from acp_proxy.figures import clean, counted
from acp_proxy.report.formats import as_json_text
from acp_proxy.table import Column
from acp_proxy.times import SECOND, rfc3339


def plain(found: Replay) -> str:
    return f"{_summary(found)}\n{table.plain(_columns(found.tallies), _notes(found))}"


def coloured(found: Replay, width: int, environ: Mapping[str, str]) -> str:
    return f"{_summary(found)}\n{table.coloured(_columns(found.tallies), _notes(found), None, width, environ)}"


def as_json(found: Replay) -> str:
    return as_json_text(
        {
            "since": _time(found.first),
            "turns": found.turns,
            "refused": found.refused,
            "budgets": [_object(tally) for tally in found.tallies],
        }
    )


def _object(tally: Tally) -> dict[str, object]:
    return {
        "name": tally.budget.name,
        "mode": tally.budget.mode,
        "turns": tally.turns,
        "warned": tally.warned,
        "refused": tally.refused if _refuses(tally) else 0,
        "let_through": 0 if _refuses(tally) else tally.refused,
        "first_warned_at": _time(tally.first_warned),
        "first_refused_at": _time(tally.first_refused),
    }


def _summary(found: Replay) -> str:
    if not found.turns:
        return "The ledger has no turns of that time.\n"
    refused = f"{found.refused:,}" if found.refused else "None"
    return f"{refused} of {counted(found.turns, 'turn')} would have been refused.\n"


def _columns(tallies: Sequence[Tally]) -> list[Column]:
    budgets = [tally.budget for tally in tallies]
    return [
        Column("budget", [clean(budget.name) for budget in budgets], right=False, name=True),
        Column("mode", [budget.mode for budget in budgets], right=False, spare=3),
        Column("window", [budget.window.text for budget in budgets], right=False, spare=4),
        Column("limit", [with_unit(budget.limit.amount, budget.limit) for budget in budgets], spare=5),
        Column("turns", [f"{tally.turns:,}" for tally in tallies]),
        Column("warned", [f"{tally.warned:,}" for tally in tallies]),
        Column("first warning", [_moment(tally, tally.first_warned) for tally in tallies], right=False, spare=2),
        Column("refused", [_refused(tally) for tally in tallies]),
        Column("first refusal", [_moment(tally, tally.first_refused) for tally in tallies], right=False, spare=1),
    ]


def _notes(found: Replay) -> list[str]:
    let_through = any(tally.refused and not _refuses(tally) for tally in found.tallies)
    return ["(…) beyond the limit, but let through: only mode enforce refuses"] if let_through else []


def _refuses(tally: Tally) -> bool:
    return tally.budget.mode == "enforce"


def _refused(tally: Tally) -> str:
    """With other modes than "enforce" they would have been let through."""
    return f"{tally.refused:,}" if _refuses(tally) or not tally.refused else f"({tally.refused:,})"


def _moment(tally: Tally, at: int | None) -> str:
    zone = zone_of(tally.budget.zone)
    return "" if at is None else f"{datetime.fromtimestamp(at // SECOND, zone):%Y-%m-%d %H:%M %Z}"


def _time(at: int | None) -> str | None:
    return None if at is None else rfc3339(at)
