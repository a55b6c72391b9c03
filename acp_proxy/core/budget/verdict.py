"""Whether budgets let a prompt go, what it holds meanwhile, and what a running turn has coming when it costs more.

Decides on standings as they are given: a ledger gives them, and keeps the holds, in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize

Decision = Literal["allow", "warn", "deny", "shadow_deny"]
MidTurn = Literal["nothing", "deny_next_tool", "cancel"]

_WHEN_EXHAUSTED: dict[str, Decision] = {"enforce": "deny", "warn": "warn", "shadow": "shadow_deny"}


class Verdict(Struct, frozen=True):
    """What all budgets say together. `holds` are amounts above 0 in the unit of their account, none when refused.

    `binding` is the account to name in a refusal, None when admitted. `decisions` say for each account what it said
    by itself: one that had nothing against a prompt which another refused counts "allow".
    """

    binding: Standing | None
    holds: tuple[tuple[Account, int], ...]
    decisions: tuple[tuple[Account, Decision], ...]

    @property
    def admitted(self) -> bool:
        return self.binding is None


def decide(standings: Sequence[Standing], sizes: Sequence[HoldSize], *, unpriced: bool = False) -> Verdict:
    """Admit when no enforcing account is against it; `sizes` belong to `standings` one by one.

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
            decision = _WHEN_EXHAUSTED[account.budget.mode]
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
    """What `on_exceed` wants of a running turn that has cost `so_far`; `standing.held` includes its `own_hold`.

    Within its hold a turn is never stopped: that much was promised, also when the limit was lowered since. Beyond it
    the turn may use what is left, but not what other turns hold.
    """
    budget = standing.account.budget
    beyond = so_far - own_hold
    if budget.mode != "enforce" or budget.on_exceed == "finish_turn" or beyond <= max(0, standing.left):
        return "nothing"
    return budget.on_exceed


def _binds_until(standing: Standing) -> float:
    """The user is told of the budget that will be in the way longest; of equal ones the first."""
    account = standing.account
    if account.resets_at is not None:
        return account.resets_at
    return float("inf") if account.budget.window.name == "total" else 0
