"""What a proxy with budgets notes for people elsewhere, while it tells its user."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.notice import KINDS, Notice
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY, Window
from acp_proxy.ledger.notices import Subscription
from tests.interceptors.budgets.house import ALICE, House, daily, house


def noted(made: House) -> list[Notice]:
    wanted = Subscription("default", "test", KINDS)
    found = []
    with closing(made.ledger()) as ledger:
        while claimed := ledger.outbox.claim(wanted, made.clock.now, made.clock.now + DAY):
            found.append(claimed.notice)
    return found


async def test_of_thresholds_that_a_turn_reaches_the_highest_is_noted_once(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", per="user")) as made:
        assert await made.prompt(2)
        made.finish(2, "0.85")
        await made.settled()
        async with house(tmp_path, daily("1", per="user")) as other:
            assert await other.prompt(2)
            other.finish(2, "0.01")
            await other.settled()
        (notice,) = noted(made)
    assert (notice.kind, notice.percent, notice.spent, notice.limit) == ("threshold", 80, 850_000_000, 1_000_000_000)
    assert (notice.per, notice.value, notice.user) == ("user", "alice", None)


async def test_a_threshold_of_a_budget_for_each_turn_is_noted_once_a_day(tmp_path: Path) -> None:
    async with house(tmp_path, replace(daily("1", per="user"), window=Window("turn"))) as made:
        for number, cost in enumerate(("0.85", "1.7", "2.55"), 2):
            assert await made.prompt(number)
            made.finish(number, cost)
            await made.settled()
        assert [notice.percent for notice in noted(made)] == [80]
        made.clock.now += DAY
        assert await made.prompt(5)
        made.finish(5, "3.4")
        await made.settled()
        assert [notice.percent for notice in noted(made)] == [80]


async def test_a_budget_for_each_turn_of_ones_own_is_noted_beside_anothers_of_that_name(tmp_path: Path) -> None:
    for user in ("alice", "bob"):
        own = replace(daily("1", scope=Scope(user=(user,))), window=Window("turn"))
        async with house(tmp_path, own, origin=replace(ALICE, user=user)) as made:
            assert await made.prompt(2)
            made.finish(2, "0.85")
            await made.settled()
            assert [notice.percent for notice in noted(made)] == [80]


async def test_one_that_is_reached_in_mid_turn_is_noted_then(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.reports("0.6")
        await made.settled()
        assert [(notice.percent, notice.spent) for notice in noted(made)] == [(50, 600_000_000)]
        made.finish(2, "0.95")
        await made.settled()
        assert [notice.percent for notice in noted(made)] == [90]


async def test_what_a_killed_proxy_could_not_note_the_next_one_does(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", thresholds=())) as silent:
        assert await silent.prompt(2)
        silent.finish(2, "0.6")
        await silent.settled()
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        assert [notice.percent for notice in noted(made)] == [50]


async def test_shadow_budgets_are_silent_and_those_that_warn_are_not(tmp_path: Path) -> None:
    silent, loud = daily("1", mode="shadow", thresholds=(10,)), daily("1", mode="warn", thresholds=(10,))
    for budget, expected in ((silent, []), (loud, [10])):
        directory = tmp_path / budget.mode
        directory.mkdir()
        async with house(directory, budget) as made:
            assert await made.prompt(2)
            made.finish(2, "0.6")
            await made.settled()
            assert [notice.percent for notice in noted(made)] == expected


async def test_a_refusal_is_noted_with_who_and_what(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        assert not await made.prompt(2)
        assert not await made.prompt(3)
        (notice,) = noted(made)
    assert (notice.kind, notice.detail, notice.budget) == ("refusal", "used_up", "daily")
    assert (notice.user, notice.team, notice.project, notice.agent) == ("alice", "core", "web", "someone")
    assert notice.model == "claude-sonnet-5"


@pytest.mark.parametrize("on_exceed", ["cancel", "deny_next_tool"])
async def test_a_turn_that_is_stopped_is_noted_once(tmp_path: Path, on_exceed: str) -> None:
    async with house(tmp_path, daily("0.1", hold=10_000_000, thresholds=(), on_exceed=on_exceed)) as made:
        assert await made.prompt(2)
        made.reports("0.2")
        made.reports("0.3")
        await made.settled()
        (notice,) = noted(made)
    assert (notice.kind, notice.detail, notice.spent) == ("stop", on_exceed, 200_000_000)
    assert (notice.user, notice.project, notice.model) == ("alice", "web", "claude-sonnet-5")
