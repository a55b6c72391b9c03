"""What proxies, administrators and a hub say to each other about the policy that holds for everybody."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.scope import Subject
from acp_proxy.ledger.hub.wire import Call, Nothing

Table: TypeAlias = dict[str, Any]


class Document(Struct, frozen=True):
    """Budgets as a `[[budget]]` of a configuration file has them; by model, prices as a `[prices."MODEL"]`."""

    budgets: list[Table] = []
    prices: dict[str, Table] = {}


class Whose(Struct, frozen=True):
    """Who asks, as their token has it: by this, and by nothing that a machine says, the budgets of the policy count.

    A hub that is older says nothing of the role and of the teams that a lead leads.
    """

    organisation: str
    user: str
    team: str | None = None
    role: str | None = None
    teams_led: tuple[str, ...] = ()

    def subject(self, claimed: Subject) -> Subject:
        """A subject as the hub knows it, whatever a machine's configuration calls it."""
        return replace(claimed, organisation=self.organisation, user=self.user, team=self.team)


class Kept(Struct, frozen=True):
    """A version of the policy; 0 is that of nothing. `at` (Unix s) and `who` are None for those who do not see all."""

    version: int
    document: Document
    at: int | None = None
    who: str | None = None
    whose: Whose | None = None


class Changes(Struct, frozen=True):
    """By name what a budget is to be, its other keys staying as they are, and by model its prices; None removes one."""

    budgets: dict[str, Table | None] = {}
    prices: dict[str, Table | None] = {}


POLICY = Call("GET", "/v1/policy", "Budgets and prices that hold for who asks; with an ETag", Nothing, Kept)
SET_POLICY = Call("PUT", "/v1/policy", "Put another policy in place of the one that If-Match names", Document, Kept)
CHANGE_POLICY = Call("PATCH", "/v1/policy", "Set or remove single budgets and prices", Changes, Kept)
POLICY_HISTORY = Call("GET", "/v1/policy/history", "The last versions, the latest first", Nothing, list[Kept])
