"""Where budgets of others failed: limits that move, windows that turn, clocks that jump, currencies that differ."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Budget, Limit
from acp_proxy.core.events import Side
from acp_proxy.core.windows import Window
from tests.ends import SESSION, answer, prompt, request, update
from tests.interceptors.budgets.house import ALICE, Clock, House, daily, house, usd

DAY = 24 * 3600 * 10**9


async def spend(root: Path, cost: str, *budgets: Budget, clock: Clock | None = None) -> None:
    async with house(root, *budgets, clock=clock or Clock()) as made:
        assert await made.prompt(2)
        made.finish(2, cost)
        await made.settled()


async def goes(root: Path, *budgets: Budget, clock: Clock | None = None) -> bool:
    async with house(root, *budgets, clock=clock or Clock()) as made:
        return await made.prompt(2)


async def test_a_limit_may_be_lowered_below_what_is_spent_and_raised_again(tmp_path: Path) -> None:
    await spend(tmp_path, "0.5", daily("1"))
    assert not await goes(tmp_path, daily("0.2"))
    assert await goes(tmp_path, daily("2"))


async def test_a_budget_that_is_added_counts_what_was_spent_before(tmp_path: Path) -> None:
    await spend(tmp_path, "0.5")
    assert not await goes(tmp_path, replace(daily("0.5"), name="week", window=Window("week")))


async def test_a_turn_across_midnight_belongs_to_the_day_on_which_it_began(tmp_path: Path) -> None:
    clock = Clock()
    async with house(tmp_path, daily("1", hold=usd("0.5").amount), clock=clock) as made:
        assert await made.prompt(2)
        clock.now += DAY
        made.finish(2, "1")
        assert await made.prompt(3)
        made.finish(3)
        await made.settled()
        assert made.held() == 0
    clock.now -= DAY
    assert not await goes(tmp_path, daily("1"), clock=clock)


async def test_a_clock_that_was_set_back_forgets_nothing(tmp_path: Path) -> None:
    clock = Clock()
    rolling = replace(daily("0.5"), window=Window("rolling", 24))
    await spend(tmp_path, "0.5", rolling, clock=clock)
    clock.now -= 3600 * 10**9
    assert not await goes(tmp_path, rolling, clock=clock)


async def test_two_proxies_that_race_on_the_first_row_of_a_user_share_what_there_is(tmp_path: Path) -> None:
    budget = replace(daily(Limit(3, "turns")), per="user")
    async with house(tmp_path, budget) as one, house(tmp_path, budget) as other:
        for made in (one, other):
            for session in "abcd":
                made.ends.client_says(prompt(ord(session), session=session))
        await asyncio.gather(answered(one), answered(other))
        assert len(sent(one)) + len(sent(other)) == 3


async def answered(made: House) -> None:
    await made.until(lambda: len(sent(made)) + sum("id" in message for message in made.ends.client.messages) == 4)


def sent(made: House) -> list[Any]:
    return [message for message in made.ends.agent.messages if message.get("method") == "session/prompt"]


async def test_each_user_has_a_budget_of_their_own(tmp_path: Path) -> None:
    budget = replace(daily("0.5"), per="user")
    await spend(tmp_path, "0.5", budget)
    assert not await goes(tmp_path, budget)
    async with house(tmp_path, budget, origin=replace(ALICE, user="bob")) as made:
        assert await made.prompt(2)


async def test_another_currency_is_not_counted_and_that_is_said(tmp_path: Path) -> None:
    euros = daily(Limit(10**9, "EUR"))
    async with house(tmp_path, euros) as made:
        assert await made.prompt(2)
        made.finish(2, "5")
        *_, told, end = made.ends.client.messages
        assert made.texts() == ['Not counted by budget "daily", which counts EUR: $5.00.']
        assert (told["method"], end["id"]) == ("session/update", 2)
        await made.settled()
    async with house(tmp_path, euros, origin=replace(ALICE, user="bob")) as made:
        assert await made.prompt(2)
        assert made.texts() == ['Not counted by budget "daily", which counts EUR: $5.00.']


async def test_what_is_not_counted_is_said_to_each_user_once_in_a_window_and_not_by_each_agent_that_starts(
    tmp_path: Path,
) -> None:
    clock, euros = Clock(), daily(Limit(10**9, "EUR"))
    await spend(tmp_path, "5", euros, clock=clock)
    for user, said in ("alice", 0), ("bob", 1), ("bob", 0):
        async with house(tmp_path, euros, clock=clock, origin=replace(ALICE, user=user)) as made:
            assert await made.prompt(2)
            assert len(made.texts()) == said
    clock.now += DAY
    await spend(tmp_path, "5", euros, clock=clock)
    async with house(tmp_path, euros, clock=clock, origin=replace(ALICE, user="bob")) as made:
        assert await made.prompt(2)
        assert made.texts() == ['Not counted by budget "daily", which counts EUR: $5.00.']


@pytest.mark.parametrize("side", Side)
async def test_what_is_said_of_a_turn_that_is_not_counted_when_a_side_is_gone_is_said_again_with_the_next_prompt(
    tmp_path: Path, side: Side
) -> None:
    euros = daily(Limit(10**9, "EUR"))
    async with house(tmp_path, euros) as made:
        assert await made.prompt(2)
        made.reports("5")
        made.ends.dispatcher.ended(side)
    for said in 1, 0:
        async with house(tmp_path, euros) as made:
            assert await made.prompt(2)
            assert made.texts() == ['Not counted by budget "daily", which counts EUR: $5.00.'] * said


async def test_names_that_were_cut_inside_of_an_emoji_are_booked_like_others(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        made.open(model="model \ud83d", agent="agent \ud83d")
        assert await made.prompt(2)
        made.finish(2, "0.5")
        await made.settled()
        (row,) = made.rows()
        assert (row.origin.agent, row.entry.model) == ("agent \ufffd", "model \ufffd")
        assert made.warnings.events == []


async def test_of_several_budgets_each_must_pass_and_the_binding_one_is_named(tmp_path: Path) -> None:
    month = replace(daily("0.5"), name="monthly", window=Window("month"))
    await spend(tmp_path, "0.5", daily("5"), month)
    async with house(tmp_path, daily("5"), month) as made:
        assert not await made.prompt(2)
        assert 'budget "monthly"' in made.texts()[0]
        assert made.held() == 0


async def test_a_budget_for_a_model_counts_only_its_lines(tmp_path: Path) -> None:
    opus = replace(daily("0.5"), scope=replace(daily().scope, model=("*opus*",)))
    await spend(tmp_path, "0.5", opus)
    assert await goes(tmp_path, opus)
    assert not await goes(tmp_path, replace(opus, scope=replace(opus.scope, model=("*sonnet*",))))


async def test_a_budget_for_a_model_is_charged_what_was_used_under_an_alias_of_it(tmp_path: Path) -> None:
    opus = replace(daily("0.05"), scope=replace(daily().scope, model=("*opus*",)))
    async with house(tmp_path, opus, aliases={"default": "anthropic/claude-opus-5-5"}) as made:
        made.open(model="default")
        assert await made.prompt(2)
        made.finish(2, usage={"inputTokens": 12_000, "outputTokens": 100, "totalTokens": 12_100})
        await made.settled()
        assert not await made.prompt(3)
        (row,) = made.rows()
        assert [line.model for line in row.entry.lines] == ["claude-opus-5-5"]


async def test_a_budget_for_a_model_is_asked_as_soon_as_the_agent_has_named_the_model_behind_an_alias(
    tmp_path: Path,
) -> None:
    opus = replace(daily("0"), scope=replace(daily().scope, model=("*opus*",)))
    async with house(tmp_path, opus, agent=("@agentclientprotocol/claude-agent-acp", "0.100.0")) as made:
        made.open(model="default")
        assert await made.prompt(2)
        made.ends.agent_says(update("usage_update", used=7, size=9, _meta={"_claude/model": "claude-opus-5-5"}))
        made.finish(2, "0.1")
        assert not await made.prompt(3)


async def test_a_budget_for_a_turn_begins_anew_with_each_and_one_for_a_session_with_each_session(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, replace(daily("0.5"), window=Window("turn"))) as made:
        for number, cost in ((2, "0.6"), (3, "1.2"), (4, "1.8")):
            assert await made.prompt(number)
            made.finish(number, cost)
    async with house(tmp_path, replace(daily("0.5"), window=Window("session"))) as made:
        assert not await made.prompt(2)
        assert await made.prompt(3, "another")


@pytest.mark.parametrize("limit", [Limit(1010, "tokens"), Limit(1, "turns")])
async def test_tokens_and_turns_are_limits_like_money(tmp_path: Path, limit: Limit) -> None:
    async with house(tmp_path, daily(limit, thresholds=())) as made:
        assert await made.prompt(2)
        made.finish(2, usage={"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010})
        assert not await made.prompt(3)


async def test_a_prompt_to_a_subagent_is_one_of_the_session_that_the_user_sees(tmp_path: Path) -> None:
    by_session = replace(daily(Limit(2, "turns"), thresholds=()), window=Window("session"))
    async with house(tmp_path, by_session) as made:
        assert await made.prompt(2)
        made.ends.agent_says(update("subagent_update", sessionId="child", state={"state": "idle"}))
        made.finish(2)
        assert await made.prompt(3, session="child")
        made.finish(3)
        await made.settled()
        assert not await made.prompt(4, session="child")
        assert [row.entry.session for row in made.rows()] == [SESSION, SESSION]
        made.ends.client_says(request(5, "session/close", sessionId=SESSION))
        made.ends.agent_says(answer(5))
        assert await made.prompt(6, session="child")
