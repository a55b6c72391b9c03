"""What is kept of a turn while it runs, for the case that its proxy is killed."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.entry import Entry, SessionState, UsageLine
from acp_proxy.core.events import (
    ContextChanged,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    ToldSoFar,
    Turn,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.money import Money
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.core.usage import Usage
from harness.rows import line, row


def started(id: str, session: str = "s") -> TurnStarted:
    return TurnStarted(5, session, Turn(id, session, "turn", 5))


def costs(*texts: str, restored: bool = False, session: str = "s") -> ContextChanged:
    state = SessionState(costs=tuple(Money.of(text, "USD") for text in texts), model="opus")
    return ContextChanged(7, session, state, restored)


TOLD = ToldSoFar((UsageLine("opus", Usage(100, output=10), Money(7, "USD")),), "computed", "priced in peak hours")


def tokens(told: ToldSoFar | None, *texts: str) -> ContextChanged:
    return replace(costs(*texts), told=told)


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
    assert entry.detail == "the proxy was killed during the turn"


def test_the_cost_so_far_is_what_the_session_cost_more_since_the_start() -> None:
    unfinished = Unfinished()
    unfinished.on_event(costs("1"))
    unfinished.on_event(started("t"))
    entry = unfinished.on_event(costs("1.25"))
    assert told(entry) == ("t", ["0.25"])
    assert entry is not None
    assert (entry.model, entry.cost_source, entry.usage_source) == ("opus", "agent", "partial")


def test_the_tokens_that_its_agent_told_are_at_least_what_it_used() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    entry = unfinished.on_event(tokens(TOLD))
    assert entry is not None
    assert (entry.id, entry.lines) == ("t", TOLD.lines)
    assert (entry.usage_source, entry.cost_source, entry.cost_at_least) == ("partial", "computed", True)
    known = "the proxy was killed during the turn; at least what its agent had told by then"
    assert entry.detail == f"{known}; priced in peak hours"


def test_tokens_without_a_price_are_at_least_what_it_used_too() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    entry = unfinished.on_event(tokens(ToldSoFar((UsageLine("opus", Usage(100)),), "unknown")))
    assert entry is not None
    assert (entry.usage.total, entry.usage_source, entry.costs) == (100, "partial", ())
    assert entry.detail.endswith("at least what its agent had told by then")


def test_what_is_told_anew_stands_in_place_of_what_was_told_before() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    unfinished.on_event(tokens(TOLD))
    assert unfinished.on_event(tokens(TOLD)) is None
    dearer = replace(TOLD, lines=(replace(TOLD.lines[0], cost=Money.of("1", "USD")),), cost_source="agent")
    entry = unfinished.on_event(tokens(dearer, "1"))
    assert entry is not None
    assert (entry.usage.total, entry.cost_source, told(entry)) == (110, "agent", ("t", ["1"]))


def test_tokens_are_those_of_the_next_turn_once_one_has_its_row() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(started("b"))
    unfinished.on_event(tokens(TOLD))
    unfinished.on_event(metered("a"))
    entry = unfinished.on_event(tokens(TOLD))  # as many as the one before
    assert entry is not None
    assert (entry.id, entry.usage.total) == ("b", 110)


def test_its_context_is_the_last_that_was_known_with_them() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("t"))
    state = SessionState(context_used=7000, context_size=200_000)
    entry = unfinished.on_event(replace(tokens(TOLD), state=state))
    assert entry is not None
    assert (entry.context_used, entry.context_size) == (7000, 200_000)


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


def test_a_prompt_that_waits_takes_nothing_from_the_turn_that_runs() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(costs("1"))
    unfinished.on_event(started("b"))
    assert told(unfinished.on_event(costs("1.5"))) == ("a", ["1.5"])


def test_nothing_is_kept_of_a_dropped_prompt_that_never_started_or_has_its_row() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(metered("a"))
    for name in ("a", "never"):
        assert unfinished.on_event(PromptDropped(8, "s", Turn(name, "s", "turn", 5))) is None


def test_a_later_turn_that_ends_first_takes_nothing_but_its_own_cost_from_the_one_that_runs() -> None:
    unfinished = Unfinished()
    unfinished.on_event(started("a"))
    unfinished.on_event(started("b"))
    unfinished.on_event(started("c"))
    unfinished.on_event(costs("1"))
    unfinished.on_event(PromptDropped(8, "s", Turn("c", "s", "turn", 5)))
    unfinished.on_event(replace(metered("b", "0.25"), state=costs("1.25").state))
    assert told(unfinished.on_event(costs("1.75"))) == ("a", ["1.5"])


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


def test_a_row_before_the_first_turn_is_no_cost_of_that_turn() -> None:
    unfinished = Unfinished()
    unfinished.on_event(metered("background", "1"))
    unfinished.on_event(started("a"))
    assert told(unfinished.on_event(costs("1.5"))) == ("a", ["0.5"])


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


def test_a_session_that_is_deleted_under_a_turn_goes_on_from_what_it_cost_until_that_has_its_row() -> None:
    unfinished = Unfinished()
    unfinished.on_event(costs("3"))
    unfinished.on_event(started("t"))
    unfinished.on_event(SessionClosed(8, "s", deleted=True))
    assert told(unfinished.on_event(costs("3.5"))) == ("t", ["0.5"])


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


class TestTheStateOfASession:
    """What is known with the row of a turn that has just begun."""

    def begun(self, unfinished: Unfinished, session: str = "s") -> SessionState | None:
        event = started("t", session)
        state = unfinished.state_of(event)
        unfinished.on_event(event)
        return state

    def test_that_began_here_is_that_its_agents_cost_begins_at_0(self) -> None:
        unfinished = Unfinished()
        unfinished.on_event(SessionOpened(1, "new", "s"))
        assert self.begun(unfinished) == SessionState(from_zero=True)
        unfinished.on_event(metered("t", "1"))
        assert self.begun(unfinished) is None  # the row has told more by now

    def test_that_was_there_before_is_not_known(self) -> None:
        unfinished = Unfinished()
        unfinished.on_event(SessionOpened(1, "load", "s"))
        unfinished.on_event(SessionOpened(1, "new", "another"))
        assert self.begun(unfinished) is None

    def test_that_takes_the_id_of_a_deleted_one_is_not_known(self) -> None:
        unfinished = Unfinished()
        unfinished.on_event(SessionOpened(1, "new", "s"))
        unfinished.on_event(SessionClosed(2, "s", deleted=True))
        assert self.begun(unfinished) is None

    def test_that_tells_of_itself_is_what_it_tells(self) -> None:
        told = costs("1")
        assert Unfinished().state_of(told) is told.state
        assert Unfinished().state_of(metered("t", "1")) is None
