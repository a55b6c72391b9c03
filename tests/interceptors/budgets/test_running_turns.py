"""Turns that run while the limit is reached, and what they hold meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.ends import SESSION, answer, request
from tests.interceptors.budgets.house import (
    CANCEL,
    CANCELLED,
    SMALL,
    daily,
    house,
    own,
    permission,
    usd,
    validator,
)


async def test_a_turn_may_finish_though_it_crosses_the_limit(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", hold=SMALL, thresholds=())) as made:
        assert await made.prompt(2)
        made.reports("0.5")
        made.ends.agent_says(permission(7))
        assert made.ends.client.messages[-1] == permission(7)
        assert own(made) == []


async def test_the_next_tool_is_denied_and_the_user_is_told(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", hold=SMALL, thresholds=(), on_exceed="deny_next_tool")) as made:
        assert await made.prompt(2)
        made.reports("0.05")
        made.ends.agent_says(permission(7))
        assert own(made) == []
        made.reports("0.15")
        assert made.texts() == []
        made.ends.agent_says(permission(8), permission(9))
        assert own(made) == [answer(8, **CANCELLED), answer(9, **CANCELLED)]
        (text,) = made.texts()
        assert text.startswith("A tool was not permitted")
        made.finish(2)
        made.ends.agent_says(permission(10))
        assert made.ends.client.messages[-1] == permission(10)


async def test_a_turn_is_cancelled_once_with_what_waits_for_permission(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", hold=SMALL, thresholds=(), on_exceed="cancel")) as made:
        assert await made.prompt(2)
        made.ends.agent_says(permission(7))
        made.reports("0.15")
        made.reports("0.2")
        assert own(made) == [CANCEL, answer(7, **CANCELLED)]
        made.ends.client_says(answer(7, outcome={"outcome": "selected", "optionId": "yes"}))
        assert own(made) == [CANCEL, answer(7, **CANCELLED)]
        made.ends.agent_says(answer(2, stopReason="cancelled"))
        (text,) = made.texts()
        assert text.startswith('The agent was told to stop: budget "daily" is used up')
        await made.settled()
        (row,) = made.rows()
        assert [cost.text for cost in row.entry.costs] == ["0.2"]
        assert made.decisions()["cancel"] == 1


@pytest.mark.parametrize(("version", "name"), [(1, "CancelNotification"), (2, "CancelSessionNotification")])
async def test_what_the_agent_is_told_is_in_the_schema_of_its_version(tmp_path: Path, version: int, name: str) -> None:
    budget = daily("0.1", hold=SMALL, thresholds=(), on_exceed="cancel")
    async with house(tmp_path, budget, protocol=version) as made:
        assert await made.prompt(2)
        if version == 2:
            made.ends.agent_says(answer(2, messageId="m"))
        running = {"sessionUpdate": "state_update", "state": "running"}
        params = {"sessionId": SESSION, "update": running}
        made.ends.agent_says({"jsonrpc": "2.0", "method": "session/update", "params": params})
        made.ends.agent_says(permission(7))
        made.reports("0.15")
        cancel, denied = own(made)
        validator(version, name).validate(cancel["params"])
        validator(version, "RequestPermissionResponse").validate(denied["result"])


async def test_within_its_hold_a_turn_is_not_stopped(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", hold=usd("0.1").amount, on_exceed="cancel", thresholds=())) as made:
        assert await made.prompt(2)
        made.reports("0.1")
        assert own(made) == []


async def test_what_a_session_cost_before_is_no_cost_of_the_turn(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", hold=SMALL, on_exceed="cancel", thresholds=())) as made:
        assert await made.prompt(2)
        made.finish(2, "0.06")
        assert await made.prompt(3)
        made.reports("0.09")
        assert own(made) == []
        made.reports("0.11")
        assert own(made) == [CANCEL]


async def test_what_others_hold_is_not_to_be_used(tmp_path: Path) -> None:
    budget = daily("0.1", hold=usd("0.05").amount, on_exceed="cancel", thresholds=())
    async with house(tmp_path, budget) as one, house(tmp_path, budget) as other:
        assert await one.prompt(2)
        assert await other.prompt(2)
        other.reports("0.06")
        assert own(other) == [CANCEL]


async def test_a_prompt_that_went_into_a_running_turn_holds_nothing_any_more(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", hold=SMALL), protocol=2) as made:
        assert await made.prompt(2)
        made.ends.agent_says(answer(2, messageId="m"))
        state: dict[str, Any] = {"jsonrpc": "2.0", "method": "session/update"}
        running = {"sessionId": SESSION, "update": {"sessionUpdate": "state_update", "state": "running"}}
        idle = {"sessionId": SESSION, "update": {"sessionUpdate": "state_update", "state": "idle"}}
        made.ends.agent_says(state | {"params": running})
        assert await made.prompt(3)
        made.ends.agent_says(answer(3, messageId="n"))
        assert made.held() == 2 * SMALL
        made.ends.agent_says(state | {"params": idle})
        await made.settled()
        assert made.held() == 0
        assert len(made.rows()) == 1


async def test_a_hold_lives_as_long_as_its_turn_and_no_timer_longer(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", hold=SMALL), beat=0.01) as made:
        assert await made.prompt(2)
        made.clock.now += 70 * 10**9
        async with asyncio.timeout(30):
            while not made.held():  # it has expired, and counts again when it is renewed
                await made.settled()
        made.finish(2, "0.01")
        async with asyncio.timeout(30):
            while not made.enforcer.idle:
                await made.settled()
        assert made.held() == 0


async def test_two_sessions_of_one_process_do_not_pay_for_each_other(tmp_path: Path) -> None:
    async with house(tmp_path, replace(daily("0.1", hold=SMALL), on_exceed="cancel", thresholds=())) as made:
        made.ends.client_says(request(20, "session/new", cwd="/w"))
        made.ends.agent_says(answer(20, sessionId="other"))
        made.forget()
        assert await made.prompt(2)
        assert await made.prompt(3, "other")
        made.reports("0.05")
        made.finish(2)
        assert own(made) == []
        made.ends.agent_says(answer(3, stopReason="end_turn"))
        await made.settled()
        assert made.held() == 0
