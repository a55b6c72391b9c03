"""What a user is told of budgets, when, and how often."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Limit
from acp_proxy.core.notice import KINDS
from acp_proxy.core.pricing import Priced
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY, Window, WindowName
from acp_proxy.ledger.notices import Subscription
from harness.rows import NOON
from tests.core.story import PRICES
from tests.ends import SESSION, answer, request, update
from tests.interceptors.budgets.house import SECONDS, House, daily, house, validator


def check(made: House, version: int) -> None:
    """Every line that the client got is what the schema of its version says."""
    for message in made.ends.client.messages:
        if message.get("method") == "session/update":
            name = "SessionNotification" if version == 1 else "UpdateSessionNotification"
            validator(version, name).validate(message["params"])
        elif "error" in message:
            validator(version, "Error").validate(message["error"])
        elif version == 1 and "stopReason" in message.get("result", {}):
            validator(version, "PromptResponse").validate(message["result"])


async def refused(made: House) -> dict[str, Any]:
    assert not await made.prompt(2)
    answer = made.answer_to(2)
    assert answer
    return answer


async def test_a_refusal_is_a_message_and_an_ordinary_end(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        end = await refused(made)
        assert end["result"] == {"stopReason": "end_turn", "_meta": {"acp-proxy": {"budget": "daily"}}}
        (text,) = made.texts()
        assert "daily" in text
        assert "acp-proxy budget grant" in text
        assert "resets" in text
        assert made.ends.client.messages[-1] == end
        check(made, 1)


async def test_a_refusal_may_be_an_error_with_nothing_but_details(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0"), options={"style": "error"}) as made:
        error = (await refused(made))["error"]
        assert error["code"] == -32603
        assert "\n" not in error["message"]
        assert error["data"] == {"details": error["message"]}
        assert made.texts() == []
        check(made, 1)


async def test_version_2_always_gets_the_error(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0"), protocol=2) as made:
        error = (await refused(made))["error"]
        assert set(error["data"]) == {"details"}
        assert made.texts() == []
        check(made, 2)


async def test_a_crossing_is_told_before_the_line_that_ends_the_turn(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.finish(2, "0.85")
        *_, warning, end = made.ends.client.messages
        assert warning["params"]["update"]["content"]["text"].startswith('\n\n80 % of budget "daily" is reached.')
        assert end["id"] == 2
        assert len(made.texts()) == 1
        check(made, 1)


async def test_a_crossing_by_what_the_end_itself_reports_is_told_before_it(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.02")) as made:
        assert await made.prompt(2)
        made.finish(2, usage={"inputTokens": 10_000, "outputTokens": 100, "totalTokens": 10_100})
        *_, warning, end = made.ends.client.messages
        assert "100 %" in warning["params"]["update"]["content"]["text"]
        assert "Further prompts will be refused" in warning["params"]["update"]["content"]["text"]
        assert end["id"] == 2


async def test_what_an_older_prompt_costs_is_not_told_of_one_that_was_refused_meanwhile(tmp_path: Path) -> None:
    async with house(tmp_path, replace(daily("1"), window=Window("turn"))) as made:
        assert await made.prompt(2)
        made.reports("0.9")
        assert await made.prompt(3)
        made.ends.agent_says({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "busy"}})
        assert made.texts() == []
        made.finish(2)
        assert [text[:4] for text in made.texts()] == ["90 %"]


async def test_clients_that_show_notices_get_notices(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), client_notices=True) as made:
        assert await made.prompt(2)
        made.finish(2, "0.55")
        *_, warning, end = made.ends.client.messages
        assert warning["params"]["update"]["sessionUpdate"] == "notice"
        assert warning["params"]["update"]["title"] == 'Budget "daily"'
        assert end["id"] == 2
        check(made, 1)


async def test_version_2_gets_notices(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), protocol=2) as made:
        assert await made.prompt(2)
        made.ends.agent_says(answer(2, messageId="m"))
        state: dict[str, Any] = {"jsonrpc": "2.0", "method": "session/update"}
        for each in ({"state": "running"}, {"state": "idle", "stopReason": "end_turn"}):
            update = {"sessionUpdate": "state_update", **each}
            if each["state"] == "idle":
                made.reports("0.95")
            made.ends.agent_says(state | {"params": {"sessionId": SESSION, "update": update}})
        *_, warning, end = made.ends.client.messages
        assert warning["params"]["update"]["sessionUpdate"] == "notice"
        assert end["params"]["update"]["state"] == "idle"
        validator(2, "UpdateSessionNotification").validate(warning["params"])


async def test_each_threshold_is_told_once(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        for number, cost in ((2, "0.3"), (3, "0.5"), (4, "0.6"), (5, "0.7")):
            assert await made.prompt(number)
            made.finish(number, cost)
        assert [text[:4] for text in made.texts()] == ["50 %"]


async def test_what_another_session_of_the_process_has_used_meanwhile_is_part_of_what_is_told(tmp_path: Path) -> None:
    """The ledger is asked how it stands every ten seconds, and turns may be shorter."""
    async with house(tmp_path, daily("1")) as made:
        made.ends.client_says(request(20, "session/new", cwd="/w"))
        made.ends.agent_says(answer(20, sessionId="other"))
        made.forget()
        assert await made.prompt(2)
        assert await made.prompt(3, "other")
        cost = {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 0.3, "currency": "USD"}}
        said = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "other", "update": cost}}
        made.ends.agent_says(said, answer(3, stopReason="end_turn"))
        assert made.texts() == []
        made.finish(2, "0.25")
        (text,) = made.texts()
        assert text.startswith('50 % of budget "daily" is reached. Used: $0.55 of $1.00')


@pytest.mark.parametrize("meanwhile", [True, False])
async def test_what_a_background_task_cost_while_a_prompt_runs_is_counted_once(tmp_path: Path, meanwhile: bool) -> None:
    """It has a row of its own at once, of which the ledger tells `meanwhile` if the turn is long enough."""
    claude = ("@agentclientprotocol/claude-agent-acp", "0.100.0")
    async with house(tmp_path, daily("0.1", thresholds=(60, 80)), agent=claude, beat=0.01 if meanwhile else 60) as made:
        assert await made.prompt(2)
        cost, meta = {"amount": 0.05, "currency": "USD"}, {"_claude/origin": {"kind": "task-notification"}}
        made.ends.agent_says(update("usage_update", used=1000, size=200_000, cost=cost, _meta=meta))
        await made.settled()
        made.clock.now += 70 * SECONDS
        while meanwhile and not made.held():  # until the next beat, after which the loop knows how the budget stands
            await made.settled()
        await made.settled()
        made.finish(2, "0.07")
        (text,) = made.texts()
        assert text.startswith('60 % of budget "daily" is reached. Used: $0.07 of $0.10')
        await made.settled()
        assert {row.entry.kind: [cost.text for cost in row.entry.costs] for row in made.rows()} == {
            "autonomous": ["0.05"],
            "turn": ["0.02"],
        }


async def test_a_threshold_is_noted_at_the_time_at_which_it_was_reached(tmp_path: Path) -> None:
    """And not when the ledger got to it, which may be later than the next refusal."""
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        await made.settled()
        go_on, reached = threading.Event(), made.clock.now
        made.worker.do(lambda _: go_on.wait(30))
        made.finish(2, "0.85")
        made.clock.now += 10 * SECONDS
        go_on.set()
        await made.settled()
        with closing(made.ledger()) as ledger:
            claimed = ledger.outbox.claim(Subscription("default", "team", KINDS), NOON + DAY, NOON + DAY)
        assert claimed is not None
        assert reached < claimed.notice.at < reached + SECONDS


async def test_another_process_does_not_tell_it_again(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as one:
        assert await one.prompt(2)
        one.finish(2, "0.6")
        assert len(one.texts()) == 1
        await one.settled()
        async with house(tmp_path, daily("1")) as other:
            assert await other.prompt(2)
            other.finish(2, "0.1")
            assert other.texts() == []


async def test_who_is_refused_leaves_it_to_others_to_tell_what_is_reached(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", thresholds=())) as silent:
        assert await silent.prompt(2)
        silent.finish(2, "1.2")
        await silent.settled()
    async with house(tmp_path, daily("1", thresholds=(50,))) as one, house(tmp_path, daily("1")) as other:
        assert not await one.prompt(2)
        other.grant("1")
        assert await other.prompt(2)
        assert [text[:4] for text in other.texts()] == ["50 %"]


async def test_what_was_reached_before_is_told_right_after_admission_as_a_paragraph(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", thresholds=())) as silent:
        assert await silent.prompt(2)
        silent.finish(2, "0.6")
        await silent.settled()
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        (warning,) = made.ends.client.messages
        text = warning["params"]["update"]["content"]["text"]
        assert text.startswith("50 % of")
        assert text.endswith("\n\n")


async def test_of_thresholds_that_are_reached_at_once_the_highest_is_told(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", thresholds=())) as silent:
        assert await silent.prompt(2)
        silent.finish(2, "0.85")
        await silent.settled()
    async with house(tmp_path, daily("1")) as made:
        assert await made.prompt(2)
        made.finish(2, "0.15")
        assert [text.partition(" of ")[0] for text in made.texts()] == ["80 %", "100 %"]


@pytest.mark.parametrize("why", ["the user has set a price", "the budget is for another model"])
async def test_nobody_is_told_of_a_cost_that_will_not_be_counted(tmp_path: Path, why: str) -> None:
    price = (lambda _model, _usage, _at: Priced(None, configured=True)) if "price" in why else PRICES.price
    scope = Scope(model=("claude-sonnet-*",)) if "model" in why else Scope()
    async with house(tmp_path, daily("1", scope=scope), options={"price": price}) as made:
        assert await made.prompt(2)
        if "model" in why:
            made.ends.client_says(request(3, "session/set_model", sessionId=SESSION, modelId="claude-opus-5-5"))
            made.ends.agent_says(answer(3))
        made.reports("0.9")
        await made.settled()
        with closing(made.ledger()) as ledger:
            assert ledger.outbox.claim(Subscription("default", "team", KINDS), NOON + DAY, NOON + DAY) is None


async def test_it_may_be_told_again_in_the_next_window(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", thresholds=(50,))) as made:
        assert await made.prompt(2)
        made.finish(2, "0.6")
        made.clock.now += 24 * 3600 * 10**9
        assert await made.prompt(3)
        made.finish(3, "1.3")
        assert len(made.texts()) == 2


async def test_a_budget_that_warns_lets_go_and_tells(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0.1", mode="warn", thresholds=(100,))) as made:
        assert await made.prompt(2)
        made.finish(2, "0.2")
        assert await made.prompt(3)
        assert [text[:5] for text in made.texts()] == ["100 %"]


async def test_a_model_without_a_price_is_refused_where_that_is_wanted(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", on_unpriced="deny")) as made:
        made.open(model="nobody-knows-it")
        assert not await made.prompt(2)
        assert "nobody-knows-it" in made.texts()[0]


async def test_a_budget_that_is_used_up_says_so_also_of_a_model_without_a_price(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        made.open(model="nobody-knows-it")
        assert not await made.prompt(2)
        assert made.texts()[0].startswith('Not sent to the agent: budget "daily" has too little left.')


@pytest.mark.parametrize(("model", "name"), [("default", "default"), (None, "this session's model")])
async def test_a_model_that_nobody_knows_is_refused_once_a_turn_of_it_had_no_price(
    tmp_path: Path, model: str | None, name: str
) -> None:
    async with house(tmp_path, daily("1", on_unpriced="deny")) as made:
        made.ends.client_says(request(9, "session/new", cwd="/w"))
        made.ends.agent_says(answer(9, sessionId="other", models={"currentModelId": model} if model else None))
        made.forget()
        assert await made.prompt(2, "other")
        made.finish(2, usage={"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010})
        assert not await made.prompt(3, "other")
        assert f"and {name} has none" in made.texts()[-1]
        made.ends.client_says(request(4, "session/set_model", sessionId="other", modelId="claude-sonnet-5"))
        made.ends.agent_says(answer(4))
        assert await made.prompt(5, "other")


async def test_what_cannot_be_counted_is_said_loudly_once(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1")) as made:
        made.open(model="nobody-knows-it")
        usage = {"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
        for number in (2, 3, 4):
            assert await made.prompt(number)
            made.finish(number, usage=usage)
            await made.settled()
        assert [text[:26] for text in made.texts()] == ['Not counted by budget "dai']


@pytest.mark.parametrize("window", ["day", "turn", "session"])
async def test_a_turn_that_a_budget_cannot_count_is_told_before_it_ends_and_in_the_log(
    tmp_path: Path, window: WindowName
) -> None:
    async with house(tmp_path, replace(daily(Limit(10**9, "EUR")), window=Window(window))) as made:
        for number, cost in (2, "5"), (3, "6"):
            assert await made.prompt(number)
            made.finish(number, cost)
            assert made.texts() == ['Not counted by budget "daily", which counts EUR: $5.00.']
            await made.settled()
        assert made.warnings.told == [("budget.not_counted", {"budget": "daily", "error": made.texts()[0]})]


async def test_of_two_budgets_with_one_name_for_single_turns_each_is_told(tmp_path: Path) -> None:
    euros = replace(daily(Limit(10**9, "EUR")), window=Window("turn"))
    yen = replace(euros, layer="admin", limit=Limit(10**9, "JPY"))
    async with house(tmp_path, euros, yen) as made:
        assert await made.prompt(2)
        made.finish(2, "5")
        assert made.texts() == [
            f'Not counted by budget "daily", which counts {unit}: $5.00.' for unit in ("EUR", "JPY")
        ]
        await made.settled()
        assert [fields["error"] for _, fields in made.warnings.told] == made.texts()


@pytest.mark.parametrize("limit", [Limit(100, "tokens"), Limit(10**9, "USD")])
async def test_a_budget_that_cannot_count_an_agent_which_tells_nothing_says_so(tmp_path: Path, limit: Limit) -> None:
    for estimate, said in (True, 0), (False, 1):
        async with house(tmp_path / str(estimate), daily(limit), options={"estimate": estimate}) as made:
            for number in (2, 3):
                assert await made.prompt(number)
                made.finish(number)
                await made.settled()
            assert len(made.texts()) == len(made.warnings.told) == said
            assert all("told nothing" in text for text in made.texts())


async def test_a_budget_in_shadow_says_nothing_of_what_it_cannot_count(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1", mode="shadow")) as made:
        made.open(model="nobody-knows-it")
        for number in (2, 3):
            assert await made.prompt(number)
            made.finish(number, usage={"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010})
            await made.settled()
        assert made.texts() == []


@pytest.mark.parametrize("style", ["message", "error"])
async def test_no_text_speaks_of_context_or_tokens(tmp_path: Path, style: str) -> None:
    async with house(tmp_path, daily("0"), options={"style": style}) as made:
        await refused(made)
        said = made.ends.client.data.lower()
        assert b"context" not in said
        assert b"token" not in said
