"""What is kept of a turn while it runs, for the case that its proxy is killed."""

from __future__ import annotations

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import ContextChanged, PromptDropped, SessionClosed, Turn, TurnMetered, TurnStarted
from acp_proxy.core.money import Money
from acp_proxy.core.unfinished import Unfinished
from tests.ledger.rows import line, row


def started(id: str, session: str = "s") -> TurnStarted:
    return TurnStarted(5, session, Turn(id, session, "turn", 5))


def costs(*texts: str, restored: bool = False, session: str = "s") -> ContextChanged:
    state = SessionState(costs=tuple(Money.of(text, "USD") for text in texts), model="opus")
    return ContextChanged(7, session, state, restored)


def metered(id: str, *texts: str) -> TurnMetered:
    """The last row of a session that had none before."""
    lines = [line(cost=text) for text in texts]
    return TurnMetered(9, row(*lines, id=id, session="s").entry, costs(*texts).state, False, False)


def told(entry: Entry | None) -> tuple[str, list[str]] | None:
    return None if entry is None else (entry.id, [cost.text for cost in entry.costs])


def test_a_turn_is_there_from_its_start_without_any_figure() -> None:
    entry = Unfinished().on_event(started("t"))
    assert told(entry) == ("t", [])
    assert entry is not None
    assert (entry.usage_source, entry.cost_source, entry.stop_reason) == ("none", "unknown", "crashed")


def test_the_cost_so_far_is_what_the_session_cost_more_since_the_start() -> None:
    unfinished = Unfinished()
    unfinished.on_event(costs("1"))
    unfinished.on_event(started("t"))
    entry = unfinished.on_event(costs("1.25"))
    assert told(entry) == ("t", ["0.25"])
    assert entry is not None
    assert (entry.model, entry.cost_source) == ("opus", "agent")


def test_nothing_is_kept_again_that_is_known() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    assert unfinished.on_event(costs()) is None
    assert unfinished.on_event(costs("1")) is not None
    assert unfinished.on_event(costs("1")) is None


def test_what_another_process_spent_is_no_cost_of_the_turn() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    assert unfinished.on_event(costs("3", restored=True)) is None
    assert told(unfinished.on_event(costs("3.5"))) == ("t", ["0.5"])


def test_costs_are_those_of_the_oldest_turn_until_it_has_its_row() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("1"))) == ("a", ["1"])
    unfinished.on_event(metered("a", "1"))
    assert told(unfinished.on_event(costs("1.5"))) == ("b", ["0.5"])
    unfinished.on_event(metered("b", "1.5"))
    assert unfinished.on_event(costs("2")) is None


def test_costs_are_no_longer_those_of_a_turn_that_was_overtaken() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("1"))) == ("a", ["1"])
    unfinished.on_event(metered("b", "1"))
    assert told(unfinished.on_event(PromptDropped(8, "s", Turn("a", "s", "turn", 5)))) == ("a", [])
    unfinished.on_event(started("c"))
    assert told(unfinished.on_event(costs("1.5"))) == ("c", ["0.5"])


def test_a_row_beside_the_turns_own_does_not_end_it_and_what_it_cost_is_not_the_turns() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(metered("background", "1"))
    assert told(unfinished.on_event(costs("1.5"))) == ("a", ["0.5"])
    unfinished.on_event(metered("a", "1.5"))
    assert unfinished.on_event(costs("2")) is None


def test_a_closed_session_that_is_taken_up_again_goes_on_from_what_it_cost() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(metered("a", "3"))
    unfinished.on_event(SessionClosed(8, "s"))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("3.5"))) == ("b", ["0.5"])


def test_a_deleted_session_begins_at_nothing() -> None:
    unfinished = Unfinished()
    unfinished.on_event(costs("3"))
    unfinished.on_event(SessionClosed(8, "s", deleted=True))
    unfinished.on_event(started("t"))
    assert told(unfinished.on_event(costs("0.5"))) == ("t", ["0.5"])


def test_a_session_that_is_deleted_after_its_turn_begins_at_nothing_too() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(metered("a", "3"))
    unfinished.on_event(SessionClosed(8, "s", deleted=True))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("0.5"))) == ("b", ["0.5"])


def test_what_a_turn_cost_that_was_told_with_its_end_alone_is_no_cost_of_the_next_one() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(metered("a", "3"))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("3.5"))) == ("b", ["0.5"])
