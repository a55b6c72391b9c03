"""When a running turn is told to stop: by the best that is known of it, and never so late that another turn is hit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget import Limit
from acp_proxy.core.scope import Scope
from tests.ends import SESSION, answer, prompt, request, update
from tests.interceptors.budgets.house import CANCEL, CANCELLED, SMALL, daily, house, own, permission

CODEX = ("@agentclientprotocol/codex-acp", "2.6.0")
GOOSE = ("goose", "1.52.0")
CLAUDE = ("@agentclientprotocol/claude-agent-acp", "0.100.0")
QWEN = ("qwen-code", "0.24.4")
AGENTPOOL = ("agentpool", "2.9.18")
PLAN = update("plan", entries=[])
USAGE = {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100}

# claude-sonnet-5: 0.2 $ a million tokens from the cache, 2 $ a million that are new.
STOPPING: dict[str, Any] = {"hold": SMALL, "thresholds": (), "on_exceed": "cancel"}


def context(used: int) -> dict[str, Any]:
    return update("usage_update", used=used, size=1_000_000)


def costs(amount: str, used: int = 1000) -> dict[str, Any]:
    return update("usage_update", used=used, size=1_000_000, cost={"amount": float(amount), "currency": "USD"})


def call(total: int) -> dict[str, Any]:
    """As qwen-code tells one model call."""
    meta = {"usage": {"inputTokens": total - 100, "outputTokens": 100, "totalTokens": total}}
    return update("agent_message_chunk", content={"type": "text", "text": ""}, _meta=meta)


async def test_contexts_prove_calls_where_the_agent_tells_no_cost(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=CODEX) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(250_000), context(260_000))  # 0.05, 0.05 and 0.02 for what is new
        assert own(made) == [CANCEL]
        (text,) = made.texts()
        assert "Used: at least $0.12 of $0.10, as far as can be told while the turn runs." in text


async def test_the_cost_that_stopped_a_turn_is_not_what_is_booked_of_it(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=CODEX) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(600_000))
        assert own(made) == [CANCEL]
        made.finish(2, usage=USAGE)
        await made.settled()
        (row,) = made.rows()
        assert [cost.text for cost in row.entry.costs] == ["0.003"]
        assert made.decisions()["cancel"] == 1


async def test_a_context_that_is_told_again_proves_nothing_new(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=CODEX) as made:
        assert await made.prompt(2)
        made.ends.agent_says(*[context(300_000)] * 5)
        assert own(made) == []


async def test_claude_tells_two_contexts_of_a_call(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=CLAUDE) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(200_000), context(201_000), context(210_000))  # 0.0591 and 0.02
        assert own(made) == []
        made.ends.agent_says(context(211_000))
        assert own(made) == [CANCEL]


async def test_contexts_of_an_agent_that_nobody_has_described_prove_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.01", **STOPPING)) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(400_000), context(500_000))
        assert own(made) == []


async def test_calls_are_added_up_where_an_agent_tells_each(tmp_path: Path) -> None:
    async with house(tmp_path, daily(Limit(50_000, "tokens"), **STOPPING | {"hold": 1}), agent=QWEN) as made:
        assert await made.prompt(2)
        made.ends.agent_says(call(30_000), call(20_000))
        assert own(made) == []
        made.ends.agent_says(call(1_000))
        assert own(made) == [CANCEL]
        assert "Used: at least 51,000 of 50,000 tokens" in made.texts()[-1]


async def test_a_session_that_was_closed_and_is_taken_up_again_brings_nothing_of_what_it_cost(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **STOPPING), agent=GOOSE) as made:
        assert await made.prompt(2)
        made.finish(2, "0.6")
        await made.settled()
        made.ends.client_says(request(3, "session/close", sessionId=SESSION))
        made.ends.agent_says(answer(3))
        made.ends.client_says(request(4, "session/resume", sessionId=SESSION, cwd="/w"))
        made.ends.agent_says(answer(4))
        assert await made.prompt(5)
        made.ends.agent_says(costs("0.7"))
        assert CANCEL not in own(made)
        made.ends.agent_says(costs("1.01", 2000))
        assert own(made)[-1] == CANCEL


async def test_the_next_session_with_the_id_of_a_deleted_one_is_stopped_by_what_it_costs_itself(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **STOPPING), agent=GOOSE) as made:
        assert await made.prompt(2)
        made.finish(2, "0.6")
        await made.settled()
        made.ends.client_says(request(3, "session/delete", sessionId=SESSION))
        made.ends.agent_says(answer(3))
        made.ends.client_says(request(4, "session/new", cwd="/w"))
        made.ends.agent_says(answer(4, sessionId=SESSION))
        await made.settled()
        assert await made.prompt(5)
        made.ends.agent_says(costs("0.4"))
        assert CANCEL not in own(made)
        made.ends.agent_says(costs("0.41", 2000))
        assert own(made)[-1] == CANCEL


async def test_a_budget_of_other_models_is_not_concerned(tmp_path: Path) -> None:
    budget = daily("0.1", **STOPPING, scope=Scope(model=("claude-sonnet-*",)))
    async with house(tmp_path, budget, agent=CODEX) as made:
        assert await made.prompt(2)
        made.ends.client_says(request(3, "session/set_model", sessionId=SESSION, modelId="claude-opus-5-5"))
        made.ends.agent_says(answer(3), context(600_000))
        assert own(made) == [request(3, "session/set_model", sessionId=SESSION, modelId="claude-opus-5-5")]


@pytest.mark.parametrize(("agent", "told"), [(CODEX, context(600_000)), (GOOSE, costs("0.11"))], ids=["least", "cost"])
async def test_a_budget_for_a_model_is_concerned_by_an_alias_of_it(
    tmp_path: Path, agent: tuple[str, str], told: dict[str, Any]
) -> None:
    budget = daily("0.1", **STOPPING, scope=Scope(model=("claude-sonnet-*",)))
    async with house(tmp_path, budget, agent=agent, aliases={"default": "anthropic/claude-sonnet-5"}) as made:
        made.open(model="default")
        assert await made.prompt(2)
        made.ends.agent_says(told)
        assert own(made) == [CANCEL]


async def test_of_models_that_a_turn_had_the_cheapest_is_what_its_contexts_prove(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=CODEX) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(200_000))  # 0.04, and 0.3 by the model that is chosen now
        made.ends.client_says(request(3, "session/set_model", sessionId=SESSION, modelId="claude-opus-4-1"))
        made.ends.agent_says(answer(3), context(200_001))
        assert made.texts() == []
        made.ends.agent_says(context(200_002))
        assert own(made)[-1] == CANCEL
        assert "Used: at least $0.12 of $0.10" in made.texts()[0]


async def test_the_agents_own_cost_wins_over_what_its_contexts_prove(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), agent=GOOSE) as made:
        assert await made.prompt(2)
        made.ends.agent_says(costs("0.02", 500_000))
        assert own(made) == []
        made.ends.agent_says(costs("0.11", 501_000))
        assert own(made) == [CANCEL]
        assert "Used: $0.11 of $0.10. " in made.texts()[-1]


async def test_the_agents_own_cost_counts_for_the_models_that_had_it(tmp_path: Path) -> None:
    """Of a session's cumulative cost only what came while a model of the budget was chosen."""
    sonnet = daily("0.1", **STOPPING, scope=Scope(model=("claude-sonnet-*",)))
    async with house(tmp_path, sonnet, agent=GOOSE) as made:

        def choose(id: int, model: str) -> None:
            made.ends.client_says(request(id, "session/set_model", sessionId=SESSION, modelId=model))
            made.ends.agent_says(answer(id))

        assert await made.prompt(2)
        made.ends.agent_says(costs("0.05"))
        choose(3, "claude-opus-5-5")
        made.ends.agent_says(costs("0.5", 2000))
        choose(4, "claude-sonnet-5")
        made.ends.agent_says(costs("0.54", 3000))
        assert made.texts() == []
        made.ends.agent_says(costs("0.56", 4000))
        assert own(made)[-1] == CANCEL
        assert "Used: $0.11 of $0.10. " in made.texts()[-1]


@pytest.mark.parametrize("agent", [CLAUDE, AGENTPOOL], ids=["claude", "agentpool"])
async def test_a_cost_that_comes_when_all_is_done_stops_nothing(tmp_path: Path, agent: tuple[str, str]) -> None:
    """It is in their last update: a cancellation would come too late, and be told and counted for nothing."""
    async with house(tmp_path, daily("0.1", **STOPPING), agent=agent) as made:
        assert await made.prompt(2)
        made.ends.agent_says(context(1000), costs("0.5"))
        assert (own(made), made.texts()) == ([], [])
        made.finish(2, usage=USAGE)
        await made.settled()
        assert "cancel" not in made.decisions()


class Later:
    """Looks into updates when it is told to, as the loop does a moment after they were forwarded."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def __call__(self, look: Callable[[], None]) -> None:
        self.due.append(look)

    def passes(self) -> None:
        for look in self.due:
            look()
        self.due.clear()


@pytest.mark.parametrize("on_exceed", ["cancel", "deny_next_tool"])
@pytest.mark.parametrize("in_one_chunk", [True, False])
async def test_a_turn_is_not_stopped_when_its_answer_is_here(
    tmp_path: Path, on_exceed: str, in_one_chunk: bool
) -> None:
    later = Later()
    async with house(tmp_path, daily("0.1", **STOPPING | {"on_exceed": on_exceed}), later=later) as made:
        assert await made.prompt(2)
        last = (PLAN, costs("0.15"), answer(2, stopReason="end_turn"))
        for said in [last] if in_one_chunk else [(each,) for each in last]:
            made.ends.agent_says(*said)
        later.passes()
        made.ends.agent_says(permission(7))
        assert made.ends.client.messages[-1] == permission(7)
        await made.settled()
        assert (own(made), made.texts()) == ([], [])
        assert "cancel" not in made.decisions()


async def test_a_turn_that_is_looked_into_while_it_runs_is_stopped(tmp_path: Path) -> None:
    later = Later()
    async with house(tmp_path, daily("0.1", **STOPPING), later=later) as made:
        assert await made.prompt(2)
        made.ends.agent_says(PLAN, costs("0.15"))
        assert own(made) == []
        later.passes()
        assert own(made) == [CANCEL]


async def test_a_permission_is_judged_by_the_cost_that_came_before_it_though_nobody_has_looked(tmp_path: Path) -> None:
    budget = daily("0.1", **STOPPING | {"on_exceed": "deny_next_tool"})
    async with house(tmp_path, budget, later=Later()) as made:
        assert await made.prompt(2)
        made.ends.agent_says(costs("0.01"), costs("0.15"), permission(7))
        assert own(made) == [answer(7, **CANCELLED)]
        assert permission(7) not in made.ends.client.messages


async def test_nothing_is_cancelled_at_an_agent_that_is_gone(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING), later=Later()) as made:
        assert await made.prompt(2)
        made.ends.agent_says(PLAN, costs("0.15"))
        made.ends.dispatcher.finish()
        await made.settled()
        assert own(made) == []
        assert "cancel" not in made.decisions()


async def test_idle_is_the_end_of_a_turn_in_version_2(tmp_path: Path) -> None:
    later = Later()
    async with house(tmp_path, daily("0.1", **STOPPING), later=later, protocol=2) as made:
        assert await made.prompt(2)
        made.ends.agent_says(answer(2, messageId="m"), update("state_update", state="running"))
        made.ends.agent_says(costs("0.15"), update("state_update", state="idle"))
        later.passes()
        assert own(made) == []


async def test_while_another_prompt_waits_in_the_session_only_tools_are_denied(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING)) as made:
        assert await made.prompt(2)
        assert await made.prompt(3)
        made.ends.agent_says(costs("0.15"), permission(7))
        assert own(made) == [answer(7, **CANCELLED)]
        assert made.texts()[-1].startswith("A tool was not permitted")
        made.ends.agent_says(answer(3, stopReason="cancelled"), costs("0.16"))
        assert own(made) == [answer(7, **CANCELLED), CANCEL]


async def test_a_prompt_that_is_never_answered_holds_nothing_and_is_in_nobodys_way(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING)) as made:
        assert await made.prompt(2)
        assert await made.prompt(3)
        made.finish(3, usage=USAGE)
        await made.settled()
        assert made.held() == 0
        assert await made.prompt(4)
        made.ends.agent_says(costs("0.15"))
        assert own(made) == [CANCEL]


async def test_the_next_prompt_is_not_stopped_for_what_the_last_one_cost(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING)) as made:
        assert await made.prompt(2)
        made.ends.agent_says(costs("0.15"))
        made.ends.agent_says(answer(2, stopReason="cancelled"))
        await made.settled()
        made.grant("0.2")
        made.forget()
        assert await made.prompt(3)
        made.ends.agent_says(costs("0.16"), permission(8))
        assert own(made) == []
        made.ends.agent_says(costs("0.4"))
        assert own(made) == [CANCEL, answer(8, **CANCELLED)]


async def test_a_prompt_without_a_budget_is_in_the_way_of_a_cancellation_too(tmp_path: Path) -> None:
    """Its model is in no budget's scope, so nothing is held for it; it would be cancelled all the same."""
    budget = daily("0.1", **STOPPING, scope=Scope(model=("claude-sonnet-*",)))
    async with house(tmp_path, budget) as made:
        assert await made.prompt(2)
        made.ends.client_says(request(4, "session/set_model", sessionId=SESSION, modelId="claude-opus-5-5"))
        made.ends.agent_says(answer(4))
        made.ends.client_says(prompt(3))
        await made.until(lambda: prompt(3) in made.ends.agent.messages)
        made.ends.agent_says(costs("0.15"))
        assert CANCEL not in own(made)
