"""Rows to keep: `row()` makes one of which a test says only what it is about."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from acp_proxy.core.entry import CostSource, Entry, Kind, Origin, SessionState, UsageLine, UsageSource
from acp_proxy.core.events import Counters
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

    def __call__(self, event: str, **fields: object) -> None:
        self.told.append((event, fields))

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]


_tokens = st.integers(0, 2**53)
_moments = st.integers(-(2**63), 2**63 - 1)
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_money = st.builds(Money, st.integers(-(2**63), 2**63 - 1), _texts)
_maybe_tokens = st.none() | _tokens
_counters = st.builds(Counters, *[_maybe_tokens] * 6)
_lines = st.builds(UsageLine, st.none() | _texts, st.builds(Usage, *[_tokens] * 5), st.none() | _money)
_states = st.builds(
    SessionState,
    context_used=_maybe_tokens,
    context_size=_maybe_tokens,
    context_estimated=st.booleans(),
    costs=st.lists(_money, max_size=3).map(tuple),
    agent_cost=st.none() | _money,
    counters=st.none() | _counters,
    model=st.none() | _texts,
    title=st.none() | _texts,
)
_entries = st.builds(
    Entry,
    id=_texts,
    session=_texts,
    kind=st.sampled_from(["turn", "autonomous", "subagent", "compaction", "side"]),
    started_at=_moments,
    ended_at=_moments,
    stop_reason=st.none() | _texts,
    lines=st.lists(_lines, min_size=1, max_size=3).map(tuple),
    usage_source=st.sampled_from(["agent", "partial", "estimated", "none"]),
    cost_source=st.sampled_from(["agent", "computed", "estimated", "parent", "unknown"]),
    detail=_texts,
    message_id=st.none() | _texts,
    context_used=_maybe_tokens,
    context_size=_maybe_tokens,
)
_origins = st.builds(Origin, _texts, _texts, *[st.none() | _texts] * 2, _texts, _texts, *[st.none() | _texts] * 2)
any_row: st.SearchStrategy[Row] = st.builds(Row, _origins, _entries, st.none() | _states)
