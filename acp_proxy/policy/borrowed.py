"""What a hub has lent to this machine, as its file says: of which budgets, how much is left of it, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.ledger.hub.lease_store import LeaseStore, steady
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.directories import state_directory


class Borrowed(Struct, frozen=True):
    """Of one budget: an amount in its unit, nano-units for money; `until` is Unix ns."""

    budget: str
    layer: str
    amount: int
    unit: str
    until: int


def borrowed(url: str, user: str, environ: Mapping[str, str], now: int) -> list[Borrowed]:
    """From the hubs at a URL, to a user; nothing where nothing is lent, or its time is over."""
    lease = LeaseStore(url, state_directory(environ) / "hubs").lease()
    if lease is None or lease.whose not in ("", user):
        return []
    until = now + lease.until - steady()
    return [
        Borrowed(name, layer, amount, unit, until)
        for (layer, name, unit), amount in _by_budget(lease.left).items()
        if amount > 0
    ]


def _by_budget(left: Mapping[str, int]) -> dict[tuple[str, str, str], int]:
    found: dict[tuple[str, str, str], int] = {}
    for key, amount in left.items():
        try:
            layer, name, _, unit, *_ = json_decoder(list[Any]).decode(key)  # as `account_key` makes it
        except (msgspec.MsgspecError, ValueError):
            continue
        found[layer, name, unit] = min(amount, found.get((layer, name, unit), amount))
    return found
