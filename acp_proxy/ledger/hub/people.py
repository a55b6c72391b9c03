"""What an administrator and a hub say to each other about people. As `wire` says."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.ledger.hub.wire import Call


class Forgetting(Struct, frozen=True):
    """Whose name is to be nowhere any more; without an alias in its place the hub makes one."""

    user: str
    alias: str | None = None


class Forgotten(Struct, frozen=True):
    """`rows` of turns are under the alias now, and `lines` of the log of changes were changed."""

    alias: str
    rows: int
    lines: int = 0


FORGET = Call(
    "POST", "/v1/people/forget", "Put an alias in place of a user's name, in all that is kept", Forgetting, Forgotten
)
