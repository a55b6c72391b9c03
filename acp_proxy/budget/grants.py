"""Grants, which allow more than a budget's limit for a while: created from arguments, and listed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct

from acp_proxy.budget import with_unit
from acp_proxy.core.budget import Budget, Limit
from acp_proxy.core.money import NANO, Money, exact_text, is_money
from acp_proxy.core.scope import Subject
from acp_proxy.ledger.budgets import Grant
from acp_proxy.report.formats import as_json_text
from acp_proxy.system.errors import UsageError
from acp_proxy.system.ids import uuid7
from acp_proxy.text import times
from acp_proxy.text.figures import clean
from acp_proxy.text.table import Column
from acp_proxy.text.times import Zone, rfc3339

EACH = "*"  # as the value of --for-user …: each of them has it
_MOST = 2**63 - 1  # what a ledger column holds
_LONGEST_REASON = 500  # characters

Named = Mapping[tuple[str, str], Budget]
"""Budgets by their layer and name."""


class Asked(Struct, frozen=True):
    """As it was typed. `values` are those of `--for-user` …, by the dimension, where they were given."""

    budget: str
    amount: str
    duration: str
    reason: str
    layer: str | None
    values: Mapping[str, str]


def granted(asked: Asked, budgets: Sequence[Budget], own: Subject, now: int) -> tuple[Budget, Grant]:
    """`own` grants, and gets the grant unless another subject is named. Raises UsageError."""
    budget = named_budget(asked.budget, asked.layer, budgets)
    grant = Grant(
        id=uuid7(now),
        organisation=own.organisation,
        layer=budget.layer,
        budget=budget.name,
        value=value_of(budget, asked.values, own),
        amount=amount_of(asked.amount, budget.limit.unit),
        unit=budget.limit.unit,
        at=now,
        until=end_of(asked.duration, now),
        who=own.user,
        why=checked_reason(asked.reason),
    )
    return budget, grant


def confirmation(grant: Grant, budget: Budget, zone: Zone) -> str:
    """One line: what was granted, the recipient, and the end."""
    whose = "" if budget.per is None else f" ({f'{budget.per} {grant.value}' if grant.value else f'each {budget.per}'})"
    more = with_unit(grant.amount, Limit(grant.amount, grant.unit))
    until = f"{zone.local(grant.until):%Y-%m-%d %H:%M %Z}".rstrip()  # not every zone has a name
    return clean(f'Granted {more} on top of budget "{grant.budget}"{whose} until {until}.') + "\n"


def columns(grants: Sequence[Grant], budgets: Sequence[Budget], zone: Zone, now: int) -> list[Column]:
    """The latest first; those that count no longer are marked."""
    latest, named = grants[::-1], _by_name(budgets)
    return [
        Column("budget", [clean(grant.budget) for grant in latest], right=False, name=True),
        Column("for", [clean(grant.value or "all") for grant in latest], right=False, name=True),
        Column("amount", [with_unit(grant.amount, Limit(grant.amount, grant.unit), column=True) for grant in latest]),
        Column("granted", [_moment(grant.at, zone) for grant in latest], right=False, spare=3),
        Column("until", [_moment(grant.until, zone) for grant in latest], right=False),
        Column("", [clean(_state(grant, named, now)) for grant in latest], right=False),
        Column("by", [clean(grant.who) for grant in latest], right=False, name=True, spare=2),
        Column("reason", [clean(grant.why) for grant in latest], right=False, name=True, spare=1),
    ]


def as_json(grants: Sequence[Grant], budgets: Sequence[Budget], now: int) -> str:
    """In the order in which they were made."""
    named = _by_name(budgets)
    return as_json_text({"grants": [_object(grant, named, now) for grant in grants]})


def _object(grant: Grant, named: Named, now: int) -> dict[str, object]:
    return {
        "id": grant.id,
        "budget": grant.budget,
        "layer": grant.layer,
        "for": grant.value,
        "amount": exact_text(grant.amount, grant.unit),
        "unit": grant.unit,
        "granted_at": rfc3339(grant.at),
        "expires_at": rfc3339(grant.until),
        "active": not _state(grant, named, now),
        "by": grant.who,
        "reason": grant.why,
    }


def _by_name(budgets: Sequence[Budget]) -> Named:
    return {(budget.layer, budget.name): budget for budget in budgets}


def _state(grant: Grant, named: Named, now: int) -> str:
    """Why a grant does not count, else empty. Unknown for a budget of another user."""
    if not grant.at <= now < grant.until:
        return "over"
    budget = named.get((grant.layer, grant.budget))
    if budget is None or budget.limit.unit == grant.unit:
        return ""
    if budget.owner is not None and budget.per in (None, "user") and grant.value not in (None, budget.owner):
        return ""
    return f"the limit is in {budget.limit.unit}"


def _moment(at: int, zone: Zone) -> str:
    return zone.local(at).strftime("%Y-%m-%d %H:%M")


def named_budget(name: str, layer: str | None, budgets: Sequence[Budget]) -> Budget:
    known = [budget for budget in budgets if budget.layer != "flag"]
    found = [budget for budget in known if budget.name == name and layer in (None, budget.layer)]
    match found:
        case [budget]:
            return budget
        case []:
            of_layer = f" of layer {layer}" if layer else ""
            raise UsageError(f'no budget{of_layer} is called "{clean(name)}"{_suggestion(name, known)}')
    layers = " or ".join(f"--layer {budget.layer}" for budget in found)
    raise UsageError(f'{len(found)} budgets are called "{clean(name)}": {layers} says which')


def _suggestion(name: str, known: Sequence[Budget]) -> str:
    names = list(dict.fromkeys(budget.name for budget in known))
    if not names:
        return "; no budget is configured"
    if other := next((budget.layer for budget in known if budget.name == name), None):
        return f"; one of layer {other} is"
    if close := get_close_matches(name, names, 1):
        return f'; did you mean "{close[0]}"?'
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"


def value_of(budget: Budget, values: Mapping[str, str], own: Subject) -> str | None:
    for dimension, value in values.items():
        if not value:
            raise UsageError(f"--for-{dimension}: expected a name, or {EACH} for all")
        if dimension != budget.per:
            all_of_it = "is one for all" if budget.owner is None else f"is {clean(budget.owner)}'s alone"
            which = f"is one for each {budget.per}" if budget.per else all_of_it
            raise UsageError(f'--for-{dimension}: budget "{budget.name}" {which}')
    if budget.per is None:
        return budget.owner
    whose = values.get(budget.per) or own.of(budget.per)
    if not whose:
        raise UsageError(f'budget "{budget.name}" is one for each {budget.per}: --for-{budget.per} says for which')
    return None if whose == EACH else whose


def amount_of(text: str, unit: str) -> int:
    if is_money(unit):
        nano = _nano(text, unit) if re.fullmatch(r"\d{1,10}(\.\d{1,9})?", text, re.ASCII) else 0
        if nano > 0:
            return nano
        raise UsageError(f"--amount: expected an amount of {unit} above 0, such as 5 or 0.50, not {text!r}")
    # Who writes 1,5 means no 15: a mark stands before three digits, or nowhere.
    written = re.fullmatch(r"\d{1,18}|\d{1,3}((,\d{3}){1,5}|(_\d{3}){1,5})", text, re.ASCII)
    if written and (amount := int(re.sub("[,_]", "", text))):
        return amount
    such_as = 5 if unit == "turns" else 500_000
    raise UsageError(f"--amount: expected a number of {unit} above 0, such as {such_as}, not {text!r}")


def _nano(text: str, unit: str) -> int:
    try:
        return Money.of(text, unit).nano
    except ValueError as error:
        raise UsageError(f"--amount: expected at most {_MOST // NANO:,} {unit}, not {text!r}") from error


def end_of(duration: str, now: int) -> int:
    try:
        until = now + times.duration(duration)
    except ValueError as error:
        raise UsageError(f"--for: {error}") from error
    if until > _MOST:
        raise UsageError("--for: expected a shorter time")
    return until


def checked_reason(text: str) -> str:
    reason = clean(text)
    if not reason or len(reason) > _LONGEST_REASON:
        raise UsageError(f"--reason: expected why, in 1 to {_LONGEST_REASON} characters")
    return reason
