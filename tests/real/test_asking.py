"""A refused developer with the official SDK's client: asked in the editor, granted by the lead, and on it goes."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget.requests import Decision
from acp_proxy.core.windows import DAY
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from harness import hub

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ann": Identity("ann", "default", "core", "developer"),
    "bob": Identity("bob", "default", "core", "lead", ("core",)),
}
DAILY = {"window": "day", "per": "user", "limit": {"turns": 1}}


@pytest.fixture
def url(tmp_path: Path) -> Any:
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE) as at:
        yield at


async def test_a_developer_asks_in_the_editor_and_goes_on_in_the_same_session(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.real.clients.sdk_forms import FillsIn, four_prompts  # a tenth of what collecting all tests takes

    def at_hub(who: str) -> HubLedger:
        monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", who)
        opened = open_ledger(url, journals=())
        assert isinstance(opened, HubLedger)
        return opened

    def approve() -> None:
        with closing(at_hub("bob")) as ledger:
            (asked,) = ledger.requests(own=False)
            assert (asked.user, asked.wish.amount, asked.wish.why) == ("ann", 2, "release night")
            ledger.decide(Decision(asked.wish.id, approve=True, until=asked.at + DAY))

    with closing(at_hub("root")) as ledger:
        ledger.change_policy(Changes({"daily": dict(DAILY)}))
    heard = tmp_path / "heard by the agent"
    agent = f"tee {shlex.quote(str(heard))} | {sys.executable} -m acp_proxy.demo_agent"
    command = [sys.executable, "-m", "acp_proxy", "run", "--ledger", url, "--no-summary", "--", "sh", "-c", agent]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "ACP_PROXY_HUB_TOKEN": "ann", "LOGNAME": "any"}
    environment["ACP_PROXY_LEDGER__ADMISSION_TIMEOUT"] = "20s"
    client = FillsIn()
    told = await four_prompts(command, environment, client, after_the_third=approve)
    ((message, mode),) = client.asked
    assert message.startswith(
        'Not sent to the agent: budget "daily" (user ann) has too little left. Used: 1 of 1 turns.'
    )
    assert list(mode.requested_schema.properties) == ["amount", "reason"]
    said = [
        each["params"]["update"]["content"]["text"]
        for each in told.got
        if each.get("method") == "session/update" and each["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    ]
    waits = 'You have asked for 2 turns more of budget "daily": request '
    assert [waits in text for text in said if text.startswith("Not sent")] == [True, True]
    assert any(text.startswith('bob has granted you 2 turns more of budget "daily"') for text in said)
    assert sum("Fahrenheit" in text or "Fixed" in text for text in said) == 2
    kept = heard.read_text()
    assert kept.count('"session/prompt"') == 2
    assert "release night" not in kept
    assert "acp-proxy" not in kept
