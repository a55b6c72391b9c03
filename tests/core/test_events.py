"""When a turn was, whatever became of the machine's clock meanwhile, and what is known of one that tells nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.digest import digest
from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.events import ContextChanged, ModelSelected, SessionInfoChanged, Turn, TurnEnded
from acp_proxy.core.scope import Subject

START = 10**18
SECOND = 10**9
lengths = st.integers(0, 10**15)


def ended(at: int, duration: int | None) -> TurnEnded:
    return TurnEnded(at, "s", Turn("t", "s", "turn", START), "end_turn", duration=duration)


@given(lengths, st.integers(-SECOND, SECOND))
def test_a_turn_is_when_the_clock_says_where_it_was_not_set(duration: int, off: int) -> None:
    turn = ended(max(START, START + duration + off), duration)
    assert (turn.started_at, turn.ended_at) == (START, turn.at)


@given(lengths, st.integers(SECOND + 1, 10**17))
def test_a_clock_that_was_set_ahead_makes_no_turn_longer(duration: int, ahead: int) -> None:
    turn = ended(START + duration + ahead, duration)
    assert (turn.started_at, turn.ended_at) == (START, START + duration)


@given(lengths, st.integers(1, 10**17))
def test_after_a_clock_was_set_back_a_turn_began_as_long_ago_as_it_took(duration: int, back: int) -> None:
    turn = ended(START - back, duration)
    assert (turn.started_at, turn.ended_at) == (START - back - duration, START - back)


@given(lengths)
def test_a_turn_that_ends_at_the_time_at_which_it_began_began_then(duration: int) -> None:
    assert ended(START, duration).started_at == START


@given(st.integers(-(10**17), 10**17))
def test_where_no_other_clock_runs_a_turn_begins_no_later_than_it_ends(off: int) -> None:
    turn = ended(START + off, None)
    assert (turn.started_at, turn.ended_at) == (min(START, START + off), START + off)


@pytest.mark.parametrize(("tool_calls", "messages", "calls"), [(0, 0, 1), (2, 0, 3), (2, 3, 3), (2, 4, 4)])
def test_a_turn_has_a_call_after_each_tool_or_one_for_each_message(tool_calls: int, messages: int, calls: int) -> None:
    turn = TurnEnded(1, "s", Turn("t", "s", "turn", 0), "end_turn", tool_calls=tool_calls, messages=messages)
    assert turn.most_calls == calls


def test_of_what_is_not_told_nothing_is_assumed() -> None:
    turn = ended(START, None)
    assert (turn.updates, turn.tool_calls, turn.messages, turn.turn.prompt_chars) == (0, 0, 0, 0)
    assert (turn.output_chars, turn.thought_chars, turn.tool_chars, turn.chars_since_report) == (0, 0, 0, 0)
    assert (turn.behind, turn.owed) == (False, False)
    assert (SessionState().from_zero, SessionState().context_estimated) == (False, False)
    changed = ContextChanged(1, "s", SessionState())
    assert (changed.restored, changed.done) == (False, False)
    assert not ModelSelected(1, "s", "opus").again
    told = SessionInfoChanged(1, "s", None, None, {})
    assert (told.cleared, told.titled) == (False, True)


def test_the_subject_of_a_row_is_who_has_asked_and_what_for() -> None:
    origin = Origin("org", "alice", "web", "shop", "laptop", "claude", "1.0", "zed", "plan")
    subject = origin.subject("opus", "s1", "p1")
    assert subject == Subject("org", "alice", "web", "shop", "laptop", "claude", "opus", "s1", "p1", "plan")
    assert origin.subject() == Subject("org", "alice", "web", "shop", "laptop", "claude", billing="plan")


def test_a_digest_is_blake2b_in_hexadecimal() -> None:
    assert digest(b"abc", 8) == "d8bb14d833d59559"
    assert digest(b"", 4) == "1271cf25"
