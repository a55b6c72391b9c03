"""Turns that are stopped while others run, and who elsewhere is told of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget import Budget
from acp_proxy.core.notice import KINDS
from acp_proxy.core.windows import DAY, Window
from acp_proxy.ledger.notices import Subscription
from harness.rows import NOON
from tests.ends import answer, chunk
from tests.interceptors.budgets.house import CANCEL, CANCELLED, SMALL, daily, house, own, permission, usd

STOPPING: dict[str, Any] = {"hold": SMALL, "thresholds": ()}


@pytest.mark.parametrize("on_exceed", ["cancel", "deny_next_tool"])
async def test_what_was_done_is_noted_for_people_elsewhere(tmp_path: Path, on_exceed: str) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING, on_exceed=on_exceed)) as made:
        assert await made.prompt(2)
        made.reports("0.15")
        await made.settled()
        with closing(made.ledger()) as ledger:
            claimed = ledger.outbox.claim(Subscription("default", "team", KINDS), NOON + DAY - 1, NOON + DAY)
        assert claimed
        assert (claimed.notice.kind, claimed.notice.detail) == ("stop", on_exceed)


async def test_a_turn_of_another_session_is_in_nobodys_way(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING, on_exceed="cancel")) as made:
        assert await made.prompt(2)
        assert await made.prompt(3, "another")
        made.reports("0.15")
        assert own(made) == [CANCEL]


async def test_a_turn_that_was_cancelled_is_told_nothing_more_when_another_prompt_comes(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", **STOPPING, on_exceed="cancel")) as made:
        assert await made.prompt(2)
        made.reports("0.15")
        said = made.texts()
        assert await made.prompt(3)
        made.reports("0.2")
        made.ends.agent_says(permission(7), answer(3, stopReason="cancelled"))
        made.reports("0.3")
        assert own(made) == [CANCEL, answer(7, **CANCELLED)]
        assert made.texts() == said


@pytest.mark.parametrize("answered", [True, False])
async def test_a_turn_may_use_tools_when_one_was_stopped_that_a_later_one_has_overtaken(
    tmp_path: Path, answered: bool
) -> None:
    each = Budget("each", "user", Window("turn"), usd("0.1"), **STOPPING, on_exceed="deny_next_tool")
    async with house(tmp_path, each) as made:
        assert await made.prompt(2)
        assert await made.prompt(3)
        made.reports("0.15")
        made.ends.agent_says(permission(7), chunk("done"), answer(3, stopReason="end_turn"))
        if answered:
            made.finish(2)
        assert await made.prompt(4)
        made.ends.agent_says(permission(8))
        assert own(made) == [answer(7, **CANCELLED)]
        assert made.ends.client.messages[-1] == permission(8)
