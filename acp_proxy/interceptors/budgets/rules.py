"""The configured budgets and the catalog, as all modules of this package need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Budget, OnUnavailable
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage


class Rules(Struct, frozen=True):
    """`concrete` gives the model that a name stands for, None where that is not known."""

    budgets: tuple[Budget, ...]
    of_plans: tuple[PlanBudget, ...] = ()
    process: str | None = None  # names this run, where a budget is given as its flag
    style: Literal["message", "error"] = "message"
    on_unavailable: OnUnavailable = "local"
    estimate: bool = True  # what agents use that report nothing
    timeout: float = 0.25  # seconds
    opening: float = 2.0  # seconds, in its place while the ledger is opened for the first time
    concrete: Callable[[str | None], str | None] = lambda model: model
    price: Callable[[str | None, Usage, int], Priced] = lambda _model, _usage, _at: Priced(None)
