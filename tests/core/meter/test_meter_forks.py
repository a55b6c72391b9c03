"""Forks: where the cost and the counters of a forked session begin, by the table or by what the agent tells."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Counters
from acp_proxy.core.money import Money
from tests.core.story import CALL, CLAUDE, OPENCODE, UNKNOWN_AGENT, Story, disjoint, inclusive, known, usd

MODEL = "claude-opus-5-5"
SMALL = disjoint(1000, output=100)
PER_SESSION = {UNKNOWN_AGENT[0]: ProfileOverride(scope="session")}


def forked(
    agent: tuple[str, str], *costs: str, told: Counters = SMALL, used: int | None = None, model: str | None = None
) -> Story:
    """A session with these costs after its turns, and a fork "f" of it."""
    story = Story(agent)
    story.open(model=model)
    for cost in costs:
        story.turn(told, cost=cost, used=used)
    story.open("fork", "f", parent="s", model=model)
    return story


def totals(rows: Sequence[Entry]) -> list[tuple[int, str]]:
    return [(row.usage.total, row.usage_source) for row in rows]


def test_a_cost_that_goes_on_in_the_fork_of_an_unknown_agent_is_booked_once() -> None:
    story = forked(UNKNOWN_AGENT, "0.018", "0.036")
    fork = story.turn(SMALL, session="f", cost="0.054")
    story.open("fork", "g", parent="f")
    fork_of_fork = story.turn(SMALL, session="g", cost="0.072")
    assert [row.costs for row in (fork, fork_of_fork)] == [(usd("0.018"),)] * 2
    assert [row.cost_source for row in (fork, fork_of_fork)] == ["estimated"] * 2
    assert story.turn(SMALL, session="g", cost="0.08").cost_source == "agent"


def test_the_fork_of_a_fork_that_told_no_cost_goes_on_from_the_first_session() -> None:
    story = forked(UNKNOWN_AGENT, "0.018")
    story.open("fork", "g", parent="f")
    assert story.turn(SMALL, session="g", cost="0.036").costs == (usd("0.018"),)


def test_the_parents_cost_told_in_a_fork_without_a_prompt_is_no_spend() -> None:
    story = forked(UNKNOWN_AGENT, "0.018", "0.036")
    story.report(session="f", cost="0.036")
    assert len(story.rows) == 2
    assert story.turn(SMALL, session="f", cost="0.05").costs == (usd("0.014"),)


def test_what_a_fork_cost_more_than_its_parent_without_a_prompt_is_a_lower_bound() -> None:
    story = forked(UNKNOWN_AGENT, "0.018")
    (row,) = story.report(session="f", cost="0.02")
    assert (row.costs, row.cost_source) == ((usd("0.002"),), "estimated")


def test_a_forks_cost_that_is_less_than_its_parents_began_at_zero_whatever_the_table_says() -> None:
    for agent in (UNKNOWN_AGENT, OPENCODE):
        story = forked(agent, "0.036")
        first, second = (story.turn(SMALL, session="f", cost=cost) for cost in ("0.018", "0.05"))
        assert [(row.costs, row.cost_source) for row in (first, second)] == [
            ((usd("0.018"),), "agent"),
            ((usd("0.032"),), "agent"),
        ]


def test_a_forks_cost_of_zero_says_nothing_of_where_it_begins() -> None:
    story = forked(UNKNOWN_AGENT, "0.036")
    story.report(session="f", cost="0")
    assert story.turn(SMALL, session="f", cost="0.054").costs == (usd("0.018"),)


def test_the_price_of_a_forks_first_turn_tells_where_its_cost_began() -> None:
    for agent in (UNKNOWN_AGENT, OPENCODE):
        for cost in ("0.010927", "0.021854"):  # as much as the parent's, or once more
            story = forked(agent, "0.010927", told=CALL, used=6612, model=MODEL)
            row = story.turn(CALL, session="f", cost=cost, used=6613)
            assert (row.costs, row.cost_source) == ((usd("0.010927"),), "agent")


def test_a_forks_cost_that_falls_below_its_parents_in_mid_turn_began_at_zero() -> None:
    story = forked(UNKNOWN_AGENT, "0.036")
    turn = story.begin("f")
    for cost in ("0.04", "0.01"):
        story.report(turn, cost=cost)
    (row,) = story.end(turn, SMALL)
    assert (row.costs, row.cost_source) == ((usd("0.01"),), "agent")


def test_a_forks_cost_in_another_currency_than_its_parents_has_no_known_beginning() -> None:
    story = forked(UNKNOWN_AGENT, "0.036", told=CALL, used=6612, model=MODEL)
    turn = story.begin("f")
    story.report(turn, used=6612, cost=Money.of("5", "EUR"))
    (row,) = story.end(turn, CALL)
    assert (row.costs, row.cost_source) == ((usd("0.010927"),), "computed")


def test_the_cost_of_a_fork_goes_on_from_what_the_ledger_knows_of_its_parent() -> None:
    for late in (False, True):
        story = Story(UNKNOWN_AGENT)
        story.open("fork", "f", parent="s")
        turn = story.begin("f")
        if late:
            story.report(turn, cost="0.05")
        story.restore(known("0.036", "0.036"), "f", parent="s")
        if not late:
            story.report(turn, cost="0.05")
        assert story.end(turn, SMALL)[-1].costs == (usd("0.014"),)


def test_the_fork_of_a_session_without_a_cost_begins_at_zero() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.open("fork", "f", parent="s")
    row = story.turn(SMALL, session="f", cost="0.018")
    assert (row.costs, row.cost_source) == ((usd("0.018"),), "agent")


# -- counters


def test_counters_that_go_on_in_the_fork_of_an_unknown_agent_are_booked_once() -> None:
    for profiles in ({}, PER_SESSION):
        story = Story(UNKNOWN_AGENT, profiles=profiles)
        story.open()
        for number in (1, 2, 3):
            story.turn(inclusive(4900 * number, 100 * number))
        story.open("fork", "f", parent="s")
        rows = [story.turn(inclusive(4900 * number, 100 * number), session="f") for number in (4, 5)]
        assert totals(rows) == [(5000, "partial"), (5000, "agent")]


def test_counters_of_a_fork_that_are_less_than_its_parents_began_at_zero() -> None:
    for profiles in ({}, PER_SESSION):
        story = Story(UNKNOWN_AGENT, profiles=profiles)
        story.open()
        for number in (1, 2, 3):
            story.turn(inclusive(4900 * number, 100 * number))
        story.open("fork", "f", parent="s")
        assert totals([story.turn(inclusive(4950, 50), session="f")]) == [(5000, "agent")]


def test_an_agent_that_counts_per_turn_counts_so_in_a_fork() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    contexts = ((6000, 6100), (6300, 6400), (6600, 6700), (6900, 7000))
    rows = list[Entry]()
    for number, (sent, used) in enumerate(contexts):
        if number == 2:
            story.open("fork", "f", parent="s")
        rows.append(story.turn(inclusive(sent, 100), used=used, session="f" if number > 1 else "s"))
    assert totals(rows) == [(sent + 100, "agent") for sent, _ in contexts]


def test_the_counters_of_a_fork_go_on_from_what_the_ledger_knows_of_its_parent() -> None:
    story = Story(UNKNOWN_AGENT, profiles=PER_SESSION)
    story.open("fork", "f", parent="s")
    story.restore(SessionState(counters=inclusive(14_700, 300)), "f", parent="s")
    assert totals([story.turn(inclusive(19_600, 400), session="f")]) == [(5000, "partial")]


def test_the_counters_of_a_fork_of_which_nobody_knows_the_parent_are_no_turns() -> None:
    story = Story(UNKNOWN_AGENT, profiles=PER_SESSION)
    story.open("fork", "f", parent="s")
    rows = [story.turn(inclusive(4900 * number, 100 * number), session="f") for number in (4, 5)]
    assert totals(rows) == [(0, "none"), (5000, "agent")]


# -- costs that fall


def test_a_cost_that_is_corrected_in_mid_turn_counts_once() -> None:
    for agent in (UNKNOWN_AGENT, OPENCODE):
        for before in ((), ("0.5",)):
            story = Story(agent)
            story.open()
            base = sum((usd(cost).nano for cost in before), 0)
            for cost in before:
                story.turn(SMALL, cost=cost)
            turn = story.begin()
            for cost in ("0.05", "0.03", "0.06"):
                story.report(turn, cost=Money(base + usd(cost).nano, "USD"))
            (row,) = story.end(turn, SMALL)
            assert (row.costs, row.cost_source) == ((usd("0.06"),), "agent")


def test_a_correction_of_what_was_booked_before_it_was_told_is_still_to_come() -> None:
    story = Story(OPENCODE)
    story.open(model=MODEL)
    story.turn(CALL, cost="0.010927")
    story.turn(CALL)  # 0.010927 by its price
    turn = story.begin()
    for cost in ("0.030927", "0.020927", "0.032781"):
        story.report(turn, cost=cost)
    story.end(turn, CALL)
    assert story.booked() == "0.032781"


def test_a_cost_that_fell_below_where_its_turn_began_may_have_begun_again() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(SMALL, cost="0.5")
    row = story.turn(SMALL, cost="0.03")
    assert (row.costs, row.cost_source) == ((usd("0.03"),), "estimated")
    assert story.turn(SMALL, cost="0.04").cost_source == "agent"


def test_a_cost_that_fell_to_the_price_of_its_turn_has_begun_again() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model=MODEL)
    story.turn(CALL, cost="0.5")
    row = story.turn(CALL, cost="0.010927")
    assert (row.costs, row.cost_source) == ((usd("0.010927"),), "agent")


def test_a_fork_begins_with_its_parents_context() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(CALL, used=7000)
    story.open("fork", "t", parent="s")
    assert story.turn(session="t", stop="cancelled").context_used == 7000
