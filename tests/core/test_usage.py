"""Tokens as disjoint counters, and the sums that are made of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.usage import NOTHING, Usage

usages = st.builds(Usage, *[st.integers(0, 10**12)] * 5)


@given(usages)
def test_a_token_is_sent_or_written_and_never_both(usage: Usage) -> None:
    assert usage.prompt + usage.completion == usage.total
    assert usage.to_openai() == {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
    }


def test_each_counter_is_one_of_five() -> None:
    usage = Usage(1, 20, 300, 4_000, 50_000)
    assert (usage.prompt, usage.completion, usage.total) == (321, 54_000, 54_321)


@given(usages, usages)
def test_what_is_added_is_taken_away_again(one: Usage, other: Usage) -> None:
    both = one + other
    assert (both.minus(one), both.minus(other), one.minus(both)) == (other, one, NOTHING)
    assert both.covers(one)
    assert one.covers(both) is (other == NOTHING)


@given(usages, usages)
def test_a_later_state_is_below_no_counter_of_an_earlier_one(one: Usage, other: Usage) -> None:
    assert one.covers(other) is (other.minus(one) == NOTHING)
    assert one.minus(other).covers(NOTHING)
