"""The configured budgets and the catalog, as all modules of this package need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from acp_proxy.core.budget import Budget, OnUnavailable
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage
from acp_proxy.ledger.budgets import BudgetLedger


class Central(Protocol):
    """The policy of a hub, which itself decides about its budgets: what is known of it is for when it cannot."""

    @property
    def tag(self) -> str | None: ...

    @property
    def budgets(self) -> tuple[Budget, ...]: ...

    @property
    def plan_budgets(self) -> tuple[PlanBudget, ...]: ...

    def refresh(self, ledger: BudgetLedger) -> None:
        """In the ledger's thread. Raises LedgerError."""


class Rules(Struct, frozen=True):
    """`concrete` gives the model that a name stands for, None where that is not known."""

    budgets: tuple[Budget, ...]
    of_plans: tuple[PlanBudget, ...] = ()
    central: Central | None = None  # what a hub has beside them
    process: str | None = None  # names this run, where a budget is given as its flag
    style: Literal["message", "error"] = "message"
    on_unavailable: OnUnavailable = "local"
    estimate: bool = True  # what agents use that report nothing
    timeout: float = 0.25  # seconds
    opening: float = 2.0  # seconds, in its place while the ledger is opened for the first time
    concrete: Callable[[str | None], str | None] = lambda model: model
    price: Callable[[str | None, Usage, int], Priced] = lambda _model, _usage, _at: Priced(None)

    @property
    def known(self) -> tuple[Budget, ...]:
        """All that are known at this moment."""
        return self.budgets if self.central is None else (*self.budgets, *self.central.budgets)

    @property
    def known_of_plans(self) -> tuple[PlanBudget, ...]:
        return self.of_plans if self.central is None else (*self.of_plans, *self.central.plan_budgets)
