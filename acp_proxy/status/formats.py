"""A status as one line for prompts and bars, or as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_proxy.budget import amount_text, reset_text, with_unit
from acp_proxy.core.money import NANO, Money, summed
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Row
from acp_proxy.report import Line, turn_line
from acp_proxy.status.overview import FIELDS, Status
from acp_proxy.text.figures import clean, cost_text, tokens_text
from acp_proxy.text.times import rfc3339

if TYPE_CHECKING:
    from acp_proxy.core.budget.plan_limits import PlanStanding

UNKNOWN = "-"
_LETTERS = "abcdefghijklmnopqrstuvwxyz_"


def wrong_with(form: str) -> str | None:
    """The error of a format with fields in braces, in a line for the user. Other braces are text."""
    if any("\ud800" <= sign <= "\udfff" for sign in form):  # bytes of the command line that are no text
        return "expected text in UTF-8"
    for name, after in _fields(form):
        if name is None:
            begun = after[: len(after) - len(after.lstrip(_LETTERS))]
            if begun in FIELDS:
                return f"{{{begun} is not closed; write {{{begun}}}"
        elif name not in FIELDS:
            return f"unknown field {{{clean(name)}}}; there are {', '.join(FIELDS)}, and the format json"
    return None


def as_line(status: Status) -> str:
    """`$1.24 today · $3.65 left of daily · last turn $0.0123`: what is not known, or not limited, is left
    out. Of a plan its windows come last.
    """
    values = _values(status)
    parts = [f"{values['today']} today{_list_price(status.today)}"]
    if standing := status.tightest:
        over = with_unit(-standing.left, standing.account.budget.limit)
        left = f"{over} over" if standing.left < 0 else f"{values['left']} left of"
        parts.append(f"{left} {values['budget']}")
    if status.last:
        parts.append(f"last turn {values['last']}")
    if values["plan"] != UNKNOWN:
        parts.append(values["plan"])
    parts += _of_plan_budgets(status.plan_standings)
    if status.requests:
        parts.append(values["requests"])
    return " · ".join(parts) + "\n"


def as_text(status: Status, form: str) -> str:
    """`form` with its fields filled in; what is not known is `-`."""
    values = _values(status)
    filled = ("{" + after if name is None else values[name] + after for name, after in _fields(form))
    return "".join((form.partition("{")[0], *filled, "\n"))


def as_json(status: Status) -> str:
    from acp_proxy.budget.listing import described
    from acp_proxy.budget.on_plans import described as described_standing
    from acp_proxy.report.formats import as_json_text, figures
    from acp_proxy.report.formats import described as described_line
    from acp_proxy.report.plans import described as described_plan

    last = status.last
    return as_json_text(
        {
            "at": rfc3339(status.at),
            "timezone": status.zone.name,
            "user": status.user,
            "today": figures(status.today),
            "week": figures(status.week),
            "month": figures(status.month),
            "budgets": [described(standing) for standing in status.standings],
            "plans": [described_plan(state, status.at) for state in status.plans],
            "plan_budgets": [described_standing(standing) for standing in status.plan_standings],
            **_of_hub(status),
            "last_turn": described_line(turn_line(last)) if last else None,
        }
    )


def _of_hub(status: Status) -> dict[str, object]:
    if not (status.requests or status.lent):
        return {}
    from acp_proxy.status import at_hub

    return {
        "requests": [at_hub.described(each) for each in status.requests],
        "lent": [at_hub.described_loan(each) for each in status.lent],
    }


def _fields(form: str) -> Iterator[tuple[str | None, str]]:
    """At each opening brace the name that it begins, None where there is none, and the text up to the next one.

    A name begins with a letter; an object of JSON does not. By hand: to make a pattern takes 1 ms.
    """
    for part in form.split("{")[1:]:
        name, closing, after = part.partition("}")
        yield (name, after) if closing and name[:1].isalpha() else (None, part)


def _values(status: Status) -> dict[str, str]:
    values = dict.fromkeys(FIELDS, UNKNOWN)
    values |= {
        "today": _spent(status.today),
        "week": _spent(status.week),
        "month": _spent(status.month),
        "turns": f"{status.today.turns:,}",
        "tokens": tokens_text(status.today.usage.total),
    }
    if standing := status.tightest:
        limit = standing.account.budget.limit
        values |= {
            "budget": clean(standing.account.budget.name),
            "left": with_unit(standing.left, limit),
            "limit": amount_text(limit.amount, limit, column=False),
            "used": str(standing.percent),
            "resets": reset_text(standing.account),
        }
    if status.plans:
        values["plan"] = _plans(status)
    if status.requests or status.lent:
        from acp_proxy.status import at_hub

        values["requests"] = " · ".join(at_hub.in_short(status.requests)) or UNKNOWN
        values["lent"] = at_hub.lent_in_short(status.lent) or UNKNOWN
    return values | (_of_turn(status.last) if status.last else {})


def _plans(status: Status) -> str:
    """`5 h: 62 % until 14:00 · week: 34 % until Mon 09:00`, with the agent where several have a plan.

    What was reset a day ago is no news, and neither is what has no reset and was not seen for so long.
    """
    from acp_proxy.text.plans import state_text  # few are on a plan

    recent = [state for state in status.plans if (state.told.resets_at or state.told.seen_at) > status.at - DAY]
    several = len({state.agent for state in recent}) > 1
    each = (
        f"{clean(state.agent.rpartition('/')[2])} " * several + state_text(state, status.at, status.zone)
        for state in recent
    )
    return " · ".join(each) or UNKNOWN


def _list_price(line: Line) -> str:
    """What of it nobody is billed."""
    if not line.not_billed:
        return ""
    if summed(line.not_billed) == summed(line.costs):
        return " (list price, not billed)"
    return f" ({_spent(replace(line, costs=line.not_billed))} of it at list price, not billed)"


def _of_plan_budgets(standings: Sequence[PlanStanding]) -> Iterator[str]:
    """What refuses a prompt, and what cannot because it is not known how much is used."""
    for standing in standings:
        name = clean(standing.budget.name)
        if standing.decision == "deny":
            yield f"{name} refuses prompts"
        elif standing.used is None and standing.reason is None:
            yield f"{name} refuses nobody: its window is not known"


def _of_turn(row: Row) -> dict[str, str]:
    entry = row.entry
    used, size = entry.context_used, entry.context_size
    return {
        "last": _short(entry.costs, at_least=entry.cost_at_least),
        "last_tokens": UNKNOWN if entry.usage_source == "none" else tokens_text(entry.usage.total),
        "agent": clean(row.origin.agent.rpartition("/")[2]),
        "model": clean(entry.model or UNKNOWN),
        "context": str(used * 100 // size) if used is not None and size else UNKNOWN,
    }


def _spent(line: Line) -> str:
    """Nothing is `$0.00`; what has no known price at all is `?`."""
    if not line.costs and not line.cost_at_least:
        return "$0.00"
    return _short(line.costs, at_least=line.cost_at_least > 0)


def _short(costs: Sequence[Money], *, at_least: bool) -> str:
    """A bar has little room: cents from one unit on."""
    cents = max((abs(cost.nano) for cost in costs), default=0) >= NANO
    return cost_text(costs, 2 if cents else 4, at_least=at_least, column=False)
