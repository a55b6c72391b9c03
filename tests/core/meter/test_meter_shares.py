"""Money by itself: parts add up to the whole, currencies stay apart, and what is not known is not shared."""

from __future__ import annotations

from acp_proxy.core.agents.profile import Cost
from acp_proxy.core.events import EarlierReport, ModelCounters, UsageReported
from acp_proxy.core.meter.agent_cost import AgentCost
from acp_proxy.core.meter.model_rows import split, weights_of
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.core.story import (
    CALL,
    CLAUDE,
    CODEX,
    GOOSE,
    PRICES,
    UNKNOWN_AGENT,
    LongContext,
    Story,
    disjoint,
    inclusive,
    usd,
)


def test_parts_of_an_amount_add_up_to_it() -> None:
    assert [part.nano for part in split(Money(100, "USD"), [1, 1, 1])] == [34, 33, 33]
    assert [part.nano for part in split(Money(7, "USD"), [0, 0])] == [7, 0]


def test_lines_share_a_cost_by_price_where_all_prices_are_known_else_by_tokens() -> None:
    usages = [Usage(100), Usage(300)]
    assert weights_of([usd("0.000000002"), usd("0.000000001")], usages) == [2, 1]
    assert weights_of([usd("1"), None], usages) == [100, 300]


def test_a_turn_of_two_models_splits_the_agents_cost_by_their_prices() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (
        ModelCounters("claude-opus-5-5", disjoint(100, 0, 0, 10)),  # 0.0006
        ModelCounters("haiku", disjoint(100, 0, 0, 20)),  # 0.0002
    )
    row = story.turn(disjoint(200, 0, 0, 30), cost="0.008", model_usage=rows)
    assert {line.model: line.cost for line in row.lines} == {"claude-opus-5-5": usd("0.006"), "haiku": usd("0.002")}


def test_currencies_are_never_mixed() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    story.report(turn, cost=usd("0.5"))
    story.report(turn, cost=Money.of("3", "credits"))
    row = story.end(turn, inclusive(100, 10))[-1]
    assert row.costs == (usd("0.5"), Money.of("3", "credits"))


def test_each_currency_has_a_counter_of_its_own() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    for cost in (usd("0.5"), Money.of("3", "credits"), usd("0.7"), Money.of("4", "credits")):
        turn = story.begin()
        story.report(turn, cost=cost)
        story.end(turn, inclusive(100, 10))
    assert (story.booked(), story.booked(currency="credits")) == ("0.7", "4")


def test_a_counter_taken_twice_is_empty_the_second_time() -> None:
    cost = AgentCost(Cost("unknown"))
    cost.report(usd("1"))
    assert cost.take().amounts == (usd("1"),)
    assert cost.take().amounts == ()


def test_calls_of_a_tool_that_does_not_show_are_priced_by_their_context_and_not_by_their_sum() -> None:
    for contexts, cost in (((150_000, 160_000), "0.0032"), ((310_000,), "0.0064")):
        story = Story(CODEX, LongContext(PRICES.rates))
        story.open(model="mock")
        turn = story.begin()
        for used in contexts:
            story.report(turn, used=used, size=400_000)
        assert story.end(turn, disjoint(310_000, 0, 0, 1000))[-1].costs == (usd(cost),)


def test_several_calls_of_which_nobody_tells_the_largest_have_the_price_of_short_ones() -> None:
    for tools, cost in ((0, "0.0064"), (3, "0.0032")):
        story = Story(UNKNOWN_AGENT, LongContext(PRICES.rates))
        story.open(model="mock")
        assert story.turn(disjoint(310_000, 0, 0, 1000), tool_calls=tools).costs == (usd(cost),)


def test_input_of_which_the_cached_part_is_not_told_is_said_to_be_priced_in_full_unless_the_agent_prices_it() -> None:
    for cost, said in ((None, True), ("0.5", False)):
        story = Story(GOOSE)
        story.open(model="mock")
        row = story.turn(inclusive(100, 10), used=110, cost=cost)
        assert ("cached input is not told, and priced in full" in row.detail) is said


def test_costs_of_several_currencies_that_come_between_turns_are_all_booked() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    earlier = (EarlierReport(10, Money(5, "EUR")),)
    (row,) = story.tell(UsageReported(story.now(), "s", None, 20, 100, usd("1"), earlier=earlier))
    assert sorted(row.costs, key=lambda cost: cost.currency) == [Money(5, "EUR"), usd("1")]


def test_reports_that_another_one_followed_at_once_are_a_change_if_any_of_them_was_news() -> None:
    for earlier, news in (
        (EarlierReport(1000, None), False),
        (EarlierReport(1000, usd("0.2")), True),
        (EarlierReport(2000, None), True),
        (EarlierReport(2000, usd("0.2")), True),
    ):
        story = Story(CLAUDE)
        story.open()
        turn = story.begin()
        story.report(turn, used=1000, size=200_000, cost="0.1")
        seen = len(story.changes)
        story.tell(UsageReported(story.now(), "s", turn, 1000, 200_000, None, earlier=(earlier,)))
        assert bool(story.changes[seen:]) is news


def test_a_cost_is_shared_by_the_largest_remainders() -> None:
    assert split(Money(1, "USD"), [1, 2]) == [Money(0, "USD"), Money(1, "USD")]
    assert split(Money(10, "USD"), [3, 2, 2]) == [Money(4, "USD"), Money(3, "USD"), Money(3, "USD")]


def test_codex_is_priced_from_the_catalog_for_it_reports_no_cost() -> None:
    story = Story(CODEX)
    story.open(model="claude-opus-5-5")
    row = story.turn(CALL, used=6612)
    assert (row.costs, row.cost_source, row.lines[0].price_row) == (
        (usd("0.010927"),),
        "computed",
        "fixed/claude-opus-5-5",
    )
