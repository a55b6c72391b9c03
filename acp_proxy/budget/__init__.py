"""The command `acp-proxy budget`: the state of budgets, whether a prompt would be admitted, grants, and simulation.

This module has what the others share: amounts and times as text. Nothing in this package enforces a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from acp_proxy.core.budget import Account, Limit
from acp_proxy.core.money import NANO, Money
from acp_proxy.text.figures import cost_text, counted, tokens_text
from acp_proxy.text.times import SECOND, zone_info

_NO_END = {"turn": "each turn", "session": "each session", "total": "never", "rolling": "as time passes"}


def whose(account: Account) -> Mapping[str, str]:
    """The subject of a budget by kind: a user, team, project or agent, and a session.

    A session that does not exist yet is left out.
    """
    found: dict[str, str] = {}
    if account.budget.per and account.value:
        found[account.budget.per] = account.value
    if session := dict(account.filter.where).get("session"):
        found["session"] = session
    return found


def amount_text(amount: int, limit: Limit, *, column: bool = True) -> str:
    """An amount in the limit's unit, rounded for people, finer where the limit is small: `$1.25`, `1.20M`, `17`."""
    if not limit.is_money:
        return tokens_text(amount) if limit.unit == "tokens" else f"{amount:,}"
    return cost_text((Money(amount, limit.unit),), 2 if limit.amount >= NANO else 4, column=column)


def with_unit(amount: int, limit: Limit, *, column: bool = False) -> str:
    """The same with what is counted: `$1.25`, `1.20M tokens`, `1 turn`."""
    if limit.is_money:
        return amount_text(amount, limit, column=column)
    return counted(amount, "turn") if limit.unit == "turns" else f"{tokens_text(amount)} tokens"


def reset_text(account: Account) -> str:
    """When it resets, in the budget's zone: `24 Nov 00:00 CET`, `never`."""
    if account.resets_at is None:
        return _NO_END[account.budget.window.name]
    return f"{datetime.fromtimestamp(account.resets_at // SECOND, zone_info(account.budget.zone)):%d %b %H:%M %Z}"
