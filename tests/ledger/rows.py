"""Rows to keep: `row()` makes one of which a test says only what it is about."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.entry import CostSource, Entry, Kind, Origin, SessionState, UsageLine, UsageSource
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row

ALICE = Origin("default", "alice", "core", "web", "laptop", "claude-agent-acp", "0.100.0", "zed")
BOB = replace(ALICE, user="bob", team=None, project="infra")
MINUTE = 60 * 10**9
NOON = 1_795_262_400 * 10**9  # 2026-11-21T12:00:00Z

_numbers = itertools.count(1)


def line(model: str | None = "opus", cost: str | None = "0.01", currency: str = "USD", **usage: int) -> UsageLine:
    money = None if cost is None else Money.of(cost, currency)
    return UsageLine(model, Usage(**(usage or {"input": 100, "output": 10})), money, f"lab/{model}" if cost else None)


def row(
    *lines: UsageLine,
    id: str = "",
    origin: Origin = ALICE,
    session: str = "s1",
    at: int = NOON,
    kind: Kind = "turn",
    usage_source: UsageSource = "agent",
    cost_source: CostSource = "computed",
    state: SessionState | None = None,
    **fields: Any,
) -> Row:
    """A row of one minute from `at`; ids ascend."""
    entry = Entry(
        id=id or f"{next(_numbers):08x}-0000-7000-8000-000000000000",
        session=session,
        kind=kind,
        started_at=at,
        ended_at=at + MINUTE,
        stop_reason="end_turn",
        lines=lines or (line(),),
        usage_source=usage_source,
        cost_source=cost_source,
        **fields,
    )
    return Row(origin, entry, state)


@dataclass(slots=True)
class Warnings:
    """Called as a `Warn`; keeps what it is told."""

    told: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, event: str, **fields: object) -> None:
        with self._changed:
            self.told.append((event, fields))
            self._changed.notify_all()

    def wait(self, event: str) -> bool:
        """Until the event is told; False when it is not, for long."""
        with self._changed:
            return self._changed.wait_for(lambda: event in self.events, timeout=30)

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]


NOTHING_KNOWN = UsageLine("opus", Usage())


def ended(stop_reason: str, *lines: UsageLine) -> Row:
    """The row of turn `a`; without costs and tokens it tells of none."""
    entry = Entry(
        id="a",
        session="s1",
        kind="turn",
        started_at=NOON,
        ended_at=NOON + MINUTE,
        stop_reason=stop_reason,
        lines=lines,
        usage_source="agent" if any(each.usage.total for each in lines) else "none",
        cost_source="agent" if any(each.cost for each in lines) else "unknown",
    )
    return Row(ALICE, entry)
