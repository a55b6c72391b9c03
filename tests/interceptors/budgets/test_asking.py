"""A refused user is asked in the editor whether to ask for more, and what they fill in is asked of the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Limit
from acp_proxy.core.budget.requests import Decision
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY
from harness.rows import NOON
from tests.ends import answer, prompt
from tests.interceptors.budgets.house import CANCEL, House, daily, house, own, validator
from tests.interceptors.budgets.leads import asked, decided, requests

DAILY = daily("0", per="user")
FORM = {"options": {"asks": True, "ask": "form"}, "client_forms": True}
CHOICE = {"options": {"asks": True, "ask": "choice"}}
ASKS = ("elicitation/create", "session/request_permission")


def questions(made: House) -> list[dict[str, Any]]:
    return [each for each in made.ends.client.messages if each.get("method") in ASKS]


async def question(made: House, id: int = 2) -> dict[str, Any]:
    """The one that a prompt makes, which goes on waiting."""
    made.ends.client_says(prompt(id))
    await made.until(lambda: bool(questions(made)))
    (found,) = questions(made)
    assert made.answer_to(id) is None
    return found


async def answered(made: House, id: int = 2) -> str:
    """What the user is told in the end of a prompt that was refused."""
    await made.until(lambda: made.answer_to(id) is not None)
    assert own(made) == []
    assert not made.reached(id)
    (text,) = made.texts()
    return text


def accept(asked: dict[str, Any], **content: Any) -> dict[str, Any]:
    return answer(asked["id"], action="accept", content=content)


async def test_a_form_asks_how_much_and_why_and_the_hub_has_it_before_the_user_is_told(
    tmp_path: Path, url: str
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        asked = await question(made)
        validator(1, "CreateElicitationRequest").validate(asked["params"])
        assert asked["params"]["message"].startswith(
            'Not sent to the agent: budget "daily" (user alice) has too little'
        )
        assert "You can ask for more." in asked["params"]["message"]
        schema = asked["params"]["requestedSchema"]
        assert schema["properties"]["amount"]["default"] == 0.01
        assert schema["required"] == ["amount", "reason"]
        made.ends.client_says(accept(asked, amount=2.5, reason=" release\n night "))
        text = await answered(made)
        (filed,) = requests(url)
        assert (filed.user, filed.state, filed.wish.amount) == ("alice", "pending", 2_500_000_000)
        assert (filed.wish.why, filed.wish.value) == ("release night", "alice")
        assert text.startswith("Not sent to the agent:")
        assert f'You have asked for $2.50 more of budget "daily": request {filed.wish.id} waits' in text
        assert "acp-proxy budget" not in text
        assert (made.answer_to(2) or {})["result"]["stopReason"] == "end_turn"


async def test_once_it_is_granted_the_next_prompt_of_the_session_goes(tmp_path: Path, url: str) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        made.ends.client_says(accept(await question(made), amount=1, reason="x"))
        await answered(made)
        made.forget()
        assert not await made.prompt(3)
        (text,) = made.texts()
        assert "waits for a decision" in text
        (filed,) = requests(url)
        decided(url, Decision(filed.wish.id, approve=True, until=NOON + DAY))
        made.forget()
        assert await made.prompt(4)
        assert made.texts()[0].startswith('bob has granted you $1.00 more of budget "daily"')
        assert questions(made) == []


@pytest.mark.parametrize(
    "said",
    [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel"}},
        {"result": {"action": "_later", "content": {"amount": 1, "reason": "x"}}},
        {"result": None},
        {"result": "yes"},
        {"error": {"code": -32601, "message": "Method not found"}},
    ],
)
async def test_who_declines_or_answers_nothing_sensible_is_refused_as_ever_and_asked_no_more(
    tmp_path: Path, url: str, said: dict[str, Any]
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        asked = await question(made)
        made.ends.client_says({"jsonrpc": "2.0", "id": asked["id"], **said})
        assert 'acp-proxy budget request daily --amount 0.01 --reason "…"' in await answered(made)
        assert requests(url) == []
        made.forget()
        assert not await made.prompt(3)
        assert questions(made) == []


@pytest.mark.parametrize(
    ("content", "amount", "why"),
    [
        ({}, 10_000_000, "asked in the editor"),
        ({"amount": None, "reason": "\u202e\x1b[0m"}, 10_000_000, "[0m"),
        ({"amount": "0.5", "reason": 7}, 500_000_000, "asked in the editor"),
        ({"amount": 1e3, "reason": "x" * 2000}, 1000_000_000_000, "x" * 500),
    ],
)
async def test_what_is_left_out_is_as_it_was_proposed(
    tmp_path: Path, url: str, content: dict[str, Any], amount: int, why: str
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        made.ends.client_says(accept(await question(made), **content))
        await answered(made)
        (filed,) = requests(url)
        assert (filed.wish.amount, filed.wish.why) == (amount, why)


@pytest.mark.parametrize("amount", [0, -5, "much", True, [5], 1e300, "NaN", 1e-12])
async def test_an_amount_that_is_none_is_named_and_nothing_is_asked_for(tmp_path: Path, url: str, amount: Any) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        made.ends.client_says(accept(await question(made), amount=amount, reason="x"))
        text = await answered(made)
        assert text.endswith("Nothing was asked for: expected an amount of USD above 0.")
        assert requests(url) == []


async def test_turns_are_asked_for_as_whole_ones(tmp_path: Path, url: str) -> None:
    turns = daily(Limit(0, "turns"), per="user")
    async with house(tmp_path, turns, ledger_url=url, **FORM) as made:
        asked = await question(made)
        validator(1, "CreateElicitationRequest").validate(asked["params"])
        assert asked["params"]["requestedSchema"]["properties"]["amount"]["type"] == "integer"
        made.ends.client_says(accept(asked, amount=1.5, reason="x"))
        assert (await answered(made)).endswith("expected an amount of turns above 0.")


async def test_a_client_of_version_2_is_asked_as_well_and_gets_the_refusal_as_an_error(
    tmp_path: Path, url: str
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, protocol=2, **FORM) as made:
        asked = await question(made)
        validator(2, "CreateElicitationRequest").validate(asked["params"])
        made.ends.client_says(accept(asked, amount=1, reason="x"))
        await made.until(lambda: made.answer_to(2) is not None)
        assert "You have asked for $1.00 more" in (made.answer_to(2) or {})["error"]["message"]


@pytest.mark.parametrize(("protocol", "code"), [(1, None), (2, -32800)])
async def test_a_prompt_that_is_cancelled_meanwhile_ends_as_cancelled(
    tmp_path: Path, url: str, protocol: int, code: int | None
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, protocol=protocol, **FORM) as made:
        asked = await question(made)
        made.ends.client_says(CANCEL)
        await made.until(lambda: made.answer_to(2) is not None)
        said = made.answer_to(2) or {}
        assert said.get("error", {}).get("code") == code
        assert said.get("result") == (None if code else {"stopReason": "cancelled"})
        assert made.texts() == []
        made.ends.client_says(accept(asked, amount=1, reason="x"))
        await made.settled()
        assert requests(url) == []


async def test_who_answers_too_late_was_refused_and_has_asked_all_the_same(tmp_path: Path, url: str) -> None:
    options = {**FORM, "options": {**FORM["options"], "ask_timeout": 0.01}}  # type: ignore[dict-item]
    async with house(tmp_path, DAILY, ledger_url=url, **options) as made:
        made.ends.client_says(prompt(2))
        assert "acp-proxy budget request" in await answered(made)
        (asked,) = questions(made)
        made.ends.client_says(*[accept(asked, amount=1, reason="x")] * 2)
        await made.settled()
        assert len(requests(url)) == 1
        assert own(made) == []
        made.forget()
        assert not await made.prompt(3)
        assert "waits for a decision" in made.texts()[0]


async def test_nobody_is_asked_whose_request_waits_but_reminded_of_it(tmp_path: Path, url: str) -> None:
    asked(url)
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        for number in (2, 3):
            assert not await made.prompt(number)
            assert "request r1 waits for a decision" in made.texts()[-1]
        assert questions(made) == []


@pytest.mark.parametrize(("at", "again"), [(NOON, False), (NOON + DAY, True)])
async def test_nobody_is_asked_who_was_denied_before_the_window_is_another_one(
    tmp_path: Path, url: str, at: int, again: bool
) -> None:
    asked(url)
    decided(url, Decision("r1", approve=False, note="no"))
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        made.clock.now = at
        made.ends.client_says(prompt(2))
        await made.until(lambda: bool(questions(made)) or made.answer_to(2) is not None)
        assert bool(questions(made)) is again


async def test_a_user_is_asked_once_over_all_windows_of_the_editor(tmp_path: Path, url: str) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **FORM) as made:
        made.ends.client_says(answer((await question(made))["id"], action="decline"))
        await answered(made)
        async with house(tmp_path, DAILY, ledger_url=url, **FORM) as another:
            assert not await another.prompt(2)
            assert questions(another) == []


@pytest.mark.parametrize(
    "fields",
    [
        {**FORM, "client_forms": False},
        {**FORM, "options": {"asks": True, "ask": "never"}},
        {**FORM, "options": {"asks": False}},
        {**CHOICE, "protocol": 2},
    ],
    ids=["no forms", "never", "no hub", "a choice in version 2"],
)
async def test_who_cannot_or_is_not_to_be_asked_is_refused_at_once(
    tmp_path: Path, url: str, fields: dict[str, Any]
) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **fields) as made:
        assert not await made.prompt(2)
        assert questions(made) == []


async def test_nobody_asks_for_more_of_a_budget_of_their_own(tmp_path: Path, url: str) -> None:
    mine = daily("0", scope=Scope(user=("alice",)))
    async with house(tmp_path, mine, ledger_url=url, **FORM) as made:
        assert not await made.prompt(2)
        assert questions(made) == []
        assert "acp-proxy budget grant" in made.texts()[0]


async def test_what_the_hub_refuses_to_take_is_told(tmp_path: Path, url: str) -> None:
    for number in range(20):
        asked(url, f"r{number}")
    other = replace(DAILY, name="another")
    async with house(tmp_path, other, ledger_url=url, **FORM) as made:
        made.ends.client_says(accept(await question(made), amount=1, reason="x"))
        text = await answered(made)
        assert "More could not be asked for: " in text
        assert "20 requests of yours wait" in text
        assert "acp-proxy budget request another" in text


async def test_a_choice_asks_for_what_is_proposed(tmp_path: Path, url: str) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **CHOICE) as made:
        asked = await question(made)
        validator(1, "RequestPermissionRequest").validate(asked["params"])
        yes, no = asked["params"]["options"]
        assert (yes["name"], no["name"]) == ("Ask for $0.01 more", "Not now")
        made.ends.client_says(answer(asked["id"], outcome={"outcome": "selected", "optionId": yes["optionId"]}))
        assert 'You have asked for $0.01 more of budget "daily"' in await answered(made)
        (over,) = [
            each["params"]
            for each in made.ends.client.messages
            if each.get("method") == "session/update" and "toolCallId" in each["params"]["update"]
        ]
        validator(1, "SessionNotification").validate(over)
        assert over["update"]["toolCallId"] == asked["params"]["toolCall"]["toolCallId"]
        (filed,) = requests(url)
        assert filed.wish.why == "asked in the editor"


@pytest.mark.parametrize(
    "outcome", [{"outcome": "selected", "optionId": "not-now"}, {"outcome": "cancelled"}, {"outcome": "selected"}, None]
)
async def test_who_chooses_not_now_is_refused_as_ever(tmp_path: Path, url: str, outcome: Any) -> None:
    async with house(tmp_path, DAILY, ledger_url=url, **CHOICE) as made:
        made.ends.client_says(answer((await question(made))["id"], outcome=outcome))
        await made.until(lambda: made.answer_to(2) is not None)
        assert requests(url) == []
