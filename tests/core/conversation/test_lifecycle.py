"""When turns start and end, and what is counted in between."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.events import (
    ConnectionClosed,
    Counters,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    Turn,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response
from tests.core.talk import AGENT, CLIENT, Talk, the

END: dict[str, Any] = {"stopReason": "end_turn"}


# -- v1: from a prompt to its response


def test_a_prompt_starts_a_turn_and_its_response_ends_it() -> None:
    talk = Talk()
    turn = Turn("t1", "s", "turn", 1, prompt_chars=5)
    assert talk.prompt(1, text="hello") == [TurnStarted(1, "s", turn)]
    ended = the(TurnEnded, talk.answer(1, END | {"usage": {"inputTokens": 3}}))
    assert (ended.at, ended.session, ended.turn, ended.stop_reason) == (2, "s", turn, "end_turn")
    assert ended.counters == Counters(3)


@pytest.mark.parametrize("version", [1, 2])
def test_a_session_without_a_name_has_turns_like_others(version: int) -> None:
    talk = Talk(version)
    assert the(SessionOpened, talk.open("")).session == ""
    talk.prompt(1, "")
    if version == 2:
        talk.answer(1, {})
        talk.state("running", "")
        talk.state("idle", "", stopReason="end_turn")
    else:
        talk.answer(1, END)
    assert the(UsageReported, talk.update("usage_update", "", used=5, size=9)).session == ""
    assert talk.turns == [("t1", "end_turn")]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"stopReason": "refusal"}, "refusal"),
        ({"stopReason": "_new"}, "_new"),
        ({}, "end_turn"),
        (None, "end_turn"),
        ([], "end_turn"),
    ],
)
def test_any_result_ends_a_turn_of_v1(result: Any, reason: str) -> None:
    talk = Talk(1)
    talk.prompt(1)
    talk.answer(1, result)
    assert talk.turns == [("t1", reason)]


@pytest.mark.parametrize("code", [-32603, 429])
def test_an_error_ends_a_turn_of_v1(code: int) -> None:
    talk = Talk(1)
    talk.prompt(1)
    talk.fail(1, code)
    assert talk.turns == [("t1", "error")]


def test_a_prompt_that_is_answered_as_a_cancelled_request_is_a_cancelled_turn() -> None:
    talk = Talk(1)
    talk.prompt(1)
    talk.fail(1, -32800)
    assert talk.turns == [("t1", "cancelled")]


def test_prompts_queue_and_the_oldest_is_the_current_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    assert talk.started == ["t1", "t2"]
    assert the(UsageReported, talk.update("usage_update", used=1, size=2)).turn == Turn("t1", "s", "turn", 1, 2)
    talk.answer(1, END)
    assert the(UsageReported, talk.update("usage_update", used=1, size=2)).turn == Turn("t2", "s", "turn", 2, 2)
    talk.answer(2, {"stopReason": "cancelled"})
    assert talk.turns == [("t1", "end_turn"), ("t2", "cancelled")]


def test_each_queued_prompt_ends_with_its_own_response() -> None:
    talk = Talk()
    talk.prompt("a")
    talk.prompt("b")
    talk.answer("b", END)
    talk.answer("a", END)
    assert talk.turns == [("t2", "end_turn"), ("t1", "end_turn")]


def test_a_prompt_with_an_id_that_is_open_already_loses_neither_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(1)
    talk.answer(1, END)
    talk.answer(1, {"stopReason": "cancelled"})
    assert talk.turns == [("t1", "end_turn"), ("t2", "cancelled")]


def test_turns_of_two_sessions_do_not_mix() -> None:
    talk = Talk()
    talk.prompt(1, "a")
    talk.prompt(2, "b")
    talk.update("agent_message_chunk", "b", content={"type": "text", "text": "four"})
    ended = [the(TurnEnded, talk.answer(number, END)) for number in (1, 2)]
    assert [(end.session, end.output_chars) for end in ended] == [("a", 0), ("b", 4)]


def test_the_users_message_id_is_the_turns() -> None:
    talk = Talk()
    talk.prompt(1)
    assert the(TurnEnded, talk.answer(1, END)).turn.message_id is None
    events = talk.ask("session/prompt", {"sessionId": "s", "prompt": [], "messageId": "m"}, 2)
    assert the(TurnStarted, events).turn.message_id == "m"


@pytest.mark.parametrize("params", [{}, {"prompt": "not a list"}, {"sessionId": None}, [], None])
def test_a_prompt_without_a_session_is_no_turn(params: Any) -> None:
    talk = Talk()
    assert talk.ask("session/prompt", params, 1) == []
    assert talk.fail(1, -32602) == []


# -- v2: from running to idle


def test_a_run_is_one_turn_from_the_prompt_to_idle() -> None:
    talk = Talk(2)
    assert talk.prompt(1) == []
    assert talk.answer(1, {"messageId": "m"}) == []
    started = the(TurnStarted, talk.state("running"))
    assert started.turn == Turn("t1", "s", "turn", 3, 2, "m")
    assert talk.state("requires_action") == talk.state("running") == []
    meta = {"quota": {"token_count": {"inputTokens": 5}, "model_usage": [{"model": "x", "token_count": {}}]}}
    ended = the(TurnEnded, talk.state("idle", stopReason="end_turn", usage={"inputTokens": 4}, _meta=meta))
    assert (ended.turn, ended.counters, ended.quota, ended.meta) == (started.turn, Counters(4), Counters(5), meta)
    assert [row.model for row in ended.model_usage] == ["x"]


def test_running_may_come_before_the_prompt_is_accepted() -> None:
    talk = Talk(2)
    talk.prompt(1)
    assert the(TurnStarted, talk.state("running")).turn.kind == "turn"
    assert talk.answer(1, {"messageId": "m"}) == []
    ended = the(TurnEnded, talk.state("idle"))
    assert (ended.turn.id, ended.turn.message_id, ended.stop_reason) == ("t1", "m", "end_turn")


def test_a_turn_of_v2_may_begin_with_a_question() -> None:
    talk = Talk(2)
    talk.prompt(1)
    assert the(TurnStarted, talk.state("requires_action")).turn.id == "t1"


def test_work_without_a_prompt_is_autonomous() -> None:
    talk = Talk(2)
    assert the(TurnStarted, talk.state("running")).turn == Turn("t1", "s", "autonomous", 3)
    assert the(TurnEnded, talk.state("idle", usage={"outputTokens": 2})).counters == Counters(output=2)


def test_prompts_absorbed_into_a_run_are_one_turn() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.answer(1, {})
    talk.state("running")
    talk.prompt(2)
    talk.answer(2, {})
    assert the(PromptDropped, talk.state("idle")).turn.id == "t2"
    assert talk.turns == [("t1", "end_turn")]
    assert the(TurnStarted, talk.state("running")).turn.kind == "autonomous"


def test_a_prompt_that_is_not_accepted_during_a_run_begins_the_next() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.answer(1, {})
    talk.state("running")
    talk.prompt(2)
    talk.state("idle")
    talk.answer(2, {})
    assert the(TurnStarted, talk.state("running")).turn.id == "t2"
    talk.state("idle")
    assert talk.turns == [("t1", "end_turn"), ("t2", "end_turn")]


def test_a_run_is_of_the_prompt_that_was_accepted() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.prompt(2)
    talk.answer(2, {"messageId": "m"})
    assert the(TurnStarted, talk.state("running")).turn.id == "t2"


def test_idle_again_ends_nothing_again() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    for _ in range(3):
        talk.state("idle", stopReason="end_turn", usage={"inputTokens": 4})
    assert talk.turns == [("t1", "end_turn")]


def test_idle_between_a_prompt_and_its_run_ends_nothing() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.answer(1, {"messageId": "m"})
    assert talk.state("idle", stopReason="end_turn") == []
    talk.state("running")
    talk.state("idle", stopReason="cancelled")
    assert talk.turns == [("t1", "cancelled")]


@pytest.mark.parametrize("how", ["load", "resume"])
def test_states_in_history_neither_start_nor_end_a_turn(how: str) -> None:
    talk = Talk(2)
    talk.ask(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, 1)
    assert talk.state("running") == []
    assert talk.state("idle", stopReason="end_turn", usage={"inputTokens": 4}) == []
    talk.answer(1, {})
    assert talk.state("idle") == []
    assert talk.started == []


def test_a_session_resumed_while_it_works_is_autonomous_work() -> None:
    talk = Talk(2)
    talk.ask("session/resume", {"sessionId": "s", "cwd": "/w"}, 1)
    talk.state("running")
    assert the(TurnStarted, talk.answer(1, {})).turn.kind == "autonomous"
    talk.state("idle", usage={"inputTokens": 4})
    assert talk.turns == [("t1", "end_turn")]


def test_a_prompt_that_is_refused_before_anything_runs_is_an_error() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.fail(1)
    assert (talk.started, talk.turns) == (["t1"], [("t1", "error")])
    assert talk.state("idle") == []


def test_a_prompt_that_is_refused_during_a_run_ends_nothing() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.answer(1, {})
    talk.state("running")
    talk.prompt(2)
    assert the(PromptDropped, talk.fail(2)).turn.id == "t2"
    talk.state("idle")
    assert talk.turns == [("t1", "end_turn")]


def test_the_prompt_of_a_run_may_be_refused_and_the_run_goes_on() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    assert talk.fail(1) == []
    talk.state("idle", stopReason="error")
    assert talk.turns == [("t1", "error")]


@pytest.mark.parametrize("state", ["unknown", "_vendor", "", None, 5])
def test_states_that_say_nothing_change_nothing(state: Any) -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    assert talk.state(state) == []
    talk.state("idle")
    assert talk.turns == [("t1", "end_turn")]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_closed_session_has_no_turn_of_v2_left(accepted: bool) -> None:
    talk = Talk(2)
    talk.prompt(1)
    if accepted:
        talk.answer(1, {"messageId": "m"})
    talk.call("session/close", {"sessionId": "s"}, {})
    assert talk.turns == [("t1", "cancelled")]
    talk.fail(1)
    assert talk.turns == [("t1", "cancelled")]
    assert isinstance(talk.events[-1], SessionClosed)


@pytest.mark.parametrize("version", [1, 2])
def test_a_prompt_that_is_accepted_when_its_session_is_closed_is_over(version: int) -> None:
    """The answer to a prompt need not come before that to the close."""
    talk = Talk(version)
    talk.prompt(1)
    talk.call("session/close", {"sessionId": "s"}, {})
    assert talk.turns == [("t1", "cancelled")]
    talk.answer(1, {"messageId": "m"})
    assert isinstance(talk.events[-1], SessionClosed)
    talk.close(AGENT)
    assert talk.turns == [("t1", "cancelled")]


def test_a_run_of_v2_goes_on_when_its_session_is_resumed_as_the_state_says() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    talk.answer(1, {"messageId": "m"})
    talk.ask("session/resume", {"sessionId": "s", "cwd": "/w"}, 2)
    talk.state("running")
    talk.answer(2, {})
    assert talk.turns == []
    talk.ask("session/resume", {"sessionId": "s", "cwd": "/w"}, 3)
    talk.state("idle")
    talk.answer(3, {})
    assert talk.turns == [("t1", "end_turn")]


def test_a_closed_session_takes_the_runs_of_its_subagents_with_it() -> None:
    talk = Talk(2)
    talk.update("subagent_update", sessionId="kid")
    talk.prompt(1, "kid")
    talk.state("running", "kid")
    talk.prompt(2, "kid")
    talk.prompt(3)
    talk.call("session/close", {"sessionId": "s"}, {})
    assert sorted(talk.turns) == [("t1", "cancelled"), ("t2", "cancelled"), ("t3", "cancelled")]


@pytest.mark.parametrize("how", ["close", "archive"])
def test_closing_a_session_ends_its_run(how: str) -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    talk.call(f"session/{how}", {"sessionId": "s"}, {})
    talk.state("idle")
    assert talk.turns == [("t1", "cancelled")]


def test_a_session_that_could_not_be_closed_goes_on() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.state("running")
    talk.ask("session/close", {"sessionId": "s"}, 2)
    talk.fail(2)
    talk.state("idle")
    assert talk.turns == [("t1", "end_turn")]


def test_a_prompt_to_a_subagent_is_a_turn_of_its_root() -> None:
    talk = Talk(2)
    talk.update("subagent_update", sessionId="kid")
    talk.prompt(1, "kid")
    talk.state("running", "kid")
    talk.update("subagent_update", sessionId="kid", state={"state": "idle", "usage": {"inputTokens": 2}})
    assert [(event.session, event.counters) for event in talk.events if isinstance(event, TurnEnded)] == [
        ("s", Counters(2))
    ]


def test_a_subagents_answered_prompt_leaves_nothing_to_its_idle_state() -> None:
    talk = Talk(2)
    talk.update("subagent_update", sessionId="kid", state={"state": "running"})
    talk.prompt(1, "kid")
    talk.state("running", "kid")
    assert the(TurnEnded, talk.answer(1, {"stopReason": "end_turn"})).session == "s"
    idle = {"state": "idle", "usage": {"inputTokens": 2}}
    assert talk.update("subagent_update", sessionId="kid", state=idle) == []  # it is the turn's, and was told


# -- mixtures


def test_an_agent_of_v1_may_accept_a_prompt_as_v2_does() -> None:
    talk = Talk(1)
    talk.prompt(1)
    assert talk.state("running") == []
    assert talk.answer(1, {"messageId": "m"}) == []
    assert talk.state("running") == []
    talk.state("idle", stopReason="max_tokens")
    assert talk.turns == [("t1", "max_tokens")]


def test_an_agent_of_v2_may_answer_a_prompt_with_a_stop_reason() -> None:
    talk = Talk(2)
    talk.prompt(1)
    talk.answer(1, END)
    talk.prompt(2)
    talk.state("running")
    talk.answer(2, {"stopReason": "cancelled"})
    talk.state("idle")
    assert talk.started == ["t1", "t2"]
    assert talk.turns == [("t1", "end_turn"), ("t2", "cancelled")]


def test_states_in_v1_leave_the_end_to_the_response() -> None:
    talk = Talk(1)
    talk.prompt(1)
    talk.state("running")
    assert talk.state("idle", stopReason="end_turn") == []
    talk.answer(1, END)
    assert talk.turns == [("t1", "end_turn")]


def test_work_without_a_prompt_is_autonomous_in_v1_too() -> None:
    talk = Talk(1)
    assert the(TurnStarted, talk.state("running")).turn.kind == "autonomous"
    talk.state("idle")
    assert talk.turns == [("t1", "end_turn")]


# -- one side is gone


@pytest.mark.parametrize(("side", "reason"), [(AGENT, "crashed"), (CLIENT, "disconnected")])
@pytest.mark.parametrize("version", [1, 2])
def test_open_turns_end_with_the_connection(version: int, side: Any, reason: str) -> None:
    talk = Talk(version)
    talk.prompt(1, "a")
    talk.prompt(2, "b")
    talk.state("running", "b")
    talk.close(side)
    assert sorted(talk.turns) == [("t1", reason), ("t2", reason)]
    assert sorted(talk.started) == ["t1", "t2"]
    assert talk.answer(1, END) == talk.state("idle", "b") == []


@pytest.mark.parametrize("version", [1, 2])
def test_no_turn_begins_when_the_agent_is_gone(version: int) -> None:
    """It may have ended its output, and still be there for a moment, or longer."""
    talk = Talk(version)
    talk.open("s")
    talk.close(AGENT)
    assert talk.prompt(1) == talk.prompt(2, "another") == []
    assert talk.close(AGENT) == [ConnectionClosed(talk.at, AGENT)]


# -- counting


def chunk(talk: Talk, kind: str, text: str) -> None:
    talk.update(kind, content={"type": "text", "text": text})


def test_characters_are_counted_by_what_they_are() -> None:
    talk = Talk()
    talk.prompt(1)
    chunk(talk, "user_message_chunk", "echo of the prompt")
    chunk(talk, "agent_message_chunk", "12345")
    chunk(talk, "agent_thought_chunk", "123")
    talk.update("tool_call", toolCallId="a", rawInput={"a": 1})
    talk.update("tool_call_update", toolCallId="a", rawInput={"a": 1}, rawOutput="123456")
    ended = the(TurnEnded, talk.answer(1, END))
    assert (ended.updates, ended.tool_calls) == (5, 1)
    assert (ended.output_chars, ended.thought_chars, ended.tool_chars) == (5, 3, len('{"a":1}') + len('"123456"'))
    assert ended.chars_since_report == 5 + 3 + 7 + 8


def test_a_tally_counts_what_a_message_would() -> None:
    said, tallied = Talk(), Talk()
    for talk in (said, tallied):
        talk.prompt(1)
    for kind, text in [("agent_message_chunk", "ab"), ("agent_thought_chunk", "abc"), ("plan", ""), ("tool_call", "")]:
        said.update(kind, content={"type": "text", "text": text}) if text else said.update(kind)
        tallied.conversation.tally("s", kind, len(text))
    one, other = (the(TurnEnded, talk.answer(1, END)) for talk in (said, tallied))
    fields = ("updates", "tool_calls", "output_chars", "thought_chars", "tool_chars", "chars_since_report")
    assert [getattr(one, name) for name in fields] == [getattr(other, name) for name in fields] == [4, 1, 2, 3, 0, 5]


def test_a_turn_counts_messages_to_the_user_by_their_ids() -> None:
    talk = Talk()
    talk.prompt(1)
    for kind, message in [("agent_thought_chunk", "t"), ("agent_message_chunk", "a"), ("agent_message_chunk", "a")]:
        talk.update(kind, messageId=message, content={"type": "text", "text": "hi"})
    talk.conversation.tally("s", "agent_message_chunk", 2, message="a")
    talk.conversation.tally("s", "agent_message_chunk", 2)
    talk.conversation.tally("s", "agent_message_chunk", 2, message="b")
    assert the(TurnEnded, talk.answer(1, END)).messages == 2


def test_a_tally_for_a_session_that_nobody_knows_is_nothing() -> None:
    talk = Talk()
    talk.conversation.tally("s", "agent_message_chunk", 5)
    talk.conversation.tally(None, "agent_message_chunk", 5)
    talk.prompt(1)
    assert the(TurnEnded, talk.answer(1, END)).updates == 0


def test_what_followed_the_last_report_is_counted_apart() -> None:
    talk = Talk()
    talk.prompt(1)
    chunk(talk, "agent_message_chunk", "before")
    talk.update("usage_update", used=1, size=2)
    chunk(talk, "agent_message_chunk", "since")
    assert the(TurnEnded, talk.answer(1, END)).chars_since_report == 5
    talk.prompt(2)
    chunk(talk, "agent_message_chunk", "ab")
    assert the(TurnEnded, talk.answer(2, END)).chars_since_report == 2


def test_what_a_tool_repeats_counts_once() -> None:
    talk = Talk()
    talk.prompt(1)
    for output in ("1", "12", "123", "123"):
        talk.update("tool_call_update", toolCallId="a", rawOutput=output)
    ended = the(TurnEnded, talk.answer(1, END))
    assert (ended.tool_chars, ended.tool_calls) == (len('"123"'), 1)


def test_tool_calls_are_counted_however_they_show() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.conversation.tally("s", "tool_call", 0)
    talk.update("tool_call_update", toolCallId="a")
    talk.update("tool_call_update", toolCallId="b")
    permission = {"sessionId": "s", "toolCall": {"toolCallId": "c"}}
    talk.say(AGENT, id=0, method="session/request_permission", params=permission)
    talk.update("tool_call_update", toolCallId="c")
    assert the(TurnEnded, talk.answer(1, END)).tool_calls == 3


def test_a_record_in_the_output_of_a_tool_that_nobody_has_called_is_no_tool_call() -> None:
    talk = Talk()
    talk.prompt(1)
    record = {"type": "turn_usage", "tokenUsage": {"promptTokens": 6110, "completionTokens": 201}}
    talk.update("tool_call_update", toolCallId="turn-usage-1", rawOutput=record)
    talk.update("tool_call", toolCallId="a", title="echo")
    talk.update("tool_call_update", toolCallId="a", rawOutput={"type": "artifact"})
    ended = the(TurnEnded, talk.answer(1, END))
    assert (ended.tool_calls, ended.tool_chars, ended.updates) == (1, len('{"type":"artifact"}'), 3)


def test_a_late_word_on_an_old_tool_call_is_no_call_of_the_next_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.update("tool_call", toolCallId="a")
    talk.answer(1, END)
    talk.prompt(2)
    talk.update("tool_call_update", toolCallId="a", status="completed")
    ended = the(TurnEnded, talk.answer(2, END))
    assert (ended.updates, ended.tool_calls) == (1, 0)


def test_counts_of_a_queued_prompt_begin_when_its_turn_comes() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    chunk(talk, "agent_message_chunk", "first")
    talk.answer(1, END)
    chunk(talk, "agent_message_chunk", "second")
    assert the(TurnEnded, talk.answer(2, END)).output_chars == len("second")


def test_a_prompt_that_is_never_answered_takes_nothing_from_those_after_it() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    chunk(talk, "agent_message_chunk", "two")
    assert the(TurnEnded, talk.answer(2, END)).output_chars == 3
    talk.close(AGENT)
    assert talk.turns == [("t2", "end_turn"), ("t1", "crashed")]


def test_a_prompt_that_was_worked_on_overtakes_one_that_is_never_answered() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    talk.answer(1, END)
    for number in (3, 4):
        talk.prompt(number)
        chunk(talk, "agent_message_chunk", "four")
        ended = the(TurnEnded, talk.answer(number, END))
        assert (ended.turn.id, ended.behind, ended.output_chars) == (f"t{number}", False, 4)
    assert [event.turn.id for event in talk.events if isinstance(event, PromptDropped)] == ["t2"]
    talk.prompt(5)
    reported = the(UsageReported, talk.update("usage_update", used=1, size=2))
    assert reported.turn is not None
    assert reported.turn.id == "t5"
    talk.close(AGENT)
    dead = next(event for event in talk.events if isinstance(event, TurnEnded) and event.turn.id == "t2")
    assert (dead.behind, dead.stop_reason, dead.output_chars) == (True, "crashed", 0)


def test_a_prompt_to_a_subagent_overtakes_none_of_its_root() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.update("subagent_update", sessionId="kid")
    talk.prompt(2, "kid")
    chunk(talk, "agent_message_chunk", "kid")
    assert the(TurnEnded, talk.answer(2, END)).behind
    assert not the(TurnEnded, talk.answer(1, END)).behind


def test_a_prompt_that_told_only_its_usage_overtakes_as_well() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    assert not the(TurnEnded, talk.answer(2, END | {"usage": {"inputTokens": 1}})).behind


@pytest.mark.parametrize("stop", ["cancelled", "error", "end_turn"])
def test_a_prompt_that_waited_in_vain_has_done_nothing_and_overtakes_none(stop: str) -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    if stop != "end_turn":
        chunk(talk, "agent_message_chunk", "one")
    ended = the(TurnEnded, talk.fail(2) if stop == "error" else talk.answer(2, {"stopReason": stop}))
    assert (ended.behind, ended.updates, ended.output_chars) == (True, 0, 0)
    chunk(talk, "agent_message_chunk", "one")
    ended = the(TurnEnded, talk.answer(1, END))
    assert (ended.behind, ended.output_chars) == (False, 3 if stop == "end_turn" else 6)


def test_characters_of_two_prompts_at_work_at_once_count_once() -> None:
    talk = Talk()
    talk.prompt(1)
    chunk(talk, "agent_message_chunk", "one")
    talk.prompt(2)
    chunk(talk, "agent_message_chunk", "second")
    assert the(TurnEnded, talk.answer(2, END)).output_chars == len("second")
    chunk(talk, "agent_message_chunk", "more")
    assert the(TurnEnded, talk.answer(1, END)).output_chars == len("one" + "more")


@pytest.mark.parametrize("version", [1, 2])
def test_a_long_session_keeps_no_more_than_a_short_one(version: int) -> None:
    conversation = Conversation(lambda at: "t")
    conversation.receive(CLIENT, Request(0, "initialize", {}), 0, 1)
    conversation.receive(AGENT, Response(0, {"protocolVersion": version}), 0, 1)

    def turns(first: int, last: int) -> None:
        for number in range(first, last):
            one_turn(conversation, number, version)

    tracemalloc.start()
    turns(1, 1500)  # more than are told apart
    before, _ = tracemalloc.get_traced_memory()
    turns(1500, 2000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000  # bytes; the ids of their tool calls alone would be 55,000


def one_turn(conversation: Conversation, number: int, version: int) -> None:
    def update(**fields: Any) -> None:
        params = {"sessionId": "s", "update": fields}
        conversation.receive(AGENT, Notification("session/update", params), number, 1)

    conversation.receive(CLIENT, Request(number, "session/prompt", {"sessionId": "s", "prompt": []}), number, 1)
    if version == 2:
        conversation.receive(AGENT, Response(number, {"messageId": str(number)}), number, 1)
        update(sessionUpdate="state_update", state="running")
    call = f"call-{number:060}"
    update(sessionUpdate="tool_call", toolCallId=call, rawInput={"a": number})
    update(sessionUpdate="tool_call_update", toolCallId=call, _meta={"a": number})
    update(sessionUpdate="session_info_update", title=f"title {number}", _meta={"a": {"b": number}})
    update(sessionUpdate="usage_update", used=number, size=number)
    permission = {"sessionId": "s", "toolCall": {"toolCallId": call}}
    conversation.receive(AGENT, Request(number, "session/request_permission", permission), number, 1)
    conversation.receive(CLIENT, Response(number, {}), number, 1)
    if version == 2:
        update(sessionUpdate="state_update", state="idle")
    else:
        (ended,) = conversation.receive(AGENT, Response(number, END), number, 1)
        assert isinstance(ended, TurnEnded)


def test_an_answer_may_end_a_turn_where_a_prompt_or_the_end_of_a_session_was_asked_for() -> None:
    talk = Talk()
    talk.open()
    talk.prompt(1)
    talk.ask("session/list", {}, 2)
    talk.ask("session/close", {"sessionId": "s"}, 3)
    assert [talk.conversation.ends_turn(name) for name in (1, 2, 3, 9)] == [True, False, True, False]
    talk.answer(1, END)
    assert not talk.conversation.ends_turn(1)


def test_prompts_that_were_sent_as_one_array_end_together_when_the_agent_takes_none() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    asked: list[Message] = [
        Request(1, "session/prompt", {}),
        Notification("session/cancel", {}),
        Request(2, "session/prompt", {}),
    ]
    talk.conversation.batched(asked)
    assert talk.answer(None, {}) == []  # that is no refusal
    talk.conversation.batched(asked)
    refused = Response(None, None, {"code": -32600})
    events = talk.conversation.receive(AGENT, refused, talk.at, 1)
    assert [event.turn.id for event in events if isinstance(event, TurnEnded)] == ["t1", "t2"]
    talk.conversation.batched([Notification("session/cancel", {})])
    assert talk.conversation.receive(AGENT, refused, talk.at, 1) == []


def test_a_tool_that_only_a_permission_names_is_a_call_of_the_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    permission = {"sessionId": "s", "toolCall": {"toolCallId": "c"}}
    talk.say(AGENT, id=0, method="session/request_permission", params=permission)
    talk.say(AGENT, id=1, method="session/request_permission", params=permission)
    assert the(TurnEnded, talk.answer(1, END)).tool_calls == 1


def test_each_turn_counts_what_its_own_tools_passed() -> None:
    talk = Talk()
    for number, (call, output) in enumerate((("a", "12345"), ("b", "123"))):
        talk.prompt(number)
        talk.update("tool_call_update", toolCallId=call, rawOutput=output)
        ended = the(TurnEnded, talk.answer(number, END))
        assert (ended.tool_chars, ended.tool_calls, ended.updates) == (len(output) + 2, 1, 1)


def test_of_a_turn_behind_another_nothing_is_counted() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.prompt(2)
    chunk(talk, "agent_message_chunk", "one")
    ended = the(TurnEnded, talk.fail(2))
    counts = [ended.updates, ended.tool_calls, ended.messages, ended.output_chars, ended.thought_chars]
    assert [*counts, ended.tool_chars, ended.chars_since_report] == [0] * 7


def test_reports_of_a_turn_that_are_told_together_are_counted_each_and_read_as_the_last() -> None:
    """But for a cost that the last one lacks. Between turns each may be a row of its own."""
    cost, none = b'{"amount":1,"currency":"USD"}', None
    talk = Talk()
    talk.prompt(1)
    for told, read in (
        ([(1, none), (2, none)], [(2, 1)]),
        ([(1, cost), (2, none), (3, none)], [(1, 0), (2, 0), (3, 0)]),
        ([(1, none), (2, cost)], [(2, 1)]),
        ([(1, cost), (2, cost)], [(2, 1)]),
    ):
        events = talk.conversation.usage_reported("s", 9, told, talk.at)
        reports = [event for event in events if isinstance(event, UsageReported)]
        assert [(report.used, len(report.earlier)) for report in reports] == read
        assert {report.size for report in reports} == {9}
    assert the(TurnEnded, talk.answer(1, END)).updates == 9
    assert len(talk.conversation.usage_reported("s", 9, [(1, none), (2, none)], talk.at)) == 2


def test_reports_in_the_history_of_a_session_are_no_updates_of_a_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 2)
    talk.conversation.usage_reported("s", 9, [(1, None), (2, None)], talk.at)
    talk.fail(2)
    talk.conversation.usage_reported("s", 9, [(3, None)], talk.at)
    assert the(TurnEnded, talk.answer(1, END)).updates == 1


def test_what_a_subagent_did_in_the_history_of_its_session_is_not_done_again() -> None:
    talk = Talk()
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 1)
    talk.update("subagent_update", sessionId="kid", state={"state": "running"})
    idle = {"state": "idle", "usage": {"inputTokens": 3}}
    assert talk.update("subagent_update", sessionId="kid", state=idle) == []
