"""How a session stands, when rows and titles of it come one after the other, late, or in one moment."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Counters
from acp_proxy.ledger import Ledger, Query, Row
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.ledger.conftest import AND_HUB

pytestmark = AND_HUB

BEFORE = SessionState(1, 2, True, (), Money.of("1", "USD"), Counters(input=1), "opus", "Before")
AFTER = SessionState(3, 4, False, (), Money.of("5", "credits"), Counters(input=6), "haiku", "After")


def titled(ledger: Ledger) -> list[str | None]:
    """The session's title, and those of the words in it by which it is found."""
    (session,) = ledger.sessions(Query())
    words = ("before", "between", "after")
    return [session.title, *(word for word in words if list(ledger.sessions(Query(where=(("title", word),)))))]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("later", [0, 1])
def test_what_the_next_row_knows_takes_the_place_of_all_that_was_known(
    ledger: Ledger, in_order: bool, later: int
) -> None:
    """Also of two that ended in one moment."""
    ledger.append([row(state=BEFORE)], in_order=in_order)
    ledger.append([row(at=NOON + later, state=AFTER)], in_order=in_order)
    assert ledger.state_of(ALICE, "s1") == replace(AFTER, costs=(Money.of("0.02", "USD"),))
    assert titled(ledger) == ["After", "after"]


def test_a_row_without_a_state_tells_its_model_and_its_context(ledger: Ledger) -> None:
    ledger.append([row(context_used=5, context_size=9)])
    costs = (Money.of("0.01", "USD"),)
    assert ledger.state_of(ALICE, "s1") == SessionState(context_used=5, context_size=9, costs=costs, model="opus")


def test_a_title_that_is_older_than_the_one_that_stands_changes_nothing(ledger: Ledger) -> None:
    ledger.append([row(state=BEFORE)])
    ledger.note_session(ALICE, "s1", "Between", NOON + 5 * MINUTE)
    ledger.append([row(at=NOON + MINUTE, state=AFTER)])
    assert titled(ledger) == ["Between", "between"]


def test_a_title_that_came_with_a_row_is_as_old_as_that_row(ledger: Ledger) -> None:
    ledger.append([row(state=BEFORE), row(at=NOON + 9 * MINUTE, state=AFTER)])
    ledger.note_session(ALICE, "s1", "Between", NOON + 5 * MINUTE)
    assert titled(ledger) == ["After", "after"]


def test_a_row_without_a_title_makes_none_late(ledger: Ledger) -> None:
    ledger.append([row()])
    ledger.note_session(ALICE, "s1", "Between", NOON)
    assert titled(ledger) == ["Between", "between"]


def test_of_titles_of_one_moment_the_last_stands(ledger: Ledger) -> None:
    ledger.append([row(state=BEFORE)])
    for title in ("After", "Between"):
        ledger.note_session(ALICE, "s1", title, NOON + 5 * MINUTE)
        assert titled(ledger) == [title, title.lower()]


def test_what_was_presumed_is_told_apart_until_a_later_row_has_a_cost_that_the_agent_told(ledger: Ledger) -> None:
    def presumed(*rows: Row) -> tuple[Money, ...]:
        ledger.append(rows)
        state = ledger.state_of(ALICE, "s1")
        assert state is not None
        assert sum(cost.nano for cost in state.costs) > 0
        return state.presumed

    def estimated() -> Row:
        return row(line(input=0), cost_source="estimated")

    assert presumed(estimated(), row(cost_source="agent")) == ()
    assert presumed(estimated(), estimated()) == (Money.of("0.02", "USD"),)
    nothing_told = row(line(cost=None), cost_source="agent"), row(line(cost=None), cost_source="unknown")
    assert presumed(*nothing_told) == (Money.of("0.02", "USD"),)
    assert presumed(row(cost_source="computed")) == ()


def test_of_a_cost_that_began_at_zero_that_is_known_until_one_is_told(ledger: Ledger) -> None:
    ledger.append([row(line(cost=None), state=SessionState(from_zero=True))])
    assert ledger.state_of(ALICE, "s1") == SessionState(from_zero=True)
    ledger.append([row(line(cost=None)), row(line(cost=None), state=SessionState())])
    assert ledger.state_of(ALICE, "s1") == SessionState(model="opus", from_zero=True)
    ledger.append([row(line(cost=None), state=SessionState(agent_cost=Money.of("3", "USD")))])
    assert ledger.state_of(ALICE, "s1") == SessionState(model="opus", agent_cost=Money.of("3", "USD"))
