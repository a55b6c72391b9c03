"""Prompts that an agent never answers: what they hold, and until when."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.core.events import Side
from tests.ends import answer, request
from tests.interceptors.budgets.house import House, daily, house, usd

STUCK = 31


async def three_good_turns(made: House) -> None:
    for number, cost in enumerate(("0.3", "0.6", "0.9"), 2):
        assert await made.prompt(number)
        made.finish(number, cost)


async def stuck_session(made: House, number: int, method: str) -> None:
    """One whose only prompt is never answered until the client closes it, deletes it or opens it again."""
    session = f"stuck-{number}"
    made.ends.client_says(request(3 * number, "session/new", cwd="/w"))
    made.ends.agent_says(answer(3 * number, sessionId=session))
    assert await made.prompt(3 * number + 1, session)
    made.ends.client_says({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    made.ends.client_says(request(3 * number + 2, method, sessionId=session, cwd="/w"))
    made.ends.agent_says(answer(3 * number + 2))


@pytest.mark.parametrize("method", ["session/close", "session/delete", "session/load", "session/resume"])
async def test_prompts_that_are_never_answered_hold_nothing_once_their_sessions_have_ended(
    tmp_path: Path, method: str
) -> None:
    async with house(tmp_path, daily("10", hold=usd("0.5").amount)) as made:
        await three_good_turns(made)
        for number in range(10, 10 + STUCK):
            await stuck_session(made, number, method)
        await made.settled()
        assert made.held() == 0
        assert await made.prompt(9)
        made.finish(9, "1")
        made.ends.dispatcher.ended(Side.AGENT)
        await made.settled()
        assert made.held() == 0
        rows = made.rows()
        assert sum(cost.nano for row in rows for cost in row.entry.costs) == usd("1").amount
        assert len(rows) == 3 + STUCK + 1


async def test_a_prompt_that_is_never_answered_holds_as_long_as_its_session_is_open(tmp_path: Path) -> None:
    async with house(tmp_path, daily("10", hold=usd("0.5").amount)) as made:
        assert await made.prompt(2)
        made.ends.client_says(request(3, "session/close", sessionId="sess-1"))
        made.ends.agent_says({"jsonrpc": "2.0", "id": 3, "error": {"code": -32601, "message": "no such method"}})
        await made.settled()
        assert made.held() == usd("0.5").amount


async def test_a_prompt_that_is_answered_by_the_text_of_its_number_is_over_and_the_answer_passes_as_it_is(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, daily("10", hold=usd("0.5").amount)) as made:
        assert await made.prompt(2)
        line = b'{"jsonrpc": "2.0","id":"2",  "result":{"stopReason":"end_turn"}}\n'
        made.ends.client.data = b""
        made.reports("0.3")
        reported = made.ends.client.data
        made.ends.agent_says(line)
        assert made.ends.client.data.startswith(reported)
        assert made.ends.client.data.endswith(line)
        await made.settled()
        assert made.held() == 0
        assert [row.entry.costs[0].text for row in made.rows()] == ["0.3"]
