"""What a relay counts: a timed chunk in one bucket, one of so many timed, and the next one told where that is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.core.traffic import BOUNDS, ONE_IN, Flow, Traffic


def test_buckets_end_at_tens_twenty_fives_and_fifties() -> None:
    """From ten microseconds to fifty milliseconds."""
    assert tuple(step * 10**power for power in (3, 4, 5, 6) for step in (10, 25, 50)) == BOUNDS


@given(st.lists(st.integers(0, 10**8) | st.sampled_from(BOUNDS) | st.sampled_from([each + 1 for each in BOUNDS])))
def test_each_timed_chunk_is_in_the_bucket_that_it_is_up_to(took: list[int]) -> None:
    calls: list[int] = []
    flow = Flow(lambda: calls.append(flow.nanoseconds))
    for each in took:
        flow.timed(each)
    for place, (above, bound) in enumerate(zip((-1, *BOUNDS), (*BOUNDS, 10**9), strict=True)):
        assert flow.buckets[place] == sum(above < each <= bound for each in took)
    assert len(flow.buckets) == len(BOUNDS) + 1
    assert (flow.nanoseconds, flow.messages, flow.bytes) == (sum(took), 0, 0)
    assert calls == [sum(took[: number + 1]) for number in range(len(took))]


def test_the_first_chunk_is_timed_and_then_one_of_so_many() -> None:
    flow = Flow(lambda: None)
    assert flow.untimed == 0
    flow.timed(1)
    assert flow.untimed == ONE_IN - 1


def test_flows_are_told_by_who_sends() -> None:
    traffic = Traffic()
    assert traffic.flows(Side.CLIENT) == (traffic.from_client, traffic.from_agent)
    assert traffic.flows(Side.AGENT) == (traffic.from_agent, traffic.from_client)
    assert traffic.from_client is not traffic.from_agent


@pytest.mark.parametrize("sender", list(Side))
def test_the_next_chunk_is_told_once_each_time_that_it_is_asked_for(sender: Side) -> None:
    traffic, told = Traffic(), list[int]()
    flow, back = traffic.flows(sender)
    flow.timed(1)  # nobody asks
    traffic.watch(lambda: told.append(flow.nanoseconds))
    assert (flow.untimed, back.untimed) == (0, 0)
    flow.timed(1)
    back.timed(1)
    flow.timed(1)
    assert told == [2]
    traffic.rearm()
    assert (flow.untimed, back.untimed) == (0, 0)
    back.timed(1)
    flow.timed(1)
    assert told == [2, 3]


def test_nothing_has_gone_wrong_or_ended_yet() -> None:
    traffic = Traffic()
    assert traffic.errors.total() == traffic.exits.total() == 0


def test_who_asks_later_is_told_in_place_of_who_asked_before() -> None:
    traffic, told = Traffic(), list[str]()
    traffic.rearm()
    traffic.from_agent.timed(1)  # armed, and nobody there
    traffic.watch(lambda: told.append("first"))
    traffic.watch(lambda: told.append("second"))
    traffic.from_agent.timed(1)
    assert told == ["second"]
