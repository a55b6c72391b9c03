"""What budgets are configured, and what the catalog knows: given to everything in this room."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Budget, OnUnavailable
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage
from acp_proxy.times import zone


class Rules(Struct, frozen=True):
    """`concrete` is the model that a name stands for, if it is one."""

    budgets: tuple[Budget, ...]
    process: str | None = None  # names this run, where a budget is given as its flag
    style: Literal["message", "error"] = "message"
    on_unavailable: OnUnavailable = "local"
    timeout: float = 0.25  # seconds
    opening: float = 2.0  # seconds, in its place while the ledger is opened for the first time
    concrete: Callable[[str | None], str | None] = lambda model: model
    price: Callable[[str | None, Usage, int], Priced] = lambda _model, _usage, _at: Priced(None)


def zone_of(name: str) -> tzinfo:
    """The time zone of a budget that was read from a configuration, where it was checked."""
    info = zone(name).info
    if info is None:
        raise ValueError(f"not a time zone: {name}")
    return info
