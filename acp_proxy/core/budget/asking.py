"""Asking a refused user, in the editor, whether to ask their leads for more: what is asked, and what an answer means.

Loaded once somebody is asked. Answers come from the client, so that anything may stand in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from decimal import Decimal
from typing import Any

import orjson

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.refusal import enough, refusal_text
from acp_proxy.core.budget.requests import MoreRequest, Wish
from acp_proxy.core.money import NANO, Money, budget_text, is_money

ASKED = -1  # what it is announced under, once for each account and user; a percent is none
LONGEST_REASON = 500  # characters, as a hub has it
_NO_REASON = "asked in the editor"
_WHO_DECIDES = "Whoever decides on it is told. Once it is granted, send the prompt again."


def title(standing: Standing) -> str:
    return f'Ask for more of budget "{standing.account.budget.name}"'


def question(standing: Standing, now: int, zone: tzinfo) -> str:
    """Above the form or the choice."""
    return refusal_text(standing, now, zone, further=f"You can ask for more. {_WHO_DECIDES}")


def fields(standing: Standing) -> dict[str, dict[str, Any]]:
    """Of the form, as JSON schema: how much, and why."""
    unit = standing.account.unit
    amount = {
        "type": "number" if is_money(unit) else "integer",
        "title": f"Amount in {unit}",
        "minimum": 0 if is_money(unit) else 1,
        "default": orjson.Fragment(enough(standing)),
    }
    return {
        "amount": amount,
        "reason": {"type": "string", "title": "Reason", "minLength": 1, "maxLength": LONGEST_REASON},
    }


def choices(standing: Standing) -> tuple[str, str]:
    """What the two options of a choice are called."""
    return f"Ask for {_amount(standing.account, _proposed(standing))} more", "Not now"


def wish(standing: Standing, id: str, content: Mapping[str, Any]) -> Wish:
    """By what was filled in; what is missing is as it was proposed. Raises ValueError with what was expected."""
    account = standing.account
    budget = account.budget
    said = content.get("amount")
    amount = _proposed(standing) if said is None else _amount_in(said, account.unit)
    return Wish(id, budget.layer, budget.name, budget.per, account.value, amount, account.unit, _reason(content))


def was_denied(account: Account, made: Iterable[MoreRequest]) -> bool:
    """Whether one of these requests was denied since the window began."""
    start = account.bounds.start or 0
    return any(each.state == "denied" and (each.decided_at or 0) >= start for each in made)


def _proposed(standing: Standing) -> int:
    return _amount_in(enough(standing), standing.account.unit)


def _amount_in(said: object, unit: str) -> int:
    """Raises ValueError."""
    such_as = f"an amount of {unit} above 0"
    if isinstance(said, bool) or not isinstance(said, int | str | Decimal):
        raise ValueError(f"expected {such_as}")
    try:
        nano = Money.of(said, unit).nano
    except ValueError as error:
        raise ValueError(f"expected {such_as}") from error
    amount, rest = (nano, 0) if is_money(unit) else divmod(nano, NANO)
    if amount <= 0 or rest:
        raise ValueError(f"expected {such_as}")
    return amount


def _reason(content: Mapping[str, Any]) -> str:
    """On one line, without what no terminal shows."""
    said = content.get("reason")
    words = said.split() if isinstance(said, str) else []
    text = "".join(char for char in " ".join(words) if char.isprintable())
    return text[:LONGEST_REASON].strip() or _NO_REASON


def _amount(account: Account, amount: int) -> str:
    return f"{budget_text(amount, account.unit, amount)}{'' if is_money(account.unit) else f' {account.unit}'}"
