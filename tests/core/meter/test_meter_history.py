"""What an agent tells again while a session is loaded is no work: only more than all that is known was spent."""

from __future__ import annotations

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import ModelSelected, SessionOpened, SessionRequested, UsageReported
from acp_proxy.core.usage import Usage
from tests.core.story import (
    CALL,
    CLAUDE,
    CLAUDE_049,
    OPENCODE,
    OPENHANDS,
    UNKNOWN_AGENT,
    VIBE,
    Story,
    inclusive,
    known,
    openhands,
    usd,
)


def loaded(agent: tuple[str, str], *history: str, knows: SessionState | None) -> Story:
    """A session of which these costs are told before its load is answered."""
    story = Story(agent)
    story.tell(SessionRequested(story.now(), "load", "s"))
    story.restore(knows)
    for cost in history:
        story.tell(UsageReported(story.now(), "s", None, 6612, 200_000, usd(cost), replayed=True))
    story.tell(SessionOpened(story.now(), "load", "s"))
    return story


def test_a_cost_in_the_history_of_an_agent_that_goes_on_is_what_it_has_cost() -> None:
    story = loaded(OPENCODE, "0.03", knows=known("0.01", "0.01"))
    assert story.booked() == "0.02"
    assert story.turn(CALL, cost="0.04").costs == (usd("0.01"),)


@pytest.mark.parametrize("agent", [OPENCODE, CLAUDE, CLAUDE_049, UNKNOWN_AGENT], ids=str)
def test_a_history_that_tells_all_costs_again_from_the_first_books_nothing(agent: tuple[str, str]) -> None:
    story = loaded(agent, "0.01", "0.02", "0.03", "0.01", "0.02", "0.03", knows=known("0.03", "0.03"))
    assert story.rows == []


def test_a_history_of_which_nothing_is_known_books_nothing_and_says_where_its_cost_stands() -> None:
    story = loaded(OPENCODE, "0.01", "0.02", "0.03", knows=None)
    assert story.turn(CALL, cost="0.04").costs == (usd("0.01"),)
    assert story.booked() == "0.01"


def test_a_history_that_ends_early_does_not_make_what_is_known_be_booked_again() -> None:
    story = loaded(OPENCODE, "0.01", knows=known("0.03", "0.03"))
    assert story.turn(CALL, cost="0.04").costs == (usd("0.01"),)


def test_a_history_that_tells_no_news_leaves_the_first_cost_to_tell_what_was_spent_unseen() -> None:
    story = loaded(CLAUDE, "0.058226", knows=known("0.058226", "0.058226"))
    story.tell(ModelSelected(story.now(), "s", "claude-opus-5-5"))
    story.turn(CALL, cost="0.084777")
    assert [(row.kind, row.costs) for row in story.rows] == [
        ("autonomous", (usd("0.015624"),)),
        ("turn", (usd("0.010927"),)),
    ]


@pytest.mark.parametrize("answered", ["opened", "begun", "told", "ended"])
def test_a_history_is_judged_by_the_ledger_whenever_that_answers(answered: str) -> None:
    story = Story(OPENCODE)

    def reached(moment: str) -> None:
        if moment == answered:
            story.restore(known("0.01", "0.01"))

    story.tell(SessionRequested(story.now(), "load", "s"))
    story.tell(UsageReported(story.now(), "s", None, 6612, 200_000, usd("0.03"), replayed=True))
    story.tell(SessionOpened(story.now(), "load", "s"))
    reached("opened")
    turn = story.begin()
    reached("begun")
    story.report(turn, cost="0.04")
    reached("told")
    story.end(turn, CALL)
    reached("ended")
    assert sorted((row.kind, row.costs) for row in story.rows) == [
        ("autonomous", (usd("0.02"),)),
        ("turn", (usd("0.01"),)),
    ]
    assert story.metered.state.costs == (usd("0.04"),)


def test_a_cost_in_the_history_of_an_agent_that_restarts_is_no_spend() -> None:
    for cost in ("0.02", "0.04"):
        story = loaded(CLAUDE_049, "0.03", knows=None)
        assert story.rows == []
        assert story.turn(CALL, cost=cost).costs == (usd(cost),)


def test_cumulative_counters_that_are_told_again_from_the_first_are_no_work() -> None:
    story = Story(VIBE)
    story.tell(SessionRequested(story.now(), "load", "s"))
    story.restore(SessionState(counters=inclusive(3000, 300), agent_cost=usd("0.03")))
    for total in (1, 2, 3):
        meta = {"promptTokens": 1000 * total, "completionTokens": 100 * total, "totalTokens": 1100 * total}
        cost = usd(f"0.0{total}")
        story.tell(UsageReported(story.now(), "s", None, 1100, 102_400, cost, meta=meta, replayed=True))
    story.tell(SessionOpened(story.now(), "load", "s"))
    assert story.rows == []
    row = story.turn(inclusive(4000, 400))
    assert row.usage == Usage(1000, 0, 0, 100)


def test_what_the_counters_of_a_history_tell_beyond_the_ledgers_was_used_unseen() -> None:
    story = Story(OPENHANDS)
    story.tell(SessionRequested(story.now(), "load", "s"))
    story.restore(SessionState(counters=inclusive(2000, 200), costs=(usd("2"),), agent_cost=usd("2")))
    for total in (1, 2, 3):
        assert story.update(None, openhands(1000 * total, 100 * total, cost=total), replayed=True) == []
    story.tell(SessionOpened(story.now(), "load", "s"))
    assert [(row.kind, row.usage, row.costs) for row in story.rows] == [
        ("autonomous", Usage(1000, 0, 0, 100), (usd("1"),))
    ]


def test_where_a_cost_stands_is_told_when_a_history_has_told_it_first() -> None:
    story = loaded(OPENCODE, "0.01", "0.03", knows=None)
    assert [change.state.agent_cost for change in story.changes] == [None, usd("0.03")]  # its context first
    story = loaded(OPENCODE, "0.01", knows=known("0.03", "0.03"))
    assert [change.restored for change in story.changes] == [True, False]  # its context


def test_what_counters_of_a_session_tell_between_its_turns_is_a_row() -> None:
    story = Story(OPENHANDS)
    story.open()
    turn = story.begin()
    story.update(turn, openhands(1000, 100, cost=1))
    story.end(turn)
    (row,) = story.update(None, openhands(1500, 120, cost=3))
    assert (row.kind, row.usage, row.costs) == ("autonomous", Usage(500, output=20), (usd("2"),))
