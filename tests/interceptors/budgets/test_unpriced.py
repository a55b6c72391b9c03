"""Sessions whose model is only an alias: whether the last turn had a price says whether the next one may go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.ends import SESSION, answer, request
from tests.interceptors.budgets.house import House, daily, house

USAGE = {"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
DENIES: dict[str, Any] = {"on_unpriced": "deny"}


def choose(made: House, model: str) -> None:
    made.ends.client_says(request(90, "session/set_model", sessionId=SESSION, modelId=model))
    made.ends.agent_says(answer(90))


async def test_after_an_unpriced_turn_prompts_are_refused_until_another_model_is_chosen(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **DENIES)) as made:
        made.open(model="default")
        assert await made.prompt(2)
        made.finish(2, usage=USAGE)
        assert not await made.prompt(3)
        choose(made, "auto")
        assert await made.prompt(4)
        made.finish(4, usage=USAGE)
        assert not await made.prompt(5)


async def test_a_turn_that_had_a_price_lets_the_next_one_go(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **DENIES)) as made:
        made.open(model="default")
        assert await made.prompt(2)
        assert await made.prompt(3)
        made.finish(2, usage=USAGE)
        assert not await made.prompt(4)
        made.finish(3, "0.1", usage=USAGE)
        assert await made.prompt(5)


async def test_a_turn_that_used_nothing_says_nothing_of_prices(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **DENIES)) as made:
        made.open(model="default")
        assert await made.prompt(2)
        assert await made.prompt(3)
        made.finish(2, usage=USAGE)
        made.finish(3)
        assert not await made.prompt(4)


async def test_a_session_that_is_closed_is_forgotten(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **DENIES)) as made:
        made.open(model="default")
        assert await made.prompt(2)
        made.finish(2, usage=USAGE)
        made.ends.client_says(request(3, "session/close", sessionId=SESSION))
        made.ends.agent_says(answer(3))
        made.ends.client_says(request(4, "session/new", cwd="/w"))
        made.ends.agent_says(answer(4, sessionId=SESSION))  # agents use ids again
        assert await made.prompt(5)


async def test_the_next_session_with_the_id_of_a_closed_one_does_not_have_its_model(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", **DENIES)) as made:
        made.open(model="a-model-without-a-price")
        assert not await made.prompt(2)
        made.ends.client_says(request(3, "session/close", sessionId=SESSION))
        made.ends.agent_says(answer(3))
        made.ends.client_says(request(4, "session/new", cwd="/w"))
        made.ends.agent_says(answer(4, sessionId=SESSION))
        assert await made.prompt(5)
