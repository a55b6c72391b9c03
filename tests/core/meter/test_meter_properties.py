"""What holds of the meter whatever an agent says."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.agents.profile import UNKNOWN, Cost, Overlap
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import (
    Compacted,
    ConnectionClosed,
    Counters,
    Event,
    Implementation,
    Initialized,
    ModelCounters,
    ModelSelected,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    Side,
    Turn,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.meter import Meter
from acp_proxy.core.meter.agent_cost import AgentCost
from acp_proxy.core.meter.counters import Cumulative, covers, partition
from acp_proxy.core.meter.model_rows import split, spread
from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage
from tests.core import story
from tests.core.story import PRICES

AGENTS = [value for name, value in vars(story).items() if name.isupper() and isinstance(value, tuple)]

counts = st.integers(0, 10**6)
maybe = st.none() | counts
counters = st.builds(Counters, maybe, maybe, maybe, maybe, maybe, maybe)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
money = st.builds(Money, st.integers(0, 10**12), st.sampled_from(["USD", "credits"]))
dollars = st.integers(0, 10**12).map(lambda nano: Money(nano, "USD"))
sessions = st.sampled_from(["s", "t"])
models = st.sampled_from(["mock", "haiku", "auto", "nobody/knows"])
stops = st.sampled_from(["end_turn", "cancelled", "error", "crashed", "disconnected", "refusal"])

TURNS = [
    Turn("1", "s", "turn", 0, 10),
    Turn("2", "s", "turn", 0, 10),
    Turn("3", "t", "turn", 0, 10),
    Turn("4", "s", "autonomous", 0),
]
turns = st.sampled_from(TURNS)
maybe_turn = st.none() | turns

anything = st.none() | st.booleans() | counts | st.decimals() | st.text(max_size=5)
metas: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "_claude/model": anything,
        "_claude/origin": st.just({"kind": "task-notification"}) | anything,
        "promptTokens": anything,
        "completionTokens": anything,
        "totalTokens": anything,
        "parentToolCallId": st.just("call") | anything,
        "usage": st.just({"inputTokens": 10, "outputTokens": 1, "totalTokens": 11}) | anything,
        "contextCompression": st.just({"phase": "done", "newTokenCount": 5}) | anything,
        "field_meta": anything
        | st.fixed_dictionaries(
            {
                "openhands.dev/metrics": st.dictionaries(
                    st.sampled_from(["input_tokens", "output_tokens", "cost"]), anything
                )
            }
        )
        | st.just({"openhands.dev/metrics": {"status_line": "1,000 in, 5 out"}}),
        "claudeCode": anything
        | st.just({"toolResponse": {"agentId": "a", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
    },
)
fields: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"state": "idle", "usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}},
        {
            "toolCallId": "call",
            "rawOutput": {"executionSummary": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}},
        },
    ]
)
rows = st.lists(st.builds(ModelCounters, models, counters), max_size=3).map(tuple)
states = st.builds(
    SessionState,
    maybe,
    maybe,
    st.booleans(),
    st.lists(money, max_size=2).map(tuple),
    st.none() | money,
    st.none() | counters,
)
at = st.integers(0, 10**12)
kinds = st.sampled_from(["new", "load", "resume", "fork"])

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(TurnStarted, at, sessions, turns),
    st.builds(
        UsageReported,
        at,
        sessions,
        maybe_turn,
        maybe,
        maybe,
        st.none() | money,
        st.booleans(),
        metas,
        replayed=st.booleans(),
    ),
    st.builds(
        UpdateSeen,
        at,
        sessions,
        maybe_turn,
        st.sampled_from(["x", "state_update"]),
        metas,
        fields,
        st.booleans(),
        st.none() | st.just("c"),
    ),
    st.builds(
        TurnEnded,
        at,
        sessions,
        turns,
        stops,
        st.none() | counters,
        st.none() | counters,
        rows,
        st.just({}),
        *[counts] * 6,
        behind=st.booleans(),
    ),
    st.builds(SessionRequested, at, st.sampled_from(["load", "resume", "fork"]), sessions),
    st.builds(SessionOpened, at, kinds, sessions, st.none() | sessions, st.none(), st.none() | models),
    st.builds(SessionRestored, at, sessions, st.none() | states, st.none() | sessions),
    st.builds(SessionClosed, at, sessions, st.booleans()),
    st.builds(ModelSelected, at, sessions, models),
    st.builds(SessionInfoChanged, at, sessions, st.none() | st.text(max_size=3), st.none(), st.just({})),
    st.builds(Compacted, at, sessions, maybe_turn),
    st.builds(ConnectionClosed, at, st.sampled_from(Side)),
    st.builds(
        Initialized,
        at,
        st.just(1),
        st.just(Implementation()),
        st.sampled_from([Implementation(*agent) for agent in AGENTS]),
        st.booleans(),
    ),
)


@given(st.sampled_from(AGENTS), st.lists(events, max_size=30))
def test_events_in_any_order_never_raise_and_never_make_a_row_that_takes_back(
    agent: tuple[str, str], told: list[Event]
) -> None:
    numbers = itertools.count()
    meter = Meter(PRICES, lambda at: f"row{next(numbers)}")
    meter.on_event(Initialized(0, 1, Implementation(), Implementation(*agent), False))
    for event in told:
        made = [each.entry for each in meter.on_event(event) if isinstance(each, TurnMetered)]
        own = [entry for entry in made if entry.id in {turn.id for turn in TURNS}]
        assert [entry.id for entry in own] == ([event.turn.id] if isinstance(event, TurnEnded) else [])
        for entry in made:
            assert entry.lines
            assert all(line.cost is None or line.cost.nano >= 0 for line in entry.lines)
            assert all(min(line.usage.input, line.usage.output, line.usage.thought) >= 0 for line in entry.lines)
            assert not entry.costs or entry.cost_source not in ("unknown", "parent")
            assert entry.costs or not entry.usage.total or entry.cost_source in ("unknown", "parent")
            assert entry.usage_source != "none" or not entry.usage.total


@given(st.lists(st.lists(st.tuples(counts, counts), min_size=1, max_size=5), max_size=5))
def test_the_differences_of_a_counter_that_restarts_add_up_to_all_that_was_used(
    processes: list[list[tuple[int, int]]],
) -> None:
    counter, expected, booked = Cumulative(), [0, 0], [0, 0]
    for calls in processes:
        standing = [0, 0]
        if counter.last is not None and (not any(calls[0]) or covers(Counters(*calls[0]), counter.last)):
            continue  # nothing fell, or to nothing, which is a gap: such a restart cannot be seen
        for call in calls:
            standing = [old + new for old, new in zip(standing, call, strict=True)]
            expected = [old + new for old, new in zip(expected, call, strict=True)]
            since = counter.advance(Counters(*standing))
            assert since is not None
            booked = [booked[0] + (since.input or 0), booked[1] + (since.output or 0)]
    assert booked == expected


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=1, max_size=5), max_size=6), st.data())
def test_a_cost_that_restarts_at_zero_is_booked_to_the_nano(processes: list[list[int]], data: st.DataObject) -> None:
    cost = AgentCost(Cost("restarts"))
    booked = 0
    for increases in processes:
        cost.begin(at_zero=True)
        for value in itertools.accumulate(increases):
            cost.report(Money(value, "USD"))
            if data.draw(st.booleans()):
                booked += sum(amount.nano for amount in cost.take().amounts)
        booked += sum(amount.nano for amount in cost.take().amounts)
    assert booked == sum(map(sum, processes))


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=8), st.integers(0, 10**9))
def test_what_was_booked_ahead_is_not_booked_again(increases: list[int], ahead: int) -> None:
    cost = AgentCost(UNKNOWN.cost)
    cost.book_ahead(Money(ahead, "USD"))
    for value in itertools.accumulate(increases):
        cost.report(Money(value, "USD"))
    assert sum(amount.nano for amount in cost.take().amounts) == max(0, sum(increases) - ahead)


@given(dollars, st.lists(counts, min_size=1, max_size=6))
def test_parts_of_an_amount_always_add_up_to_it(amount: Money, weights: list[int]) -> None:
    parts = split(amount, weights)
    assert sum(part.nano for part in parts) == amount.nano
    assert all(part.nano >= 0 for part in parts)


@given(counters, st.sampled_from([UNKNOWN.overlap, Overlap("includes_cache"), Overlap("excludes_cache")]))
def test_a_partition_never_counts_more_than_the_total_that_proves_it(counters: Counters, how: Overlap) -> None:
    usage = partition(counters, how).usage
    assert min(usage.input, usage.cached_read, usage.cached_write, usage.output, usage.thought) >= 0
    exact = [name for name in ("input", "output", "thought", "cached_read", "cached_write") if getattr(counters, name)]
    if counters.total == sum(getattr(counters, name) for name in exact):
        assert usage.total == counters.total


@given(usages, st.lists(st.tuples(models, usages), max_size=4, unique_by=lambda row: row[0]), st.none() | models)
def test_spreading_over_rows_loses_no_token_of_the_rows_and_invents_none(
    usage: Usage, rows: list[tuple[str, Usage]], model: str | None
) -> None:
    parts = spread(usage, rows, model)
    own = sum((share for _, share in parts.own), NOTHING)
    beside = sum((share for _, share in parts.beside), NOTHING)
    told = sum((share for _, share in rows), NOTHING)
    for counter in ("input", "cached_read", "cached_write", "completion"):  # thinking is told apart by one side or both
        in_own, in_usage, in_rows = (getattr(each, counter) for each in (own, usage, told))
        assert in_own <= in_usage
        assert in_own + getattr(beside, counter) == (in_rows or in_usage)
    if bool(usage.thought) == bool(told.thought):
        assert usage.covers(own)


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=20).map(sorted))
def test_a_sessions_rows_add_up_to_the_agents_cost(values: list[int]) -> None:
    told = story.Story(story.OPENCODE)
    told.open()
    for nano in values:
        told.turn(story.inclusive(100, 10), cost=str(Decimal(nano).scaleb(-9)), stop="end_turn")
    agents = sum(cost.nano for row in told.rows if row.cost_source == "agent" for cost in row.costs)
    assert agents == values[-1]
