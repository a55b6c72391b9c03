"""Rows for tests, measurements and pictures: `row()` makes one of which its caller says only what it is about."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.entry import CostSource, Entry, Kind, Origin, SessionState, UsageLine, UsageSource
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row

ALICE = Origin("default", "alice", "core", "web", "laptop", "claude-agent-acp", "0.100.0", "zed")
BOB = replace(ALICE, user="bob", team=None, project="infra")
SECOND = 10**9
MINUTE = 60 * SECOND
NOON = 1_795_262_400 * SECOND  # 2026-11-21T12:00:00Z

_numbers = itertools.count(1)


def line(
    model: str | None = "opus", cost: str | Money | None = "0.01", currency: str = "USD", **usage: int
) -> UsageLine:
    """The tokens of one model and what they cost: an amount as text is of `currency`, and None is unknown."""
    money = Money.of(cost, currency) if isinstance(cost, str) else cost
    return UsageLine(model, Usage(**(usage or {"input": 100, "output": 10})), money, f"lab/{model}" if cost else None)


def row(
    *lines: UsageLine,
    id: str = "",
    origin: Origin = ALICE,
    session: str = "s1",
    at: int = NOON,
    took: int = MINUTE,
    kind: Kind = "turn",
    stop_reason: str | None = "end_turn",
    usage_source: UsageSource = "agent",
    cost_source: CostSource = "computed",
    state: SessionState | None = None,
    **fields: Any,
) -> Row:
    """One that began `at` (Unix ns) and took so many ns; ids ascend."""
    entry = Entry(
        id=id or f"{next(_numbers):08x}-0000-7000-8000-000000000000",
        session=session,
        kind=kind,
        started_at=at,
        ended_at=at + took,
        stop_reason=stop_reason,
        lines=lines or (line(),),
        usage_source=usage_source,
        cost_source=cost_source,
        **fields,
    )
    return Row(origin, entry, state)


def amended(of: Row, **fields: Any) -> Row:
    """The same with other values in its entry."""
    return replace(of, entry=replace(of.entry, **fields))
