"""What the editor is shown, and when it is shown nothing."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, SessionRestored
from acp_proxy.core.money import Money
from acp_proxy.interceptors.usage_updates import UsageUpdates
from tests.ends import SESSION, Ends, answer, chunk, prompt, request, update
from tests.interceptors.budgets.house import validator

USED = {"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
KNOWN = SessionState(
    context_used=5000, context_size=200_000, costs=(Money.of("0.25", "USD"),), model="gemini-3.8-flash"
)


def shown(ends: Ends) -> list[dict[str, Any]]:
    """The updates of the proxy's own among what the client got."""
    updates = [message["params"]["update"] for message in ends.client.messages if "params" in message]
    return [each for each in updates if "acp-proxy" in each.get("_meta", {})]


def turn(ends: Ends, id: int, *before: Any, **result: Any) -> None:
    ends.client_says(prompt(id))
    ends.agent_says(chunk("hi"), *before, answer(id, stopReason="end_turn", **result))


def restored(state: SessionState | None, parent: str | None = None) -> SessionRestored:
    return SessionRestored(1, SESSION, state, parent)


def test_an_agent_that_says_nothing_gets_context_and_cost_before_its_turn_ends() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="someone", model="claude-sonnet-5")
    turn(ends, 2, usage=USED)
    (told,) = shown(ends)
    assert (told["used"], told["size"]) == (1010, 1_000_000)
    assert told["cost"] == {"amount": 0.0021, "currency": "USD"}
    assert told["_meta"] == {"acp-proxy": {"source": "meter", "estimated": False}}
    assert ends.client.messages[-1]["id"] == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_sessions_spend_is_a_valid_line_beside_the_meta_of_others(version: int) -> None:
    """What the agent says goes out as it came, even under our own key; ours is a line of its own."""
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="someone", model="claude-sonnet-5", protocol=version)
    meta = {"acp-proxy": "theirs", "traceparent": "00-1-1-01", "example.com/deep": {"list": [1, None]}}
    said = [
        update("session_info_update", title="one", _meta=meta),
        update("agent_message_chunk", content={"type": "text", "text": "hi"}, messageId="a", _meta=meta),
    ]
    if version == 1:
        said.append(answer(2, stopReason="end_turn", usage=USED, _meta=meta))
    else:
        said.insert(0, answer(2, messageId="m", _meta=meta))
        said.insert(1, update("state_update", state="running"))
        said.append(update("state_update", state="idle", stopReason="end_turn", usage=USED, _meta=meta))
    ends.client_says(prompt(2))
    ends.agent_says(*said)
    *before, ours, last = ends.client.messages
    assert [*before, last] == said
    validator(version, {1: "SessionNotification", 2: "UpdateSessionNotification"}[version]).validate(ours["params"])
    assert ours["params"]["update"]["cost"] == {"amount": 0.0021, "currency": "USD"}
    assert ours["params"]["update"]["_meta"] == {"acp-proxy": {"source": "meter", "estimated": False}}
    assert "_meta" not in ours["params"]


def test_cost_is_cumulative_over_the_turns_of_a_session() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="someone", model="claude-sonnet-5")
    turn(ends, 2, usage=USED)
    turn(ends, 3, usage={"inputTokens": 1200, "outputTokens": 20, "totalTokens": 1220})
    assert [each["cost"]["amount"] for each in shown(ends)] == [0.0021, 0.0047]


def test_work_that_nobody_asked_for_is_shown_when_it_is_over() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="someone", model="claude-sonnet-5", protocol=2)
    ends.agent_says(update("state_update", state="running"), update("state_update", state="idle", usage=USED))
    (told,) = shown(ends)
    assert (told["used"], told["cost"]["amount"]) == (1010, 0.0021)
    assert ends.client.messages[-1]["params"]["update"]["state"] == "idle"


def test_an_agent_that_reports_context_and_cost_itself_is_left_alone() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    own = update("usage_update", used=5, size=10, cost={"amount": 1, "currency": "USD"})
    turn(ends, 2, own, usage=USED)
    assert shown(ends) == []


def test_a_cost_is_added_to_the_context_that_an_agent_reports_without_one() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="@agentclientprotocol/codex-acp", version="2.6.0", model="gpt-5.4")
    turn(ends, 2, update("usage_update", used=1010, size=258_400), usage=USED)
    (told,) = shown(ends)
    assert (told["used"], told["size"]) == (1010, 258_400)
    assert told["cost"]["amount"] > 0


def test_nothing_is_shown_while_context_or_window_is_unknown() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session(agent="someone", model="a-model-nobody-knows")
    turn(ends, 2, usage=USED)
    assert shown(ends) == []


def test_an_agent_that_names_no_model_has_the_one_that_stands_under_its_name() -> None:
    ends = Ends([UsageUpdates()], aliases={"OpenHands CLI ACP Agent": "anthropic/claude-sonnet-5"})
    ends.open_session(agent="OpenHands CLI ACP Agent", version="1.16.0", model=None)
    counters = {"input_tokens": 1000, "output_tokens": 10, "cache_read_tokens": 0, "reasoning_tokens": 0, "cost": 0.0}
    told = chunk("hi")
    told["params"]["_meta"] = {"field_meta": {"openhands.dev/metrics": counters}}
    turn(ends, 2, told)
    (seen,) = shown(ends)
    assert (seen["used"], seen["size"], seen["cost"]["amount"]) == (1010, 1_000_000, 0.0021)


def test_the_same_figures_are_never_shown_twice() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.dispatcher.announce(restored(KNOWN))
    ends.client_says(request(2, "session/resume", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.agent_says(answer(2))
    ends.dispatcher.announce(restored(KNOWN))
    assert len(shown(ends)) == 1


def test_a_session_that_the_ledger_knows_is_shown_when_it_is_open_again() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.client_says(request(2, "session/load", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.dispatcher.announce(restored(KNOWN))
    assert shown(ends) == []
    ends.agent_says(answer(2))
    (told,) = shown(ends)
    assert (told["used"], told["size"], told["cost"]["amount"]) == (5000, 200_000, 0.25)
    assert told["_meta"]["acp-proxy"]["source"] == "ledger"
    assert ends.client.messages[0]["id"] == 2


@pytest.mark.parametrize("says", [[], [update("usage_update", used=5000, size=200_000)]], ids=["nothing", "it itself"])
@pytest.mark.parametrize(("before", "how"), [(None, "load"), ("session/close", "load"), ("session/close", "resume")])
def test_a_client_that_opens_a_session_anew_is_shown_again_what_it_was_shown_before(
    says: list[Any], before: str | None, how: str
) -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.dispatcher.announce(restored(KNOWN))
    turn(ends, 2, *says)
    if before:
        ends.client_says(request(3, before, sessionId=SESSION))
        ends.agent_says(answer(3))
    ends.client.data = b""
    ends.client_says(request(4, f"session/{how}", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.agent_says(answer(4))
    ends.dispatcher.announce(restored(KNOWN))
    (told,) = shown(ends)
    assert (told["used"] >= 5000, told["size"]) == (True, 200_000)
    assert told["_meta"]["acp-proxy"]["source"] == "ledger"
    ends.client_says(request(5, "session/resume", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.agent_says(answer(5))
    assert len(shown(ends)) == 1


def test_a_new_session_under_an_old_id_is_not_shown_what_the_old_one_had() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.dispatcher.announce(restored(KNOWN))
    ends.client_says(request(3, "session/close", sessionId=SESSION))
    ends.agent_says(answer(3))
    ends.client.data = b""
    ends.client_says(request(4, "session/new", cwd="/x", mcpServers=[]))
    ends.agent_says(answer(4, sessionId=SESSION))
    assert shown(ends) == []


@pytest.mark.parametrize("how", ["load", "resume", "fork"])
def test_what_is_known_is_shown_however_a_session_is_opened_again(how: str) -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    known = "parent" if how == "fork" else SESSION
    ends.client_says(request(2, f"session/{how}", sessionId=known, cwd="/x", mcpServers=[]))
    ends.agent_says(answer(2, **({"sessionId": SESSION} if how == "fork" else {})))
    ends.dispatcher.announce(restored(KNOWN, parent="parent" if how == "fork" else None))
    assert [(told["used"], told["size"]) for told in shown(ends)] == [(5000, 200_000)]


def test_the_ledgers_answer_may_come_after_the_agents() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.client_says(request(2, "session/resume", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.agent_says(answer(2))
    assert shown(ends) == []
    ends.dispatcher.announce(restored(KNOWN))
    assert len(shown(ends)) == 1


def test_what_the_agent_said_of_a_reopened_session_stands() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.client_says(request(2, "session/load", sessionId=SESSION, cwd="/x", mcpServers=[]))
    ends.agent_says(update("usage_update", used=7, size=10), answer(2))
    ends.dispatcher.announce(restored(KNOWN))
    assert shown(ends) == []


def test_a_session_that_the_ledger_does_not_know_shows_nothing() -> None:
    ends = Ends([UsageUpdates()])
    ends.open_session()
    ends.dispatcher.announce(restored(None))
    ends.dispatcher.announce(restored(SessionState(counters=Counters(input=5))))
    assert shown(ends) == []
