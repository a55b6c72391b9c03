"""What a proxy and a hub say to each other about leases."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.budget import Account
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.hub.wire import Call, Nothing, Turn, Want


class Lending(Struct, frozen=True):
    """A lease for turns such as this, whose id begins with `lease-`; those `returned` are given back for it."""

    turn: OpenTurn
    wants: list[Want]
    now: int
    returned: list[str] = []


class Lent(Struct, frozen=True):
    """Accounts, and by their numbers what is lent of them; of others nothing. `usable` is ns from the question on."""

    accounts: list[Account]
    amounts: list[tuple[int, int]]
    usable: int


class Loan(Struct, frozen=True):
    """A lease that holds: whose, on which machine, and by the keys of accounts what of it is not spent yet.

    Until `until` (Unix ns, by the hub's clock) it counts as held.
    """

    id: str
    user: str
    team: str | None
    host: str
    at: int
    until: int
    amounts: dict[str, int]


LOANS = Call("GET", "/v1/leases", "What is lent to machines", Nothing, list[Loan])
LEND = Call("POST", "/v1/leases", "Lend a part of each budget to a machine", Lending, Lent)
GIVE_BACK = Call("DELETE", "/v1/leases/{turn}", "Give a lease back", Turn, Nothing)
