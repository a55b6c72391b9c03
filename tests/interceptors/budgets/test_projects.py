"""Budgets of projects, while the project of a session is still looked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.core.budget import Budget
from acp_proxy.core.scope import Scope
from tests.ends import prompt
from tests.interceptors.budgets.house import daily, house


class Search:
    """Finds every directory to be of one project, when it is allowed to."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def __call__(self, cwd: Path) -> str:
        self.may_end.wait(30)
        return "found"


@pytest.fixture
def search() -> Iterator[Search]:
    made = Search()
    yield made
    made.may_end.set()


OF_FOUND = daily("0", scope=Scope(project=("found",)))
PER_PROJECT = daily("0", per="project")


@pytest.mark.parametrize(
    "budgets",
    [(OF_FOUND,), (PER_PROJECT,), (daily("9"), OF_FOUND)],
    ids=["of a project", "per project", "among others"],
)
async def test_a_prompt_waits_for_the_project_that_a_budget_asks_for(
    tmp_path: Path, search: Search, budgets: tuple[Budget, ...]
) -> None:
    async with house(tmp_path, *budgets, project_of=search) as made:
        made.ends.client_says(prompt(2))
        for _ in range(3):  # the prompt would be decided by now
            await made.settled()
        assert (made.answer_to(2), made.ends.agent.data) == (None, b"")
        search.may_end.set()
        await made.until(lambda: made.answer_to(2) is not None)
        assert made.ends.agent.data == b""


async def test_a_prompt_waits_no_longer_than_for_the_ledger(tmp_path: Path, search: Search) -> None:
    async with house(tmp_path, PER_PROJECT, project_of=search, options={"timeout": 0.1}) as made:
        assert not await made.prompt(2)


async def test_where_no_budget_asks_for_a_project_nobody_waits_for_it(tmp_path: Path, search: Search) -> None:
    async with house(tmp_path, daily("0"), project_of=search, options={"timeout": 200.0}) as made:
        assert not await made.prompt(2)
        assert not search.may_end.is_set()


async def test_a_prompt_whose_agent_goes_while_the_project_is_looked_for_leaves_nothing_held(
    tmp_path: Path, search: Search
) -> None:
    async with house(tmp_path, daily("9", per="project"), project_of=search) as made:
        made.ends.client_says(prompt(2))
        await made.settled()
        made.ends.dispatcher.finish()
        search.may_end.set()
        async with asyncio.timeout(30):
            while not made.decisions():  # which the ledger makes in any case
                await made.settled()
        for _ in range(3):
            await made.settled()
        with closing(made.ledger()) as ledger:
            assert ledger.recent.open_turns("default", made.clock.now) == []
