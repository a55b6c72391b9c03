"""Budgets that a command knows: those of the configuration and, where a hub keeps the ledger, those of its policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from acp_proxy.budget.current_user import own_subject
from acp_proxy.config import Config
from acp_proxy.core.budget import Account, Budget
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.scope import Subject
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.text.figures import clean

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetReader
    from acp_proxy.ledger.hub.ledger import HubLedger
    from acp_proxy.ledger.hub.policy import Whose

_SEES_ALL = ("administrator", "finance")


class Known(Struct, frozen=True):
    """`own` is who asks, by name and team as a hub knows them; `whose` what that says of them."""

    budgets: Sequence[Budget]
    plan_budgets: Sequence[PlanBudget]
    own: Subject
    whose: Whose | None = None

    @property
    def sees_all(self) -> bool:
        """Whether the ledger tells this user of everybody's rows."""
        return self.whose is None or self.whose.role in _SEES_ALL

    def answered(self, accounts: Iterable[Account]) -> list[Account]:
        """Those of which the ledger tells this user how they stand: a hub answers about others as about one's own."""
        return [account for account in accounts if self.whose is None or _is_told(self.whose, account)]


def known(ledger: BudgetReader, config: Config, cwd: Path | None) -> Known:
    """Raises LedgerError."""
    own = own_subject(config, cwd)
    if not is_hub(config.ledger.url):
        return Known(config.budgets, config.plan_budgets, own)
    from acp_proxy.policy import understood

    found = cast("HubLedger", ledger).policy(None)
    if found is None:
        return Known(config.budgets, config.plan_budgets, own)
    policy, whose = understood(found[1].document), found[1].whose
    budgets, plan_budgets = (*config.budgets, *policy.budgets), (*config.plan_budgets, *policy.plan_budgets)
    return Known(budgets, plan_budgets, own if whose is None else whose.subject(own), whose)


def lent(ledger: BudgetReader, config: Config) -> Mapping[str, int]:
    """By the keys of accounts what a hub has lent of them, to machines of the people whose rows this user sees."""
    amounts: dict[str, int] = {}
    if is_hub(config.ledger.url):
        for loan in cast("HubLedger", ledger).loans():
            for key, amount in loan.amounts.items():
                amounts[key] = amounts.get(key, 0) + amount
    return amounts


def which_hold(budgets: Iterable[Budget], url: str) -> list[str]:
    """What is to be said of budgets that a hub and files of this machine have beside each other."""
    layers: dict[str, set[str]] = {}
    for budget in budgets:
        layers.setdefault(budget.name, set()).add(budget.layer)
    if not is_hub(url) or len(set().union(*layers.values())) < 2:
        return []
    twice = [clean(name) for name, found in layers.items() if "hub" in found and len(found) > 1]
    same = f" {', '.join(twice)} of the hub and of a file are two budgets." if twice else ""
    return [f"All of them hold: a prompt goes if each has enough left, so the least decides.{same}"]


def _is_told(whose: Whose, account: Account) -> bool:
    """As the hub narrows what it is asked. Of a machine's own budgets it counts what the user of the token spends."""
    where = dict(account.filter.where)
    sees_all, of_hub = whose.role in _SEES_ALL, account.budget.layer == "hub"
    if where.get("user", whose.user) != whose.user:
        return sees_all and of_hub
    teams = (whose.team, *(whose.teams_led if of_hub and whose.role == "lead" else ()))
    return sees_all or "team" not in where or where["team"] in teams
