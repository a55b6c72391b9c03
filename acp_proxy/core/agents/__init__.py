"""How each released agent counts, by its name and version, with the user's overrides."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

UsageScope = Literal["turn", "session", "last_call", "call", "none"]
InputCounts = Literal["excludes_cache", "includes_cache"]


class ProfileOverride(Struct, frozen=True):
    """`[agents."name"]` of the configuration: overrides how an agent counts."""

    scope: UsageScope | None = None
    input: InputCounts | None = None
