"""Budgets on plans between a client and an agent that tells how much of the user's plan is used."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import HOUR, SECOND
from acp_proxy.ledger.notices import Subscription
from harness.rows import NOON
from tests.ends import SESSION, request, update
from tests.interceptors.budgets.house import ALICE, House, daily, house

KEEP = PlanBudget("keep", "user", "five_hour", 80)
UNPAID = PlanBudget("unpaid", "user", "five_hour", 100, on_overage="deny")
FIVE = PlanWindow("five_hour", FULL * 9 // 10, "allowed_warning", NOON + 2 * HOUR, "allowed", NOON)


def limited(root: Path, *budgets: PlanBudget, **fields: Any) -> AbstractAsyncContextManager[House]:
    return house(root, options={"of_plans": budgets}, **fields)


def tells(made: House, percent: int, **others: Any) -> None:
    """What Claude sends of its user's plan."""
    told = {"rateLimitType": "five_hour", "utilization": percent / 100, "resetsAt": (NOON + 2 * HOUR) // SECOND}
    meta = {"_claude/rateLimit": {"status": "allowed_warning", **told, **others}}
    made.ends.agent_says(update("usage_update", used=1, size=9, _meta=meta))


def kept(made: House, *windows: PlanWindow, agent: str = "someone", user: str = "alice") -> None:
    """What another process was told."""
    ledger = made.ledger()
    ledger.note_plan(replace(ALICE, agent=agent, user=user), windows)
    ledger.close()


async def test_a_prompt_is_refused_from_the_percent_on(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        assert await made.prompt(2)
        tells(made, 79)
        made.finish(2)
        assert await made.prompt(3)
        tells(made, 80)
        made.finish(3)
        assert not await made.prompt(4)
        assert made.texts()[-1] == (
            'Not sent to the agent: budget "keep" is used up: it allows 80 % of your plan\'s window (5 h), and 80 % is '
            "used. It resets on 2026-11-21 at 14:00 UTC, in 2 h 0 min. To go on before that, run "
            "`acp-proxy budget set keep --percent N` and start the agent again."
        )
        answer = made.answer_to(4)
        assert answer is not None
        assert answer["result"] == {"stopReason": "end_turn", "_meta": {"acp-proxy": {"budget": "keep"}}}


async def test_what_another_process_was_told_counts(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        kept(made, FIVE)
        assert not await made.prompt(2)
    assert made.rows() == []


async def test_what_another_process_is_told_in_the_meantime_counts_after_the_next_turn(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        assert await made.prompt(2)
        kept(made, FIVE)
        made.finish(2)
        await made.settled()
        assert not await made.prompt(3)


async def test_a_window_that_was_reset_refuses_nobody(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        kept(made, FIVE)
        assert not await made.prompt(2)
        made.clock.now = NOON + 2 * HOUR
        assert await made.prompt(3)


async def test_the_plan_of_another_user_or_agent_refuses_nobody(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        kept(made, FIVE, agent="another")
        kept(made, FIVE, user="bob")
        assert await made.prompt(2)


async def test_what_is_not_known_is_logged_once(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        for number in (2, 3):
            assert await made.prompt(number)
            made.finish(number)
        tells(made, 5)
        assert await made.prompt(4)
    assert made.logged == [
        (
            "info",
            "budget.plan_unknown",
            {
                "budget": "keep",
                "agent": "someone",
                "window": "five_hour",
                "effect": "it refuses nobody until the agent tells how much is used",
            },
        )
    ]
    assert made.decisions() == {"allow": 3}


async def test_out_of_scope_nothing_is_refused(tmp_path: Path) -> None:
    async with limited(tmp_path, replace(KEEP, scope=Scope(model=("*opus*",)))) as made:
        kept(made, FIVE)
        assert await made.prompt(2)
        assert made.texts() == []
    async with limited(tmp_path, replace(KEEP, scope=Scope(model=("*sonnet*",)))) as made:
        assert not await made.prompt(2)


async def test_a_budget_that_warns_says_it_once_in_a_window_before_the_agents_words(tmp_path: Path) -> None:
    async with limited(tmp_path, replace(KEEP, mode="warn")) as made:
        kept(made, FIVE)
        for number in (2, 3):
            assert await made.prompt(number)
            made.finish(number)
        assert made.texts() == [
            'Budget "keep" is used up: it allows 80 % of your plan\'s window (5 h), and 90 % is used. '
            "It resets on 2026-11-21 at 14:00 UTC, in 2 h 0 min. It only warns: prompts go on."
        ]
    assert made.decisions() == {"warn": 2}


async def test_a_budget_that_warns_says_it_once_whichever_process_has_the_prompt(tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        async with limited(tmp_path, replace(KEEP, mode="warn")) as made:
            kept(made, FIVE)
            assert await made.prompt(2)
            made.finish(2)
            texts += made.texts()
    assert len(texts) == 1
    async with limited(tmp_path, replace(KEEP, mode="warn", name="another")) as made:
        assert await made.prompt(2)
        assert len(made.texts()) == 1  # another budget on the same window is another matter


async def test_a_budget_in_shadow_only_counts(tmp_path: Path) -> None:
    async with limited(tmp_path, replace(KEEP, mode="shadow")) as made:
        kept(made, FIVE)
        assert await made.prompt(2)
        assert made.texts() == []
    assert made.decisions() == {"shadow_deny": 1}


async def test_overage_is_denied_once_it_is_in_use_until_a_window_resets(tmp_path: Path) -> None:
    async with limited(tmp_path, UNPAID) as made:
        assert await made.prompt(2)
        tells(made, 60, isUsingOverage=True)
        made.finish(2)
        assert not await made.prompt(3)
        assert made.texts()[-1].startswith(
            'Not sent to the agent: budget "unpaid" allows nothing that is paid beside your plan, and now that would '
            "begin. It resets on 2026-11-21 at 14:00 UTC"
        )
        assert "`acp-proxy budget set unpaid --on-overage allow`" in made.texts()[-1]
        made.clock.now = NOON + 2 * HOUR
        assert await made.prompt(4)


async def test_overage_is_denied_as_soon_as_another_window_is_full(tmp_path: Path) -> None:
    week = replace(FIVE, window="seven_day", used=FULL, resets_at=NOON + 60 * HOUR)
    async with limited(tmp_path, UNPAID) as made:
        kept(made, FIVE, week)
        assert not await made.prompt(2)
        assert "in 2 d 12 h" in made.texts()[-1]
    async with limited(tmp_path, replace(UNPAID, on_overage="allow")) as made:
        assert await made.prompt(2)


async def test_where_there_is_no_overage_the_plan_itself_refuses(tmp_path: Path) -> None:
    week = replace(FIVE, window="seven_day", used=FULL, resets_at=NOON + 60 * HOUR, overage="rejected")
    async with limited(tmp_path, UNPAID) as made:
        kept(made, week)
        assert await made.prompt(2)


async def test_words_that_would_begin_a_turn_are_refused_and_into_one_that_runs_they_go(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        tells(made, 50)
        assert await made.prompt(2)
        tells(made, 85)
        steering = request(3, "_session/steering", sessionId=SESSION, prompt=[])
        made.ends.client_says(steering)
        await made.until(lambda: steering in made.ends.agent.messages)
        made.finish(2)
        goal = request(4, "_session/goal", sessionId=SESSION, goal="on")
        made.ends.client_says(goal)
        await made.until(lambda: made.answer_to(4) is not None)
        assert goal not in made.ends.agent.messages


async def test_nothing_is_held_for_a_prompt_that_a_plan_refuses(tmp_path: Path) -> None:
    async with house(tmp_path, daily(), options={"of_plans": (KEEP,)}) as made:
        kept(made, FIVE)
        assert not await made.prompt(2)
        assert made.held() == 0
        made.clock.now = NOON + 2 * HOUR
        assert await made.prompt(3)
        assert made.held() > 0


async def test_people_elsewhere_are_told_of_a_refusal_once_in_a_window(tmp_path: Path) -> None:
    async with limited(tmp_path, KEEP) as made:
        kept(made, FIVE)
        assert not await made.prompt(2)
        assert not await made.prompt(3)
        await made.settled()
        ledger = made.ledger()
        wanted = Subscription("default", "c", ("refusal",))
        now = made.clock.now
        claimed = [each.notice for _ in range(2) if (each := ledger.outbox.claim(wanted, now, now + HOUR))]
        ledger.close()
    assert [(each.budget, each.detail, each.window, each.percent) for each in claimed] == [
        ("keep", "used_up", "five_hour", 80)
    ]


async def test_an_error_says_the_same(tmp_path: Path) -> None:
    async with house(tmp_path, options={"of_plans": (KEEP,), "style": "error"}) as made:
        kept(made, FIVE)
        assert not await made.prompt(2)
        answer = made.answer_to(2)
        assert answer is not None
        assert answer["error"]["message"].startswith('Not sent to the agent: budget "keep" is used up')


async def test_money_that_a_plan_has_paid_is_neither_held_nor_counted(tmp_path: Path) -> None:
    without = replace(daily("1"), scope=Scope(without_plans=True))
    async with house(tmp_path, without, options={"of_plans": (KEEP,)}) as made:
        assert await made.prompt(2)
        assert made.held() > 0  # it is not known yet
        tells(made, 10)
        made.finish(2, cost="5")
        await made.settled()
        assert [found.origin.billing for found in made.rows()] == ["plan"]
        assert await made.prompt(3)
        assert made.held() == 0
        tells(made, 20, isUsingOverage=True)
        made.finish(3, cost="9")
        await made.settled()
        assert [found.origin.billing for found in made.rows()] == ["plan", "tokens"]
        assert not await made.prompt(4)  # of $1 are used 4


async def test_what_the_real_agent_told_of_a_plan_refuses_the_next_prompt(tmp_path: Path) -> None:
    recording = Path(__file__).parents[2] / "transcripts/claude-plan-0.101.0/basic.jsonl"
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    told = next(json.loads(each["raw"]) for each in lines if "_claude/rateLimit" in each.get("raw", ""))
    told["params"]["sessionId"] = SESSION
    limit = told["params"]["update"]["_meta"]["_claude/rateLimit"]
    async with limited(tmp_path, KEEP) as made:
        made.clock.now = (limit["resetsAt"] - 3600) * SECOND
        assert await made.prompt(2)
        made.ends.agent_says(told)
        made.finish(2)
        assert not await made.prompt(3)
        assert "it allows 80 % of your plan's window (5 h), and 91 % is used" in made.texts()[-1]
        made.clock.now = limit["resetsAt"] * SECOND
        assert await made.prompt(4)
