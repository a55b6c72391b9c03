"""Any row that a meter could make."""

from __future__ import annotations

from hypothesis import strategies as st

from acp_proxy.core.entry import Entry, Origin, SessionState, UsageLine
from acp_proxy.core.events import Counters
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row

_tokens = st.integers(0, 2**53)
_moments = st.integers(-(2**63), 2**63 - 1)
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
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
