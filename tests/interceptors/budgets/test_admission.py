"""Which prompts reach the agent, and what is held for them meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Limit, Mode
from tests.ends import SESSION, answer, request
from tests.interceptors.budgets.house import ALICE, SECONDS, House, daily, house, usd


async def test_a_prompt_within_the_budget_goes_and_its_turn_has_the_id_that_was_held(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", hold=usd("0.2").amount)) as made:
        assert await made.prompt(2)
        assert made.held() == usd("0.2").amount
        made.finish(2, "0.05")
        await made.settled()
        assert made.held() == 0
        (row,) = made.rows()
        assert row.entry.id[14] == "7"
        assert [cost.text for cost in row.entry.costs] == ["0.05"]
        assert made.decisions() == {"allow": 1}


async def test_a_prompt_beyond_the_budget_never_reaches_the_agent_and_makes_no_row(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", thresholds=())) as made:
        assert await made.prompt(2)
        made.finish(2, "0.1")
        assert not await made.prompt(3)
        assert made.ends.agent.messages[-1]["id"] == 2
        await made.settled()
        assert len(made.rows()) == 1
        assert made.decisions() == {"allow": 1, "deny": 1}


async def test_a_limit_of_0_refuses_everything(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        assert not await made.prompt(2)


async def test_after_a_grant_the_same_session_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        assert not await made.prompt(2)
        made.grant("1")
        assert await made.prompt(3)


async def test_after_a_reset_the_same_session_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", thresholds=())) as made:
        assert await made.prompt(2)
        made.finish(2, "0.1")
        assert not await made.prompt(3)
        made.clock.now += 24 * 3600 * 10**9
        assert await made.prompt(4)


async def test_two_processes_share_one_cap(tmp_path: Path) -> None:
    budget = daily(Limit(2, "turns"), thresholds=())
    async with house(tmp_path, budget) as one, house(tmp_path, budget) as other:
        assert await one.prompt(2)
        assert await other.prompt(2)
        assert not await one.prompt(3)
        other.finish(2)
        await other.settled()
        assert not await other.prompt(3)


async def test_the_first_prompt_holds_what_such_turns_took_in_other_processes(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as before:
        assert await before.prompt(2)
        assert before.held() == usd("0.01").amount
        before.finish(2, "0.05")
        await before.settled()
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        assert made.held() == usd("0.05").amount


@pytest.mark.parametrize(("spent", "admitted"), [("0.99", True), ("0.990000001", False)])
async def test_a_prompt_goes_as_long_as_the_least_that_a_turn_holds_is_left(
    tmp_path: Path, spent: str, admitted: bool
) -> None:
    async with house(tmp_path, daily("1", thresholds=())) as made:
        assert await made.prompt(2)
        made.finish(2, spent)
        assert await made.prompt(3) is admitted


async def test_what_another_process_holds_counts_for_a_minute_after_its_last_beat(tmp_path: Path) -> None:
    all_of_it = daily("1", hold=usd("1").amount)
    async with house(tmp_path, all_of_it) as one, house(tmp_path, all_of_it) as other:
        assert await one.prompt(2)
        other.clock.now += 59 * SECONDS
        assert not await other.prompt(2)
        other.clock.now += 2 * SECONDS
        assert await other.prompt(3)


async def test_a_cap_of_five_turns_admits_exactly_five(tmp_path: Path) -> None:
    async with house(tmp_path, daily(Limit(5, "turns"), thresholds=())) as made:
        admitted = []
        for number in range(2, 10):
            admitted.append(await made.prompt(number))
            if admitted[-1]:
                made.finish(number)
        assert admitted == [True] * 5 + [False] * 3


async def test_a_prompt_that_says_no_session_at_all_is_the_agents_to_refuse(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        made.ends.client_says(request(2, "session/prompt", prompt="not a list"))
        await made.until(lambda: made.reached(2))
        assert made.enforcer.idle


@pytest.mark.parametrize(
    "params", [{"session_id": "sess-1"}, {"sessionId": 1}, {"_meta": {"session_id": "sess-1"}}], ids=str
)
@pytest.mark.parametrize("mode", ["enforce", "warn"])
async def test_a_prompt_that_does_not_say_its_session_reaches_no_agent_by_that(
    tmp_path: Path, params: dict[str, object], mode: Mode
) -> None:
    async with house(tmp_path, daily("0", mode=mode)) as made:
        made.ends.client_says(request(2, "session/prompt", prompt=[], **params))
        await made.until(lambda: made.reached(2) or made.answer_to(2) is not None)
        assert made.reached(2) is (mode == "warn")
        assert [said["error"]["code"] for said in made.ends.client.messages] == ([] if mode == "warn" else [-32602])
        assert made.enforcer.idle


def steering(id: int, **params: object) -> dict[str, object]:
    return request(id, "_session/steering", sessionId=SESSION, prompt=[{"type": "text", "text": "stop"}], **params)


async def test_words_for_a_turn_that_runs_are_part_of_it_and_begin_none_where_none_runs(tmp_path: Path) -> None:
    """Claude and Codex take them as a prompt then, and Codex never tells what that used."""
    goal = {"sessionId": SESSION, "action": "set", "objective": "all tests pass"}
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.ends.client_says(steering(3), request(4, "_session/goal", **goal))
        await made.until(lambda: len(made.ends.agent.messages) == 3)
        made.ends.agent_says(answer(3, outcome="injected"), answer(4))
        made.finish(2)
        made.forget()
        made.ends.client_says(steering(5), steering(6, _meta={"steering": {"idleBehavior": "promptRequired"}}))
        made.ends.client_says(request(7, "_session/goal", **goal))
        made.ends.client_says(request(8, "_session/goal", **goal | {"action": "clear"}))
        await made.until(lambda: bool(made.ends.agent.messages))
        assert [said["id"] for said in made.ends.agent.messages] == [8]
        assert made.answer_to(6) == answer(6, outcome="promptRequired", reason="noRunningTurn")
        for number in (5, 7):
            assert (made.answer_to(number) or {})["error"]["code"] == -32603
        await made.settled()
        assert (made.held(), len(made.rows())) == (0, 1)


async def test_words_for_a_turn_go_their_way_where_no_budget_refuses(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0", mode="warn")) as made:
        made.ends.client_says(steering(2))
        await made.until(lambda: bool(made.ends.agent.messages))


async def test_who_is_out_of_scope_does_not_wait_and_has_no_hold(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0"), origin=replace(ALICE, team="other")) as made:
        assert not await made.prompt(2)
    budget = replace(daily("0"), scope=replace(daily().scope, team=("core",)))
    async with house(tmp_path, budget, origin=replace(ALICE, team="other")) as made:
        assert await made.prompt(2)


async def test_a_budget_in_shadow_counts_what_it_would_refuse(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0", mode="shadow")) as made:
        assert await made.prompt(2)
        assert made.decisions() == {"shadow_deny": 1}
        assert made.texts() == []


async def test_a_failed_turn_is_settled_too(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.ends.agent_says({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "no"}})
        await made.settled()
        assert (made.held(), len(made.rows())) == (0, 1)


async def test_a_turn_whose_agent_is_gone_is_settled_too(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.reports("0.07")
        made.ends.dispatcher.finish()
        await made.settled()
        assert made.held() == 0
        (row,) = made.rows()
        assert (row.entry.stop_reason, [cost.text for cost in row.entry.costs]) == ("crashed", ["0.07"])


async def test_a_prompt_that_waits_when_the_agent_goes_leaves_nothing_held(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        from tests.ends import prompt

        made.ends.client_says(prompt(2))
        made.ends.dispatcher.finish()
        await made.settled()
        await made.settled()
        assert (made.held(), made.rows()) == (0, [])
        assert made.ends.agent.data == b""


async def test_the_ledger_is_opened_when_the_agent_has_named_itself(tmp_path: Path) -> None:
    """Opening it may take longer than a prompt waits."""
    is_open = threading.Event()
    made = House(tmp_path, (daily("1"),), at_first=lambda _: is_open.set())
    made.ends.client_says(request(0, "initialize", protocolVersion=1))
    made.ends.agent_says(answer(0, protocolVersion=1))
    assert await asyncio.to_thread(is_open.wait, 30)
    await made.ends.dispatcher.aclose()
