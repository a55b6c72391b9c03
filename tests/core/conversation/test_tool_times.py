"""What is kept of the tool calls of a turn: kinds, times and outcomes, and how long anybody waited for permission."""

from __future__ import annotations

from typing import Any

from acp_proxy.core.conversation.tool_times import ToolTimes
from acp_proxy.core.entry import ToolCall, ToolSum, Work
from acp_proxy.core.events import TurnEnded, TurnStarted
from tests.core.talk import AGENT, CLIENT, Talk, the

MILLI = 10**6
TRACE = f"{'0af7651916cd43dd8448eb211c80319c'}-{'b7ad6b7169203331'}"


class Clocked(Talk):
    """Says things at a time in milliseconds."""

    def after(self, milliseconds: int) -> Clocked:
        self.at = milliseconds * MILLI - 1
        return self


def work_of(talk: Talk) -> Work | None:
    return the(TurnEnded, talk.answer(0, {"stopReason": "end_turn"})).work


def begun() -> Clocked:
    talk = Clocked()
    talk.after(0).prompt(0)
    return talk


def test_a_call_has_its_kind_its_times_and_its_outcome() -> None:
    talk = begun()
    talk.after(100).update("tool_call", toolCallId="a", kind="read", status="pending", title="SECRET")
    talk.after(150).update("tool_call_update", toolCallId="a", status="in_progress")
    talk.after(400).update("tool_call_update", toolCallId="a", status="completed", rawOutput={"x": "SECRET"})
    talk.after(1000).update("tool_call", toolCallId="b", kind="execute", status="pending")
    talk.after(3000).update("tool_call_update", toolCallId="b", status="failed")
    work = work_of(talk.after(4000))
    assert work == Work(
        None,
        (ToolCall("read", 100, 300, "completed"), ToolCall("execute", 1000, 2000, "failed")),
        (ToolSum("execute", 1, 1, 2000), ToolSum("read", 1, 0, 300)),
        busy=2300,
    )


def test_calls_that_run_at_once_are_busy_once() -> None:
    talk = begun()
    for call, start in (("a", 100), ("b", 200)):
        talk.after(start).update("tool_call", toolCallId=call, kind="search", status="in_progress")
    for call, end in (("a", 500), ("b", 600)):
        talk.after(end).update("tool_call_update", toolCallId=call, status="completed")
    work = work_of(talk.after(700))
    assert work is not None
    assert (work.busy, work.sums) == (500, (ToolSum("search", 2, 0, 800),))


def test_the_time_that_permission_takes_is_waited_and_not_worked() -> None:
    talk = begun()
    talk.after(100).update("tool_call", toolCallId="a", kind="edit", status="pending")
    params = {"sessionId": "s", "toolCall": {"toolCallId": "a"}, "options": []}
    talk.after(150).say(AGENT, id=7, method="session/request_permission", params=params)
    talk.after(5150).say(CLIENT, id=7, result={"outcome": {"outcome": "selected", "optionId": "allow"}})
    talk.after(5350).update("tool_call_update", toolCallId="a", status="completed")
    work = work_of(talk.after(6000))
    assert work is not None
    assert (work.busy, work.waited) == (250, 5000)
    assert work.calls == (ToolCall("edit", 100, 5250, "completed"),)


def test_a_call_that_only_a_permission_names_is_one() -> None:
    talk = begun()
    params = {"sessionId": "s", "toolCall": {"toolCallId": "a"}, "options": []}
    talk.after(100).say(AGENT, id=7, method="session/request_permission", params=params)
    talk.after(200).say(CLIENT, id=7, result={"outcome": {"outcome": "cancelled"}})
    talk.after(300).update("tool_call_update", toolCallId="a", kind="edit", status="failed")
    work = work_of(talk.after(400))
    assert work is not None
    assert work.calls == (ToolCall("edit", 100, 200, "failed"),)


def test_what_is_told_only_when_it_is_over_took_nobody_knows_how_long() -> None:
    talk = begun()
    talk.after(100).update("tool_call", toolCallId="a", kind="fetch", status="completed")
    work = work_of(talk.after(200))
    assert work is not None
    assert (work.calls, work.busy) == ((ToolCall("fetch", 100, None, "completed"),), 0)


def test_a_call_that_never_ends_is_busy_until_the_turn_ends() -> None:
    talk = begun()
    talk.after(100).update("tool_call", toolCallId="a", kind="think", status="in_progress")
    work = work_of(talk.after(700))
    assert work is not None
    assert (work.calls, work.busy) == ((ToolCall("think", 100),), 600)


def test_what_an_earlier_turns_call_says_late_is_no_call_of_the_next() -> None:
    talk = begun()
    talk.after(100).update("tool_call", toolCallId="a", kind="read", status="in_progress")
    assert work_of(talk.after(200)) is not None
    talk.after(300).prompt(0)
    talk.after(400).update("tool_call_update", toolCallId="a", status="completed")
    assert work_of(talk.after(500)) is None


def test_a_kind_that_an_agent_made_up_is_another() -> None:
    times = ToolTimes()
    times.saw("a", "/home/alice/SECRET", "pending", 0, known=False)
    times.saw("b", {"not": "text"}, ["neither"], 0, known=False)
    work = times.taken(None, 0, MILLI)
    assert work is not None
    assert {call.kind for call in work.calls} == {"other"}


def test_of_many_calls_the_first_are_kept_and_all_are_counted() -> None:
    times = ToolTimes()
    for number in range(5000):
        times.saw(f"{number}", "read", "in_progress", number * MILLI, known=False)
        times.saw(f"{number}", None, "completed", number * MILLI + MILLI, known=True)
    work = times.taken(None, 0, 5000 * MILLI)
    assert work is not None
    assert [call.started for call in work.calls] == list(range(64))  # as documented
    assert work.sums == (ToolSum("read", 5000, 0, 5000),)
    assert work.busy == 5000
    assert times.taken(None, 0, 5000 * MILLI) is None


def test_a_clock_that_was_set_back_makes_nothing_negative() -> None:
    times = ToolTimes()
    times.saw("a", "read", "in_progress", 9000 * MILLI, known=False)
    times.saw("a", None, "completed", 1000 * MILLI, known=True)
    work = times.taken(None, 8000 * MILLI, 1000 * MILLI)
    assert work is not None
    assert (work.calls, work.busy) == ((ToolCall("read", 1000, 0, "completed"),), 0)


def started(meta: Any) -> str | None:
    talk = Talk()
    events = talk.ask("session/prompt", {"sessionId": "s", "prompt": [], "_meta": meta}, 0)
    return the(TurnStarted, events).turn.parent


def test_the_editors_span_is_kept_with_the_turn() -> None:
    parent = f"00-{TRACE}-01"
    assert started({"traceparent": parent}) == TRACE
    talk = Talk()
    talk.ask("session/prompt", {"sessionId": "s", "prompt": [], "_meta": {"traceparent": parent}}, 0)
    assert work_of(talk) == Work(TRACE)


def test_what_is_no_span_is_none() -> None:
    trace, span = TRACE.split("-")
    bad = [f"ff-{TRACE}-01", f"00-{'0' * 32}-{span}-01", f"00-{trace}-{'0' * 16}-01", f"00-{TRACE.upper()}-01"]
    for meta in ({}, None, {"traceparent": 7}, {"traceparent": ""}, *({"traceparent": each} for each in bad)):
        assert started(meta) is None, meta
