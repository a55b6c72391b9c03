"""A refused developer with the official SDK's client: asked in the editor, granted by the lead, and on it goes."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from acp import schema, text_block
from acp.client.connection import ClientSideConnection

from acp_proxy.core.budget.requests import Decision
from acp_proxy.core.windows import DAY
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from harness import hub
from tests.real.clients.sdk_client import EverythingClient, talk

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ann": Identity("ann", "default", "core", "developer"),
    "bob": Identity("bob", "default", "core", "lead", ("core",)),
}
DAILY = {"window": "day", "per": "user", "limit": {"turns": 1}}


class FillsIn(EverythingClient):
    """Sends a form with what its user would write."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Any]] = []

    async def create_elicitation(self, message: str, mode: Any, **params: Any) -> schema.AcceptElicitationResponse:
        self.asked.append((message, mode))
        return schema.AcceptElicitationResponse(action="accept", content={"amount": 2, "reason": "release night"})


@pytest.fixture
def url(tmp_path: Path) -> Any:
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE) as at:
        yield at


async def test_a_developer_asks_in_the_editor_and_goes_on_in_the_same_session(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    async def play(connection: ClientSideConnection, client: FillsIn) -> None:
        forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
        await connection.initialize(1, schema.ClientCapabilities(elicitation=forms))
        session = (await connection.new_session("/", mcp_servers=[])).session_id
        for then in (None, None, approve, None):
            await connection.prompt(session, [text_block("go")])
            if then is not None:
                await asyncio.to_thread(then)

    told = await talk(command, environment, play, client)
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
