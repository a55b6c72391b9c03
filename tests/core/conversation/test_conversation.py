"""Pairing, sessions, models, updates and permissions: one rule of the protocol a test. Turns: `test_lifecycle.py`."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.events import (
    AnsweredLate,
    ChildSessionSeen,
    Compacted,
    ConnectionClosed,
    Counters,
    Implementation,
    Initialized,
    ModelSelected,
    PermissionAnswered,
    PermissionRequested,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    TurnEnded,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.money import Money
from tests.core.talk import AGENT, CLIENT, Talk, the


def model_option(model: str) -> dict[str, Any]:
    return {"configOptions": [{"id": "model", "category": "model", "currentValue": model}]}


# -- initialize


def test_initialize_tells_who_is_there_in_v1() -> None:
    params = {"protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1.2"}}
    result = {"protocolVersion": 1, "agentInfo": {"name": "goose", "version": "1.52.0"}}
    events = Talk().call("initialize", params, result)
    assert events == [Initialized(2, 1, Implementation("zed", "1.2"), Implementation("goose", "1.52.0"), False)]


def test_initialize_tells_who_is_there_in_v2() -> None:
    params = {"protocolVersion": 2, "info": {"name": "zed", "version": "1.2"}}
    result = {"protocolVersion": 2, "info": {"name": "claude", "version": "0.100.0"}}
    events = Talk().call("initialize", params, result)
    assert events == [Initialized(2, 2, Implementation("zed", "1.2"), Implementation("claude", "0.100.0"), True)]


@pytest.mark.parametrize("method", ["proxy/initialize", "_proxy/initialize"])
def test_a_proxy_of_a_conductor_tells_who_is_there_as_an_agent_does(method: str) -> None:
    params = {"protocolVersion": 2, "info": {"name": "zed", "version": "1.2"}}
    result = {"protocolVersion": 2, "info": {"name": "claude", "version": "0.100.0"}}
    events = Talk().call(method, params, result)
    assert events == [Initialized(2, 2, Implementation("zed", "1.2"), Implementation("claude", "0.100.0"), True)]


@pytest.mark.parametrize(
    ("capabilities", "notices"),
    [
        ({"session": {"notices": {}}}, True),
        ({"session": {"notices": None}}, False),
        ({"session": {}}, False),
        ([], False),
    ],
)
def test_a_v1_client_shows_notices_when_it_says_so(capabilities: Any, notices: bool) -> None:
    params = {"protocolVersion": 1, "clientCapabilities": capabilities}
    assert the(Initialized, Talk().call("initialize", params, {"protocolVersion": 1})).client_notices is notices


def test_an_agent_that_answers_no_version_has_the_clients() -> None:
    assert the(Initialized, Talk().call("initialize", {"protocolVersion": 2}, {})).protocol_version == 2
    assert the(Initialized, Talk().call("initialize", {}, {})).protocol_version == 1


def test_the_version_is_the_one_that_the_agent_answers() -> None:
    talk = Talk()
    assert (
        the(Initialized, talk.call("initialize", {"protocolVersion": 2}, {"protocolVersion": 1})).protocol_version == 1
    )
    talk.prompt(1)
    talk.answer(1, {"stopReason": "end_turn"})
    assert talk.turns == [("t1", "end_turn")]


def test_a_failed_initialize_tells_nothing_and_the_next_one_counts() -> None:
    talk = Talk()
    talk.ask("initialize", {"protocolVersion": 9}, 0)
    assert talk.fail(0, -32022) == []
    assert the(Initialized, talk.call("initialize", {"protocolVersion": 1}, {})).agent == Implementation()


# -- pairing


def test_a_response_pairs_with_a_request_of_the_other_side_only() -> None:
    talk = Talk()
    talk.ask("session/new", {"cwd": "/w"}, 0)
    assert talk.say(CLIENT, id=0, result={"sessionId": "s"}) == []
    assert talk.say(AGENT, id="00", result={"sessionId": "s"}) == []
    assert the(SessionOpened, talk.answer(0, {"sessionId": "s"})).session == "s"
    assert talk.answer(0, {"sessionId": "s"}) == []


def test_a_response_by_the_text_of_a_prompts_number_ends_its_turn() -> None:
    talk = Talk()
    talk.prompt(3)
    talk.answer("3", {"stopReason": "end_turn"})
    assert talk.turns == [("t1", "end_turn")]


def test_a_response_by_the_text_of_a_prompts_number_is_anothers_where_that_has_it() -> None:
    talk = Talk()
    talk.conversation.follow_all()
    talk.prompt(3)
    assert not talk.conversation.passes("3")
    talk.ask("_vendor/odd", {}, "3")
    talk.answer("3", {"stopReason": "end_turn"})
    assert talk.turns == []
    talk.answer(3, {"stopReason": "cancelled"})
    assert talk.turns == [("t1", "cancelled")]


def test_a_request_of_which_only_its_number_was_noted_is_answered_by_its_text() -> None:
    talk = Talk()
    talk.conversation.follow_all()
    assert talk.conversation.passes(3)
    assert not talk.conversation.awaits(AGENT, "3")
    assert not talk.conversation.is_open(3)


def test_only_responses_to_what_is_followed_are_awaited() -> None:
    talk = Talk()
    talk.ask("session/set_mode", {"sessionId": "s", "modeId": "plan"}, 1)
    talk.ask("_vendor/x", {}, 2)
    talk.prompt(3)
    assert [talk.conversation.awaits(AGENT, number) for number in (1, 2, 3)] == [False, False, True]
    talk.answer(3, {"stopReason": "end_turn"})
    assert not talk.conversation.awaits(AGENT, 3)


def test_methods_of_the_wrong_side_mean_nothing() -> None:
    talk = Talk()
    assert talk.say(AGENT, id=1, method="session/prompt", params={"sessionId": "s", "prompt": []}) == []
    assert talk.say(CLIENT, id=1, method="session/request_permission", params={"sessionId": "s"}) == []
    assert talk.say(CLIENT, method="session/update", params={"sessionId": "s", "update": {}}) == []
    assert not talk.conversation.awaits(AGENT, 1)
    assert not talk.conversation.awaits(CLIENT, 1)


# -- opening and closing


def test_a_new_session_is_known_by_its_response() -> None:
    talk = Talk()
    assert talk.ask("session/new", {"cwd": "/w"}, 1) == []
    assert talk.answer(1, {"sessionId": "s", **model_option("opus")}) == [
        SessionOpened(2, "new", "s", None, "/w", "opus")
    ]


@pytest.mark.parametrize("how", ["load", "resume"])
def test_a_reopened_session_is_announced_at_its_request(how: Any) -> None:
    talk = Talk()
    assert talk.ask(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, 1) == [SessionRequested(1, how, "s")]
    assert talk.answer(1, {}) == [SessionOpened(2, how, "s", None, "/w", None)]


@pytest.mark.parametrize(("cursor", "how"), [({"type": "start"}, "load"), (None, "resume")])
def test_a_session_that_is_resumed_with_its_history_is_loaded(cursor: Any, how: str) -> None:
    talk = Talk(2)
    asked = talk.ask("session/resume", {"sessionId": "s", "cwd": "/w", "replayFrom": cursor}, 1)
    assert (the(SessionRequested, asked).how, the(SessionOpened, talk.answer(1, {})).how) == (how, how)


def test_a_fork_names_its_parent() -> None:
    talk = Talk()
    assert talk.ask("session/fork", {"sessionId": "s", "cwd": "/w"}, 1) == [SessionRequested(1, "fork", "s")]
    assert talk.answer(1, {"sessionId": "f"}) == [SessionOpened(2, "fork", "f", "s", "/w", None)]


@pytest.mark.parametrize("how", ["new", "load", "resume", "fork"])
def test_a_session_that_fails_to_open_is_not_opened(how: str) -> None:
    talk = Talk()
    talk.ask(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, 1)
    assert talk.fail(1, -32002) == []
    assert not the(UpdateSeen, talk.update("agent_message_chunk", "t", _meta={"a": 1})).replayed


@pytest.mark.parametrize(
    ("method", "deleted"), [("session/close", False), ("session/archive", False), ("session/delete", True)]
)
def test_a_session_is_closed_when_the_agent_agrees(method: str, deleted: bool) -> None:
    talk = Talk()
    talk.open("s")
    talk.ask(method, {"sessionId": "s"}, 1)
    assert talk.fail(1) == []
    assert talk.call(method, {"sessionId": "s"}, {}) == [SessionClosed(6, "s", deleted)]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_session_that_is_closed_while_prompts_are_open_is_closed_behind_their_ends(deleted: bool) -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.prompt(2)
    for method in ("session/delete", "session/close") if deleted else ("session/close",):
        talk.call(method, {"sessionId": "s"}, {})
    assert talk.turns == [("t1", "cancelled"), ("t2", "cancelled")]
    assert talk.answer(1, {"stopReason": "cancelled"}) == []
    assert [type(event) for event in talk.answer(2, {"stopReason": "cancelled"})] == [SessionClosed]
    assert the(SessionClosed, talk.events).deleted is deleted


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_a_session_that_the_agent_does_not_know_has_no_open_turn_once_it_is_closed(method: str) -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.ask(method, {"sessionId": "s"}, 2)
    talk.fail(2, -32002)
    assert talk.turns == [("t1", "cancelled")]


def test_a_turn_that_ended_with_its_session_is_told_to_be_without_its_answer() -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.update("agent_message_chunk", content={"type": "text", "text": "four"})
    ended = the(TurnEnded, talk.call("session/close", {"sessionId": "s"}, {}))
    assert (ended.owed, ended.output_chars) == (True, 4)


def test_usage_that_is_told_behind_the_close_is_of_the_turn_that_ended_with_it() -> None:
    talk = Talk()
    talk.open("s")
    ended = the(TurnStarted, talk.prompt(1)).turn
    talk.call("session/close", {"sessionId": "s"}, {})
    usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
    late, closed = talk.answer(1, {"stopReason": "cancelled", "usage": usage})
    assert isinstance(late, AnsweredLate)
    assert (late.session, late.turn, late.counters) == ("s", ended, Counters(input=3, output=4, total=7))
    assert isinstance(closed, SessionClosed)


@pytest.mark.parametrize("how", ["load", "resume"])
def test_prompts_of_a_session_that_is_opened_again_are_over(how: str) -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.ask(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, 2)
    talk.prompt(3)
    talk.answer(2, {})
    assert talk.turns == [("t1", "cancelled")]
    assert talk.answer(1, {"stopReason": "end_turn"}) == []
    talk.answer(3, {"stopReason": "end_turn"})
    assert talk.turns == [("t1", "cancelled"), ("t2", "end_turn")]


@pytest.mark.parametrize("how", ["load", "resume"])
def test_a_session_that_could_not_be_opened_again_goes_on(how: str) -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.ask(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, 2)
    talk.fail(2)
    talk.answer(1, {"stopReason": "end_turn"})
    assert talk.turns == [("t1", "end_turn")]


def test_a_prompt_behind_a_cancellation_ends_nothing_for_the_agent_has_to_answer_the_first() -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.say(CLIENT, method="session/cancel", params={"sessionId": "s"})
    talk.prompt(2)
    assert talk.turns == []
    talk.answer(1, {"stopReason": "cancelled"})
    assert talk.turns == [("t1", "cancelled")]


@pytest.mark.parametrize("how", ["new", "load", "resume"])
def test_a_session_is_closed_before_it_begins_again_though_a_prompt_of_before_is_open(how: str) -> None:
    talk = Talk()
    talk.open("s")
    talk.prompt(1)
    talk.call("session/delete", {"sessionId": "s"}, {})
    asked = [SessionRequested, SessionOpened] if how != "new" else [SessionOpened]
    begins = talk.call(f"session/{how}", {"sessionId": "s", "cwd": "/w"}, {"sessionId": "s"})
    assert [type(event) for event in talk.events[-len(asked) - 1 :]] == [SessionClosed, *asked]
    assert the(SessionOpened, begins).session == "s"
    assert talk.turns == [("t1", "cancelled")]
    assert talk.answer(1, {"stopReason": "cancelled"}) == []


def test_a_session_may_be_named_before_the_response_that_opens_it() -> None:
    talk = Talk()
    talk.ask("session/new", {"cwd": "/w"}, 1)
    reported = the(UsageReported, talk.update("usage_update", "s", used=0, size=100))
    assert (reported.session, reported.turn) == ("s", None)
    assert the(SessionOpened, talk.answer(1, {"sessionId": "s"})).session == "s"


# -- history


def test_what_comes_between_a_load_and_its_response_is_history() -> None:
    talk = Talk()
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 1)
    during = talk.update("agent_message_chunk", "s", _meta={"usage": {"inputTokens": 1}})
    other = talk.update("agent_message_chunk", "other", _meta={"usage": {"inputTokens": 1}})
    talk.answer(1, {})
    after = talk.update("agent_message_chunk", "s", _meta={"usage": {"inputTokens": 1}})
    assert [the(UpdateSeen, events).replayed for events in (during, other, after)] == [True, False, False]


def test_what_a_session_says_before_the_fork_that_made_it_is_answered_is_history() -> None:
    talk = Talk()
    talk.open("s")
    talk.ask("session/fork", {"sessionId": "s", "cwd": "/w"}, 1)
    history = talk.update("agent_message_chunk", "f", _meta={"a": 1})
    live = talk.update("agent_message_chunk", "s", _meta={"a": 1})
    talk.answer(1, {"sessionId": "f"})
    after = talk.update("agent_message_chunk", "f", _meta={"a": 1})
    assert [the(UpdateSeen, events).replayed for events in (history, live, after)] == [True, False, False]


def test_what_a_session_reports_before_the_fork_that_made_it_is_answered_is_marked() -> None:
    talk = Talk()
    talk.open("s")
    talk.ask("session/fork", {"sessionId": "s"}, 1)
    assert the(UsageReported, talk.update("usage_update", "f", used=1, size=2)).replayed
    assert not the(UsageReported, talk.update("usage_update", "s", used=1, size=2)).replayed
    (told,) = talk.conversation.usage_reported("f", 2, [(1, None)], 0)
    assert isinstance(told, UsageReported)
    assert told.replayed
    talk.answer(1, {"sessionId": "f"})
    assert not the(UsageReported, talk.update("usage_update", "f", used=1, size=2)).replayed


def test_two_loads_at_once_are_history_until_both_are_answered() -> None:
    talk = Talk()
    for number in (1, 2):
        talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, number)
    talk.answer(1, {})
    assert the(UpdateSeen, talk.update("plan", "s", _meta={"a": 1})).replayed
    talk.answer(2, {})
    assert not the(UpdateSeen, talk.update("plan", "s", _meta={"a": 1})).replayed


def test_history_counts_for_no_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 2)
    talk.update("agent_message_chunk", content={"type": "text", "text": "old"})
    talk.conversation.tally("s", "agent_message_chunk", 9)
    ended = the(TurnEnded, talk.answer(2, {}))
    assert (ended.updates, ended.output_chars) == (0, 0)


def test_a_compaction_in_history_is_not_told_again() -> None:
    talk = Talk()
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 1)
    assert talk.update("compaction_update", compactionId="c", status="completed") == []
    talk.answer(1, {})
    assert talk.update("compaction_update", compactionId="d", status="completed") == [
        Compacted(4, "s", None, status="completed")
    ]


# -- model


def test_a_model_is_selected_by_a_successful_request_only() -> None:
    talk = Talk()
    talk.open("s", models={"currentModelId": "a"})
    talk.ask("session/set_model", {"sessionId": "s", "modelId": "b"}, 1)
    assert talk.fail(1) == []
    assert talk.call("session/set_model", {"sessionId": "s", "modelId": "b"}, {}) == [ModelSelected(6, "s", "b")]
    again = talk.call("session/set_model", {"sessionId": "s", "modelId": "b"}, None)
    assert again == [ModelSelected(8, "s", "b", again=True)]


def test_config_options_select_a_model_when_it_changes() -> None:
    talk = Talk()
    talk.open("s", **model_option("a"))
    params = {"sessionId": "s", "configId": "mode", "value": "plan"}
    assert talk.call("session/set_config_option", params, model_option("a")) == []
    assert talk.call("session/set_config_option", params, model_option("b")) == [ModelSelected(6, "s", "b")]
    assert talk.update("config_option_update", **model_option("b")) == []
    assert talk.update("config_option_update", **model_option("c")) == [ModelSelected(8, "s", "c")]


def test_a_model_told_before_the_session_is_open_is_kept() -> None:
    talk = Talk()
    talk.ask("session/new", {"cwd": "/w"}, 1)
    talk.update("config_option_update", "s", **model_option("early"))
    assert the(SessionOpened, talk.answer(1, {"sessionId": "s"})).model == "early"


# -- what a session is called


def test_session_info_is_told_as_the_merged_state() -> None:
    talk = Talk()
    talk.open("s")
    talk.update("session_info_update", title="one", _meta={"a": {"x": 1, "y": 2}})
    changed = the(SessionInfoChanged, talk.update("session_info_update", updatedAt="now", _meta={"a": {"x": None}}))
    assert (changed.title, changed.updated_at, changed.meta) == ("one", "now", {"a": {"y": 2}})
    assert not changed.cleared
    cleared = the(SessionInfoChanged, talk.update("session_info_update", title=None, _meta=None))
    assert (cleared.title, cleared.updated_at, cleared.meta, cleared.cleared) == (None, "now", {}, True)
    assert not the(SessionInfoChanged, talk.update("session_info_update", updatedAt="later")).cleared


def test_a_session_that_another_process_gave_a_title_can_be_told_to_have_none() -> None:
    talk = Talk()
    talk.ask("session/load", {"sessionId": "s", "cwd": "/w"}, 1)
    assert the(SessionInfoChanged, talk.update("session_info_update", title=None)).cleared
    assert not the(SessionInfoChanged, talk.update("session_info_update", title=5)).cleared
    talk.answer(1, {})
    listed = talk.call("session/list", {}, {"sessions": [{"sessionId": "s", "title": None, "updatedAt": "now"}]})
    assert not the(SessionInfoChanged, listed).cleared


def test_only_what_speaks_of_a_title_is_news_of_it() -> None:
    talk = Talk()
    talk.open("s")
    changes: list[tuple[dict[str, Any], bool]] = [
        ({"title": "one"}, True),
        ({"_meta": {"running": True}}, False),
        ({"title": 5, "updatedAt": "now"}, False),
        ({"title": "one"}, True),
        ({"title": None}, True),
    ]
    for fields, titled in changes:
        assert the(SessionInfoChanged, talk.update("session_info_update", **fields)).titled is titled
    for fields, titled in (({"updatedAt": "later"}, False), ({"title": "two"}, True), ({"title": None}, False)):
        listed = talk.call("session/list", {}, {"sessions": [{"sessionId": "s", **fields}]})
        assert the(SessionInfoChanged, listed).titled is titled


def test_a_title_that_was_cut_inside_of_an_emoji_can_be_kept() -> None:
    talk = Talk()
    told = the(SessionInfoChanged, talk.update("session_info_update", title="Fix \ud83d\0"))
    assert told.title == "Fix \ufffd\ufffd"


def test_a_fork_has_updates_of_its_own() -> None:
    talk = Talk()
    talk.open("s")
    talk.update("session_info_update", "s", title="parent")
    talk.call("session/fork", {"sessionId": "s", "cwd": "/w"}, {"sessionId": "f"})
    told = [
        the(SessionInfoChanged, talk.update("session_info_update", session, **changed))
        for session, changed in (("f", {"title": "fork"}), ("s", {"updatedAt": "now"}))
    ]
    assert [(change.session, change.title) for change in told] == [("f", "fork"), ("s", "parent")]


def test_a_list_renames_sessions_that_are_known() -> None:
    talk = Talk()
    talk.open("s")
    sessions = [{"sessionId": "s", "cwd": "/w", "title": "new"}, {"sessionId": "x", "cwd": "/w", "title": "other"}, 5]
    events = talk.call("session/list", {}, {"sessions": sessions})
    assert [(event.session, event.title) for event in events if isinstance(event, SessionInfoChanged)] == [("s", "new")]
    assert talk.call("session/list", {}, {"sessions": sessions}) == []


def test_a_title_that_the_user_sets_is_the_one_that_the_agent_keeps() -> None:
    talk = Talk()
    talk.open("s")
    ask = {"sessionId": "s", "title": " mine "}
    changed = the(SessionInfoChanged, talk.call("session/set_title", ask, {"title": "mine"}))
    assert (changed.session, changed.title) == ("s", "mine")
    assert talk.call("session/set_title", ask, {"title": "mine"}) == []
    assert talk.call("session/set_title", ask, {}) == []
    talk.ask("session/set_title", ask, 1)
    assert talk.fail(1) == []
    assert talk.call("session/set_title", {"sessionId": "x", "title": "other"}, {"title": "other"}) == []


# -- usage updates


def test_a_usage_update_reports_context_and_cost() -> None:
    talk = Talk()
    talk.prompt(1)
    events = talk.update("usage_update", used=5, size=9, cost={"amount": 0.1, "currency": "USD"}, _meta={"m": 1})
    turn = talk.events[0]
    assert events == [UsageReported(2, "s", turn.turn, 5, 9, Money.of("0.1", "USD"), meta={"m": 1})]  # type: ignore[union-attr]  # a TurnStarted


@pytest.mark.parametrize("id", [None, 7])
def test_an_update_is_one_whatever_its_id(id: Any) -> None:
    talk = Talk(2)
    for update in (
        {"sessionUpdate": "state_update", "state": "running"},
        {"sessionUpdate": "usage_update", "used": 5, "size": 9},
        {"sessionUpdate": "state_update", "state": "idle"},
    ):
        talk.say(AGENT, id=id, method="session/update", params={"sessionId": "s", "update": update})
    assert [event.used for event in talk.events if isinstance(event, UsageReported)] == [5]
    assert talk.turns == [("t1", "end_turn")]


def test_the_end_of_a_turn_tells_how_long_it_took_whatever_the_time_is() -> None:
    ticks = iter((100, 107, 200, 209))
    talk = Talk(elapsed=lambda: next(ticks))
    for number in (1, 2):
        talk.ask("session/prompt", {"sessionId": "s", "prompt": []}, number)
        talk.at = 0
        talk.answer(number, {"stopReason": "end_turn"})
    assert [event.duration for event in talk.events if isinstance(event, TurnEnded)] == [7, 9]


@pytest.mark.parametrize("bad", [-1, True, 1.5, "five", None, 2**60, []])
def test_malformed_context_is_unknown_and_not_zero(bad: Any) -> None:
    reported = the(UsageReported, Talk().update("usage_update", used=bad, size=bad, cost=bad))
    assert (reported.used, reported.size, reported.cost) == (None, None, None)


@pytest.mark.parametrize(("version", "cleared"), [(1, False), (2, True)])
def test_a_null_cost_clears_in_v2_only(version: int, cleared: bool) -> None:
    talk = Talk(version)
    assert the(UsageReported, talk.update("usage_update", used=1, size=2, cost=None)).cost_cleared is cleared
    assert the(UsageReported, talk.update("usage_update", used=1, size=2)).cost_cleared is False
    assert the(UsageReported, talk.update("usage_update", used=1, size=2, cost="bad")).cost_cleared is False


def test_a_usage_update_between_turns_belongs_to_none() -> None:
    talk = Talk()
    talk.prompt(1)
    talk.answer(1, {"stopReason": "end_turn"})
    assert the(UsageReported, talk.update("usage_update", used=1, size=2)).turn is None


# -- other updates


def test_an_update_with_meta_is_shown_and_one_without_is_not() -> None:
    talk = Talk()
    talk.prompt(1)
    assert talk.update("agent_message_chunk", content={"type": "text", "text": "a"}) == []
    seen = the(UpdateSeen, talk.update("agent_message_chunk", content={}, _meta={"usage": {"inputTokens": 3}}))
    assert (seen.update, seen.meta, seen.turn is not None) == (
        "agent_message_chunk",
        {"usage": {"inputTokens": 3}},
        True,
    )
    assert seen.fields["content"] == {}


def test_meta_beside_the_update_counts_when_it_has_none_of_its_own() -> None:
    params = {"sessionId": "s", "update": {"sessionUpdate": "plan"}, "_meta": {"a": 1}}
    assert the(UpdateSeen, Talk().say(AGENT, method="session/update", params=params)).meta == {"a": 1}


def test_a_tool_result_that_is_an_object_is_shown() -> None:
    talk = Talk()
    output = {"executionSummary": {"inputTokens": 1}}
    seen = the(UpdateSeen, talk.update("tool_call_update", toolCallId="a", rawOutput=output))
    assert seen.fields["rawOutput"] == output
    assert talk.update("tool_call_update", toolCallId="a", rawOutput="text") == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"sessionId": "s"},
        {"sessionId": "s", "update": []},
        {"sessionId": 5, "update": {}},
        {"update": {"_meta": {}}},
        [],
    ],
)
def test_an_update_of_no_known_shape_means_nothing(params: Any) -> None:
    assert Talk().say(AGENT, method="session/update", params=params) == []


# -- subagents


def test_what_a_subagent_reports_belongs_to_its_root() -> None:
    talk = Talk()
    talk.prompt(1)
    assert talk.update("subagent_update", sessionId="kid") == [ChildSessionSeen(2, "s", "kid")]
    assert talk.update("subagent_update", sessionId="kid", title="again") == []
    assert talk.update("subagent_update", "kid", sessionId="grandkid") == [ChildSessionSeen(4, "s", "grandkid")]
    for child in ("kid", "grandkid"):
        reported = the(UsageReported, talk.update("usage_update", child, used=1, size=2))
        seen = the(UpdateSeen, talk.update("agent_message_chunk", child, _meta={"a": 1}))
        assert (reported.session, reported.child) == (seen.session, seen.child) == ("s", child)
        assert reported.turn is not None


def test_a_subagent_neither_renames_its_root_nor_changes_its_model() -> None:
    talk = Talk()
    talk.open("s", **model_option("a"))
    talk.update("subagent_update", sessionId="kid")
    assert talk.update("session_info_update", "kid", title="kid") == []
    assert talk.update("config_option_update", "kid", **model_option("b")) == []


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_subagent_used_is_shown_once_when_it_falls_idle(version: int) -> None:
    talk = Talk(version)
    talk.update("subagent_update", sessionId="kid", state={"state": "running"})
    idle = {"state": "idle", "usage": {"inputTokens": 3}, "_meta": {"m": 1}}
    seen = the(UpdateSeen, talk.update("subagent_update", sessionId="kid", state=idle))
    assert (seen.session, seen.child, seen.update, seen.meta) == ("s", "kid", "state_update", {"m": 1})
    assert seen.fields["usage"] == {"inputTokens": 3}
    assert talk.update("subagent_update", sessionId="kid", state=idle) == []
    assert talk.started == []


def test_a_subagent_forgotten_with_its_root_is_a_session_like_any_other() -> None:
    talk = Talk()
    talk.open("s")
    talk.update("subagent_update", sessionId="kid")
    talk.call("session/close", {"sessionId": "s"}, {})
    assert the(UsageReported, talk.update("usage_update", "kid", used=1, size=2)).session == "kid"


# -- permissions


@pytest.mark.parametrize("id", [0, "5f", 2**60 + 1])
def test_a_permission_is_asked_for_and_answered(id: Any) -> None:
    talk = Talk()
    talk.prompt(0)
    asked = talk.say(AGENT, id=id, method="session/request_permission", params={"sessionId": "s", "options": []})
    assert asked == [PermissionRequested(2, "s", id)]
    answered = talk.say(CLIENT, id=id, result={"outcome": {"outcome": "selected", "optionId": "allow"}})
    assert answered == [PermissionAnswered(3, "s", id, "selected")]
    assert talk.say(CLIENT, id=id, result={"outcome": {"outcome": "cancelled"}}) == []


def test_a_permission_refused_with_an_error_has_no_outcome() -> None:
    talk = Talk()
    talk.say(AGENT, id=1, method="session/request_permission", params={"sessionId": "s"})
    assert talk.say(CLIENT, id=1, error={"code": -32603}) == [PermissionAnswered(2, "s", 1, None)]


# -- the end


def test_a_connection_closes_once_for_each_side() -> None:
    talk = Talk()
    talk.prompt(1)
    assert talk.turns == []
    assert talk.close(CLIENT)[-1] == ConnectionClosed(1, CLIENT)
    assert talk.turns == [("t1", "disconnected")]
    assert talk.close(AGENT) == [ConnectionClosed(1, AGENT)]
    assert talk.answer(1, {"stopReason": "end_turn"}) == []


def test_an_answer_that_comes_when_a_side_is_gone_opens_no_session() -> None:
    talk = Talk()
    talk.ask("session/new", {"cwd": "/home/me"}, 7)
    talk.close(CLIENT)
    assert talk.answer(7, {"sessionId": "s"}) == []


def test_counters_of_a_result_reach_the_end_of_the_turn() -> None:
    talk = Talk()
    talk.prompt(1)
    result = {
        "stopReason": "end_turn",
        "usage": {"input_tokens": 7},
        "_meta": {"quota": {"token_count": {"inputTokens": 8}}},
    }
    ended = the(TurnEnded, talk.answer(1, result))
    assert (ended.counters, ended.quota, ended.meta) == (Counters(7), Counters(8), result["_meta"])
