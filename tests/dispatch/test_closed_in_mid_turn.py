"""Sessions that a client closes or opens again while a prompt is open: what is booked, and once."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import TurnMetered
from acp_proxy.core.usage import Usage
from tests.core.story import CLAUDE_049, CODEX, COPILOT, GEMINI, OPENCODE, UNKNOWN_AGENT
from tests.dispatch.interceptors import Notes
from tests.ends import SESSION, Ends, answer, chunk, prompt, request, update

USED = {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100}
ENDINGS = [
    ("session/close", {}),
    ("session/delete", {}),
    ("session/load", {"cwd": "/w"}),
    ("session/resume", {"cwd": "/w"}),
]


def rows_of(agent: tuple[str, str], method: str, params: Any, *late: Any) -> list[Entry]:
    """A turn in which something was said, and that is never answered before its session is closed or opened again."""
    notes = Notes()
    ends = Ends([notes])
    ends.open_session(*agent)
    ends.client_says(prompt(2))
    ends.agent_says(chunk())
    ends.client_says(request(3, method, sessionId=SESSION, **params))
    ends.agent_says(answer(3), *late)
    return [event.entry for event in notes.events if isinstance(event, TurnMetered)]


@pytest.mark.parametrize("agent", [CLAUDE_049, GEMINI, OPENCODE, CODEX, COPILOT, UNKNOWN_AGENT])
@pytest.mark.parametrize(("method", "params"), ENDINGS)
def test_the_turn_has_its_row_when_its_session_is_closed_or_opened_again(
    agent: tuple[str, str], method: str, params: Any
) -> None:
    (row,) = rows_of(agent, method, params)
    assert (row.kind, row.stop_reason) == ("turn", "cancelled")
    assert "cancelled" in row.detail


@pytest.mark.parametrize("agent", [CLAUDE_049, OPENCODE, CODEX, COPILOT])
@pytest.mark.parametrize(("method", "params"), ENDINGS)
def test_what_the_agent_answers_late_is_booked_beyond_what_was_booked(
    agent: tuple[str, str], method: str, params: Any
) -> None:
    turn, rest = rows_of(agent, method, params, answer(2, stopReason="cancelled", usage=USED))
    assert turn.usage + rest.usage == Usage(input=1000, output=100)
    assert (rest.kind, rest.stop_reason, rest.usage_source) == ("autonomous", None, "partial")
    assert rest.cost_source == ("parent" if agent in (CLAUDE_049, OPENCODE) else "computed")


def test_what_an_agent_that_nobody_described_answers_late_may_be_of_anything() -> None:
    assert len(rows_of(UNKNOWN_AGENT, *ENDINGS[0], answer(2, stopReason="cancelled", usage=USED))) == 1


def test_an_answer_that_tells_nothing_books_nothing() -> None:
    assert len(rows_of(CODEX, *ENDINGS[0], answer(2, stopReason="cancelled"))) == 1


@pytest.mark.parametrize("agent", [CLAUDE_049, GEMINI, OPENCODE])
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_what_a_session_has_cost_is_booked_once_though_it_is_closed_in_mid_turn(
    agent: tuple[str, str], method: str
) -> None:
    def costs(amount: float) -> Any:
        return update("usage_update", used=1000, size=200_000, cost={"amount": amount, "currency": "USD"})

    notes = Notes()
    ends = Ends([notes])
    ends.open_session(*agent)
    ends.client_says(prompt(2))
    ends.agent_says(chunk(), costs(5.0), answer(2, stopReason="end_turn"))
    ends.client_says(prompt(3))
    ends.agent_says(chunk(), costs(5.1))
    ends.client_says(request(4, method, sessionId=SESSION))
    ends.agent_says(answer(4), costs(5.2), answer(3, stopReason="cancelled"))
    rows = [event.entry for event in notes.events if isinstance(event, TurnMetered)]
    assert [[cost.text for cost in row.costs] for row in rows] == [["5"], ["0.1"], ["0.1"]]
