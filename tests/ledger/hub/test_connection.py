"""A hub that dies, says nothing, is none, or lets nobody in: what a proxy's ledger makes of it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import LedgerError, LedgerForbiddenError, LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.hub_address import canonical
from harness import hub
from harness.hub import AsAsked
from harness.ports import free_port
from harness.rows import row


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "any")


def opened(url: str) -> BudgetLedger:
    return open_ledger(url, journals=(), patience=0.1)


def ids(ledger: BudgetLedger) -> list[str]:
    return [found.entry.id for found in ledger.rows(Query())]


def test_the_next_hub_is_asked_where_one_died_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    kept = f"sqlite:///{tmp_path}/ledger.db"
    with ExitStack() as first, hub.running(kept, claims=AsAsked) as second:
        both = f"{first.enter_context(hub.running(kept, claims=AsAsked))},{second}"
        with closing(opened(both)) as ledger:
            ledger.append([row(id="a")])
            first.close()
            ledger.append([row(id="a"), row(id="b")])
            assert ids(ledger) == ["a", "b"]


def test_a_hub_that_went_away_may_be_back_later(tmp_path: Path) -> None:
    with hub.running(f"sqlite:///{tmp_path}/ledger.db", claims=AsAsked) as url:
        ledger = opened(url)
    with closing(ledger), pytest.raises(LedgerUnavailableError, match="connection refused"):
        ledger.append([row()])


def test_nobody_there_is_one_line() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with closing(opened(url)) as ledger, pytest.raises(LedgerUnavailableError) as caught:
        ledger.check()
    assert str(caught.value) == f"ledger {url}: connection refused"


def test_what_is_no_hub_is_said_to_be_none() -> None:
    page = Starlette(routes=[Route("/{any:path}", lambda _: HTMLResponse("<h1>Hello</h1>"), methods=["GET", "POST"])])
    with hub.served(page) as port, pytest.raises(LedgerError, match="what answers there is no hub"):
        opened(f"http://127.0.0.1:{port}").check()


def test_a_token_that_is_refused_is_one_line_that_names_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = {"good": Identity("alice", "default", None, "developer")}
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "forged-secret")
    with (
        hub.running(f"sqlite:///{tmp_path}/ledger.db", people) as url,
        closing(opened(url)) as ledger,
        pytest.raises(LedgerForbiddenError) as caught,
    ):
        ledger.check()
    assert "ACP_PROXY_HUB_TOKEN" in str(caught.value)
    assert "forged-secret" not in str(caught.value)


def test_an_address_has_one_spelling() -> None:
    assert canonical("https://HUB.example.org:443/,https://b/x/") == "https://hub.example.org,https://b/x"


@pytest.mark.parametrize(
    "url", ["http://hub.example.org", "https://", "https://a:", "https://a:99999", "https://u:p@a", "https://a?x"]
)
def test_an_address_that_is_none_or_would_send_a_token_in_the_clear_is_refused(url: str) -> None:
    with pytest.raises(LedgerError, match="expected https://HOST"):
        canonical(url)
