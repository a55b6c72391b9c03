"""Who asks, as the token of a request has it. Nothing that a proxy says of itself is part of it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

Role: TypeAlias = Literal["administrator", "finance", "lead", "developer", "service"]

SCOPES: Final = ("meter", "read", "metrics", "scim")


class Identity(Struct, frozen=True):
    """`token` is the id of the token, never the token itself; `machine` that of the machine it was given to."""

    user: str
    organisation: str
    team: str | None
    role: Role
    teams_led: tuple[str, ...] = ()
    token: str = ""
    machine: str | None = None
    expires_at: int | None = None  # Unix s; None: until it is revoked
    scopes: tuple[str, ...] = ()  # what its token is good for; an empty one is for all that the role may do

    def may(self, scope: str) -> bool:
        """Whether its token is good for this; what the role may do is another question."""
        return not self.scopes or scope in self.scopes
