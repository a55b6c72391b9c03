"""Budgets of the policy as spend limits, and the other way round. Reads and writes nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from acp_proxy.core.budget import Budget
from acp_proxy.core.money import decimal_text
from acp_proxy.core.scope import Scope as Scoped
from acp_proxy.core.windows import Window
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending.calls import OfGroup, OfOrganization, OfUser, Period, Scope
from acp_proxy.ledger.hub.policy import Table

CURRENCY: Final = "USD"
WINDOWS: dict[Period, Window] = {"daily": Window("day"), "weekly": Window("week"), "monthly": Window("month")}
_PERIODS = {window: period for period, window in WINDOWS.items()}
_CENT = 10**7  # nano-units
_MOST_CENTS = (2**63 - 1) // _CENT
_CENTS = re.compile(r"0|[1-9][0-9]{0,17}")
_LONGEST_NAME = 200  # characters


class Cap(Struct, frozen=True):
    """A budget that is a spend limit."""

    id: str
    budget: Budget
    scope: Scope
    period: Period

    def applies_to(self, user: str, teams: Collection[str]) -> bool:
        match self.scope:
            case OfUser(user_id):
                return user_id == user
            case OfGroup(team):
                return team in teams
        return True


def caps_of(budgets: Iterable[Budget]) -> list[Cap]:
    """Those of them that are spend limits, whoever made them, in their order."""
    return [cap for cap in map(cap_of, budgets) if cap is not None]


def cap_of(budget: Budget) -> Cap | None:
    """None for a pool, one that only warns, or of something else than US dollars in a period of UTC."""
    period, scope = _PERIODS.get(budget.window), _scope_of(budget)
    counts = budget.mode == "enforce" and budget.limit.unit == CURRENCY and budget.zone == "UTC"
    if not counts or period is None or scope is None:
        return None
    return Cap(id_of(budget.name), budget, scope, period)


def id_of(name: str) -> str:
    return f"spl_{hashlib.sha256(name.encode()).hexdigest()[:24]}"


def named(scope: Scope, period: Period) -> str:
    """What a budget is called that this API makes."""
    match scope:
        case OfUser(user):
            return f"spend-limit/{period}/user/{user}"
        case OfGroup(team):
            return f"spend-limit/{period}/team/{team}"
    return f"spend-limit/{period}"


def table_of(scope: Scope, period: Period) -> Table:
    """The keys of such a budget, beside its limit. Raises RefusedError for what is no name."""
    table: Table = {"window": WINDOWS[period].name, "per": "user"}
    match scope:
        case OfUser(user):
            table["scope"] = {"user": _sound("user_id", user)}
        case OfGroup(team):
            table["scope"] = {"team": _sound("rbac_group_id", team)}
    return table


def nano_of(amount: str | None) -> int:
    """Of whole cents. Raises RefusedError."""
    if amount is None:
        raise RefusedError(400, "amount: null lifts no limit here, for all that apply hold; delete the limit instead")
    if not _CENTS.fullmatch(amount) or int(amount) > _MOST_CENTS:
        raise RefusedError(400, 'amount: expected whole cents as text, such as "50000" for 500 US dollars')
    return int(amount) * _CENT


def cents(nano: int) -> str:
    """Exactly: what is no whole cent has a fraction."""
    return decimal_text(nano * 100)


def kind_of(scope: Scope) -> str:
    return str(scope.__struct_config__.tag)


def breadth(scope: Scope) -> int:
    """The more users it is about, the larger."""
    return ("user", "rbac_group", "organization").index(kind_of(scope))


def told(scope: Scope) -> str:
    match scope:
        case OfUser(user):
            return f"user {user!r}"
        case OfGroup(team):
            return f"group {team!r}"
    return "the organization"


def _scope_of(budget: Budget) -> Scope | None:
    match budget.scope:
        case Scoped(user=(user,), team=(), project=(), agent=(), model=()) if "*" not in user:
            return OfUser(user) if budget.per in (None, "user") else None
        case Scoped(user=(), team=(team,), project=(), agent=(), model=()) if "*" not in team:
            return OfGroup(team) if budget.per == "user" else None
        case Scoped(user=(), team=(), project=(), agent=(), model=()):
            return OfOrganization() if budget.per == "user" else None
    return None


def _sound(key: str, name: str) -> str:
    if not name.isprintable() or not name.strip() or len(name) > _LONGEST_NAME or "*" in name:
        raise RefusedError(400, f"scope.{key}: expected a name of up to {_LONGEST_NAME} characters, without *")
    return name
