"""The result of a replay, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from acp_proxy.budget import with_unit
from acp_proxy.budget.replay import Outcome, Replay
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import table
from acp_proxy.text.figures import clean, counted
from acp_proxy.text.table import Column
from acp_proxy.text.times import SECOND, rfc3339_or_none, zone_info


def plain(found: Replay) -> str:
    return f"{_summary(found)}\n{table.plain(_columns(found.outcomes), _notes(found))}"


def coloured(found: Replay, width: int, environ: Mapping[str, str]) -> str:
    return f"{_summary(found)}\n{table.coloured(_columns(found.outcomes), _notes(found), None, width, environ)}"


def as_json(found: Replay) -> str:
    return as_json_text(
        {
            "since": rfc3339_or_none(found.first),
            "turns": found.turns,
            "refused": found.refused,
            "budgets": [_object(outcome) for outcome in found.outcomes],
        }
    )


def _object(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.budget.name,
        "mode": outcome.budget.mode,
        "turns": outcome.turns,
        "warned": outcome.warned,
        "refused": outcome.refused if _refuses(outcome) else 0,
        "let_through": 0 if _refuses(outcome) else outcome.refused,
        "first_warned_at": rfc3339_or_none(outcome.first_warned),
        "first_refused_at": rfc3339_or_none(outcome.first_refused),
    }


def _summary(found: Replay) -> str:
    if not found.turns:
        return "The ledger has no turns of that time.\n"
    refused = f"{found.refused:,}" if found.refused else "None"
    return f"{refused} of {counted(found.turns, 'turn')} would have been refused.\n"


def _columns(outcomes: Sequence[Outcome]) -> list[Column]:
    budgets = [outcome.budget for outcome in outcomes]
    return [
        Column("budget", [clean(budget.name) for budget in budgets], right=False, name=True),
        Column("mode", [budget.mode for budget in budgets], right=False, spare=3),
        Column("window", [budget.window.text for budget in budgets], right=False, spare=4),
        Column("limit", [with_unit(budget.limit.amount, budget.limit, column=True) for budget in budgets], spare=5),
        Column("turns", [f"{outcome.turns:,}" for outcome in outcomes]),
        Column("warned", [f"{outcome.warned:,}" for outcome in outcomes]),
        Column("first warning", [_moment(outcome, outcome.first_warned) for outcome in outcomes], right=False, spare=2),
        Column("refused", [_refused(outcome) for outcome in outcomes]),
        Column(
            "first refusal", [_moment(outcome, outcome.first_refused) for outcome in outcomes], right=False, spare=1
        ),
    ]


def _notes(found: Replay) -> list[str]:
    let_through = any(outcome.refused and not _refuses(outcome) for outcome in found.outcomes)
    return ["(…) beyond the limit, but let through: only mode enforce refuses"] if let_through else []


def _refuses(outcome: Outcome) -> bool:
    return outcome.budget.mode == "enforce"


def _refused(outcome: Outcome) -> str:
    """With other modes than "enforce" they would have been let through."""
    return f"{outcome.refused:,}" if _refuses(outcome) or not outcome.refused else f"({outcome.refused:,})"


def _moment(outcome: Outcome, at: int | None) -> str:
    zone = zone_info(outcome.budget.zone)
    return "" if at is None else f"{datetime.fromtimestamp(at // SECOND, zone):%Y-%m-%d %H:%M %Z}"
