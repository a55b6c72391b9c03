"""The size of holds, from the usage of recent turns, which is read after each turn and kept in memory."""

from __future__ import annotations

from collections.abc import Iterable

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import RECENT, HoldSize, in_unit
from acp_proxy.core.entry import Origin
from acp_proxy.ledger.budgets import BudgetLedger

_Key = tuple[str, str, str | None]  # agent, unit, model


class Sizes:
    """Read in the ledger's thread; `of` also elsewhere. For one user."""

    def __init__(self) -> None:
        self._recent: dict[_Key, list[int]] = {}

    def of(self, account: Account, origin: Origin, model: str | None) -> HoldSize:
        agents = in_unit(account.budget, lambda unit: self._recent.get((origin.agent, unit, None), ()))
        own = in_unit(account.budget, lambda unit: self._recent.get((origin.agent, unit, model), ())) if model else ()
        return HoldSize.of(account.budget, own, agents)

    def learn(
        self,
        ledger: BudgetLedger,
        accounts: Iterable[Account],
        origin: Origin,
        model: str | None,
        *,
        anew: bool = False,
    ) -> None:
        """Read what is not known yet, or all of it again. Raises LedgerError."""
        for unit in {unit for account in accounts if account.budget.hold == "auto" for unit in account.budget.units}:
            for key in {(origin.agent, unit, None), (origin.agent, unit, model)}:
                if anew or key not in self._recent:
                    self._recent[key] = _read(ledger, origin, unit, key[2])


def _read(ledger: BudgetLedger, origin: Origin, unit: str, model: str | None) -> list[int]:
    if model is None:
        return ledger.recent_costs(origin.organisation, origin.agent, unit, n=RECENT)
    return ledger.recent_costs(origin.organisation, origin.agent, unit, model=model, user=origin.user, n=RECENT)
