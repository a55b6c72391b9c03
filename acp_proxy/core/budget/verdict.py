"""Whether budgets admit a prompt, what it holds while it runs, and what happens to a running turn that costs more.

Decides on given standings: a ledger reads them, and stores the holds, in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize

Decision = Literal["allow", "warn", "deny", "shadow_deny"]
MidTurn = Literal["nothing", "deny_next_tool", "cancel"]

WHEN_EXHAUSTED: dict[str, Decision] = {"enforce": "deny", "warn": "warn", "shadow": "shadow_deny"}


class Verdict(Struct, frozen=True):
    """The decision of all budgets together. `holds` are amounts above 0 in the unit of their account, none if refused.

    `binding` is the account to name in a refusal, None if admitted. `decisions` has the decision of each account by
    itself: "allow" for an account that did not object to a prompt which another one refused.
    """

    binding: Standing | None
    holds: tuple[tuple[Account, int], ...]
    decisions: tuple[tuple[Account, Decision], ...]

    @property
    def admitted(self) -> bool:
        return self.binding is None


def decide(standings: Sequence[Standing], sizes: Sequence[HoldSize], *, unpriced: bool = False) -> Verdict:
    """Admit if no enforcing account objects; `sizes` belong to `standings` one by one.

    `unpriced`: the turn's cost will not be known, its model having no price. With `on_unpriced = "deny"` a budget of
    money is then against it.
    """
    holds: list[tuple[Account, int]] = []
    decisions: list[tuple[Account, Decision]] = []
    denied: list[Standing] = []
    for standing, size in zip(standings, sizes, strict=True):
        account = standing.account
        amount = size.within(standing.left)
        decision: Decision = "allow"
        if amount is None or (unpriced and denies_unpriced(account)):
            decision = WHEN_EXHAUSTED[account.budget.mode]
        if amount is not None:
            holds.append((account, amount))
        if decision == "deny":
            denied.append(standing)
        decisions.append((account, decision))
    if denied:
        return Verdict(max(denied, key=_binds_until), (), tuple(decisions))
    return Verdict(None, tuple(holds), tuple(decisions))


def denies_unpriced(account: Account) -> bool:
    """Whether a turn without a price is denied, whatever is left."""
    return account.budget.limit.is_money and account.budget.on_unpriced == "deny"


def mid_turn(standing: Standing, own_hold: int, so_far: int) -> MidTurn:
    """What `on_exceed` demands of a running turn that has cost `so_far`; `standing.held` includes its `own_hold`.

    A turn within its hold is never stopped, even if the limit was lowered since. Beyond its hold it may use what is
    left, but not what other turns hold.
    """
    budget = standing.account.budget
    beyond = so_far - own_hold
    if budget.mode != "enforce" or budget.on_exceed == "finish_turn" or beyond <= max(0, standing.left):
        return "nothing"
    return budget.on_exceed


def _binds_until(standing: Standing) -> float:
    """A refusal names the budget that will refuse for the longest time; of equal ones the first."""
    account = standing.account
    if account.resets_at is not None:
        return account.resets_at
    return float("inf") if account.budget.window.name == "total" else 0
