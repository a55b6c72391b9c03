"""Requests for more than a budget allows: what somebody asks for, and what became of it. Values only."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Account, Layer, Per

RequestState = Literal["pending", "approved", "denied"]


class Wish(Struct, frozen=True):
    """More of one account of a budget. `id` is made by who asks, so that the same wish is noted once."""

    id: str
    layer: Layer
    budget: str  # its name
    per: Per | None
    value: str | None  # of the dimension that the budget is `per`, else its owner
    amount: int  # in `unit`, like a `Limit`
    unit: str
    why: str

    def is_of(self, account: Account) -> bool:
        """Whether it is for more of this one."""
        budget = account.budget
        return (self.layer, self.budget, self.value) == (budget.layer, budget.name, account.value)


class MoreRequest(Struct, frozen=True):
    """A wish of a user, and the decision on it. Times are Unix ns; `team` is the user's when it was asked for."""

    wish: Wish
    user: str
    team: str | None
    at: int
    state: RequestState = "pending"
    decided_at: int | None = None
    decided_by: str | None = None
    amount: int | None = None  # that was granted, in the wish's unit
    until: int | None = None  # when the grant ends
    note: str = ""


class Decision(Struct, frozen=True):
    """On the request with this id. To approve needs an end; without an amount it is the one that was asked for."""

    id: str
    approve: bool
    amount: int | None = None
    until: int | None = None
    note: str = ""
