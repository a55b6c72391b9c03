"""The configured budgets and the catalog, as all modules of this package need them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from acp_proxy.core.budget import Account, Budget, OnUnavailable, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.pricing import Priced
from acp_proxy.core.scope import Subject
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.text.times import zone_info

if TYPE_CHECKING:
    from asyncio import Future

    from acp_proxy.core.jsonrpc import Request, Response


class Ask(Protocol):
    """Asks the client something about a request that waits for `admit`, and is to be refused whatever it answers."""

    def __call__(self, about: Request, line: Callable[[str], bytes]) -> Future[Response | None]:
        """`line` makes the question for an id. None where no answer will come, cancelled with the request itself."""


class Lease(Protocol):
    """What a hub has lent to this machine. Amounts are by the keys of accounts."""

    def is_due(self, accounts: Collection[str]) -> bool:
        """Whether the hub is to be asked for another one."""

    def draw(self, turn: str, sizes: Mapping[str, HoldSize], session: str) -> str | None:
        """The lease that pays for a turn and what that causes in its session; None if it cannot."""

    def charge(self, turn: str, charged: Mapping[str, int]) -> None:
        """The turn has ended."""

    def settled(self, turn: str) -> None:
        """Its row is in the ledger, or there is none."""


class Central(Protocol):
    """The policy of a hub, which itself decides about its budgets: what is known of it is for when it cannot."""

    @property
    def tag(self) -> str | None: ...

    @property
    def budgets(self) -> tuple[Budget, ...]: ...

    @property
    def plan_budgets(self) -> tuple[PlanBudget, ...]: ...

    def accounts_of(self, subject: Subject, at: int, turn: str) -> tuple[Account, ...]:
        """Those of the policy that a prompt is charged to, as far as it is known here."""

    @property
    def lease_store(self) -> Lease: ...

    def borrow(self, ledger: BudgetLedger, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int) -> None:
        """Have something lent for turns such as this; in the ledger's thread. Raises LedgerError."""

    def refresh(self, ledger: BudgetLedger) -> None:
        """In the ledger's thread. Raises LedgerError."""


class Rules(Struct, frozen=True):
    """`concrete` gives the model that a name stands for, None where that is not known."""

    budgets: tuple[Budget, ...]
    of_plans: tuple[PlanBudget, ...] = ()
    central: Central | None = None  # what a hub has beside them
    process: str | None = None  # names this run, where a budget is given as its flag
    style: Literal["message", "error"] = "message"
    ask: Literal["form", "choice", "never"] = "form"  # how a refused user is asked, where `asks`
    ask_timeout: float = 120.0  # seconds
    on_unavailable: OnUnavailable = "local"
    estimate: bool = True  # what agents use that report nothing
    asks: bool = False  # whether a hub's leads are asked for more
    timeout: float = 0.25  # seconds
    opening: float = 2.0  # seconds, in its place while the ledger is opened for the first time
    concrete: Callable[[str | None], str | None] = lambda model: model
    price: Callable[[str | None, Usage, int], Priced] = lambda _model, _usage, _at: Priced(None)

    def accounts_of(self, subject: Subject, at: int, turn: str) -> tuple[Account, ...]:
        """Of all budgets that are known at this moment; `at` (Unix ns) is the start of the turn."""
        own = accounts_for(self.budgets, subject, at, zone_info, turn)
        return own if self.central is None else (*own, *self.central.accounts_of(subject, at, turn))

    @property
    def known(self) -> tuple[Budget, ...]:
        """All that are known at this moment."""
        return self.budgets if self.central is None else (*self.budgets, *self.central.budgets)

    @property
    def known_of_plans(self) -> tuple[PlanBudget, ...]:
        return self.of_plans if self.central is None else (*self.of_plans, *self.central.plan_budgets)
