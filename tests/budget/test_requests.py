"""`acp-proxy budget request`, `requests`, `approve` and `deny`, typed by a developer and by who leads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.cli import main
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from harness import hub
from tests.ledger.warned import Warnings

PEOPLE = {
    "alice": Identity("alice", "default", "core", "developer"),
    "root": Identity("root", "default", None, "administrator"),
    "lead": Identity("bob", "default", "core", "lead", ("core",)),
}
CONFIG = """
[identity]
user = "alice"
team = "core"
[[budget]]
name = "daily"
window = "day"
limit = { amount = "1", currency = "USD" }
per = "user"
"""
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE) as url:
        yield url


@pytest.fixture
def typed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """As somebody: the status, stdout and stderr."""
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")

    def as_somebody(who: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", who)
        options = [] if "--ledger" in words else ["--ledger", url]
        status = main(["budget", *words, "--config", str(config), *options])
        said = capsys.readouterr()
        return status, said.out, said.err

    return as_somebody


def waiting(typed: Typed, who: str = "lead") -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(typed(who, "requests", "--json")[1])["requests"]
    return found


def test_a_request_is_asked_for_listed_approved_and_counts(typed: Typed) -> None:
    status, said, _ = typed("alice", "request", "daily", "--amount", "5", "--reason", "the release")
    (request,) = waiting(typed)
    assert (status, said) == (0, f'Asked for $5.00 more of budget "daily": request {request["id"]}.\n')
    assert [request[name] for name in ("user", "team", "amount", "state")] == ["alice", "core", "5", "pending"]
    _, listed, _ = typed("lead", "requests")
    assert listed.splitlines()[1].split()[:5] == [request["id"], "alice", "core", "daily", "$5.00"]
    status, said, _ = typed("lead", "approve", str(request["id"])[:4], "--amount", "2", "--for", "2d")
    assert (status, said.startswith('Granted $2.00 more to alice of budget "daily" until 20')) == (0, True)
    (request,) = waiting(typed, "alice")
    assert [request[name] for name in ("state", "granted", "by", "note")] == ["approved", "2", "bob", ""]
    (standing,) = json.loads(typed("alice", "list", "--json")[1])["budgets"]
    assert standing["granted"] == "2"


def test_a_request_is_denied_with_a_reason(typed: Typed) -> None:
    typed("alice", "request", "daily", "--amount", "5", "--reason", "the release")
    (request,) = waiting(typed)
    status, said, _ = typed("lead", "deny", str(request["id"]), "--reason", "next week")
    assert (status, said) == (0, 'Denied $5.00 more for alice of budget "daily".\n')
    assert typed("alice", "requests", "--own")[1].rstrip().endswith("next week")


def test_who_asks_does_not_decide(typed: Typed) -> None:
    typed("alice", "request", "daily", "--amount", "5", "--reason", "the release")
    (request,) = waiting(typed)
    status, said, error = typed("alice", "approve", str(request["id"]), "--for", "2d")
    assert (status, said) == (2, "")
    assert "expected the role administrator or lead, not developer" in error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["approve", "nothing", "--for", "2d"], "no request with the id 'nothing'"),
        (["request", "weekly", "--amount", "5", "--reason", "why"], 'no budget is called "weekly"'),
        (["request", "daily", "--amount", "0", "--reason", "why"], "--amount: expected an amount of USD above 0"),
        (["request", "daily", "--amount", "5", "--reason", " "], "--reason: expected why"),
    ],
    ids=["id", "budget", "amount", "reason"],
)
def test_what_was_mistyped_is_one_line(typed: Typed, words: list[str], error: str) -> None:
    status, said, told = typed("lead", *words)
    assert (status, said, len(told.splitlines())) == (2, "", 1)
    assert error in told
    assert typed("lead", "requests")[1] == "Nobody has asked for more.\n"


def test_without_a_hub_nobody_can_be_asked(typed: Typed, tmp_path: Path) -> None:
    status, _, told = typed("alice", "requests", "--ledger", str(tmp_path / "own.db"))
    assert (status, "requests for more need a hub" in told) == (2, True)


def test_more_of_a_budget_that_the_hub_itself_keeps_is_asked_for_by_its_name(typed: Typed, url: str) -> None:
    table = {"window": "day", "per": "user", "limit": {"amount": "1", "currency": "USD"}}
    authorization = lambda _: "Bearer root"  # noqa: E731
    asked = HubLedger(url, time.time_ns, patience=20, warn=Warnings(), journals=(), authorization=authorization)
    with closing(asked):
        asked.change_policy(Changes({"seats": table}))
    assert typed("alice", "request", "seats", "--amount", "5", "--reason", "the release")[0] == 0
    (request,) = waiting(typed)
    assert [request[name] for name in ("layer", "budget", "for")] == ["hub", "seats", "alice"]
