"""A refused user whom the leads of a hub answer is told once, with the next prompt, and the session goes on."""

from __future__ import annotations

from pathlib import Path

from acp_proxy.core.budget.requests import Decision
from acp_proxy.core.windows import DAY
from harness.rows import NOON
from tests.interceptors.budgets.house import House, daily, house
from tests.interceptors.budgets.leads import asked, decided

DAILY = daily("0", per="user")
OPTIONS = {"asks": True}


def told(made: House) -> list[str]:
    texts = made.texts()
    made.forget()
    return texts


async def test_what_is_granted_is_told_before_the_next_prompt_goes(tmp_path: Path, url: str) -> None:
    async with house(tmp_path, DAILY, options=OPTIONS, ledger_url=url) as made:
        assert not await made.prompt(2)
        (refusal,) = told(made)
        assert 'acp-proxy budget request daily --amount 0.01 --reason "…"' in refusal
        asked(url)
        assert not await made.prompt(3)
        assert len(told(made)) == 1
        decided(url, Decision("r1", approve=True, until=NOON + DAY, note="until tomorrow"))
        assert await made.prompt(4)
        text, *_ = told(made)
        assert text.startswith('bob has granted you $5.00 more of budget "daily", until ')
        assert text.endswith(": until tomorrow.")
        made.finish(4)
        assert await made.prompt(5)
        assert not [text for text in told(made) if "granted you" in text]


async def test_what_is_denied_is_told_with_the_next_refusal(tmp_path: Path, url: str) -> None:
    async with house(tmp_path, DAILY, options=OPTIONS, ledger_url=url) as made:
        assert not await made.prompt(2)
        asked(url)
        decided(url, Decision("r1", approve=False, note="next week"))
        told(made)
        assert not await made.prompt(3)
        (text,) = told(made)
        assert text.endswith('bob has denied you $5.00 more of budget "daily": next week.')
        assert not await made.prompt(4)
        (text,) = told(made)
        assert "denied" not in text


async def test_without_a_hub_nobody_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path, daily("0")) as made:
        assert not await made.prompt(2)
        assert "acp-proxy budget grant" in told(made)[0]
