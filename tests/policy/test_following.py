"""A policy as a proxy follows it: from the hub, and from disk while there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes, Document
from acp_proxy.policy import Policy, understood
from acp_proxy.policy.following import Followed
from harness import hub

DAILY = {"window": "day", "limit": {"amount": "5", "currency": "USD"}}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubLedger]:
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "any")
    with hub.running(f"sqlite:///{tmp_path}/ledger.db") as url, closing(open_ledger(url, journals=())) as opened:
        assert isinstance(opened, HubLedger)
        yield opened


def followed(directory: Path, told: list[Policy]) -> Followed:
    return Followed("https://hub.example.com", directory, "closed", told.append)


def test_it_is_heard_once_and_again_when_it_was_changed(ledger: HubLedger, tmp_path: Path) -> None:
    told: list[Policy] = []
    follows = followed(tmp_path / "hubs", told)
    ledger.change_policy(Changes({"daily": dict(DAILY)}, {"opus": {"input": "5", "output": "25"}}))
    follows.refresh(ledger)
    follows.refresh(ledger)
    assert [(each.name, each.layer, each.on_unavailable) for each in follows.budgets] == [("daily", "hub", "closed")]
    assert [list(each.prices) for each in told] == [["opus"]]
    ledger.change_policy(Changes({"daily": None}))
    follows.refresh(ledger)
    assert follows.budgets == ()


def test_the_next_proxy_knows_it_without_a_hub(ledger: HubLedger, tmp_path: Path) -> None:
    first = followed(tmp_path / "hubs", [])
    ledger.change_policy(Changes({"daily": dict(DAILY)}))
    first.refresh(ledger)
    told: list[Policy] = []
    second = followed(tmp_path / "hubs", told)
    second.read()
    assert (second.tag, second.policy) == (first.tag, first.policy)
    assert told == [first.policy]
    (file,) = (tmp_path / "hubs").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_read_is_as_none(tmp_path: Path) -> None:
    follows = followed(tmp_path, [])
    follows.read()
    (tmp_path / "https%3A%2F%2Fhub.example.com.policy").write_bytes(b'{"tag": 1')
    follows.read()
    assert (follows.tag, follows.budgets) == (None, ())


def test_of_a_newer_hub_what_is_not_known_is_left_out_and_the_rest_holds() -> None:
    newer = {"name": "newer", "window": "fortnight", "limit": {"turns": 1}}
    found = understood(Document([{"name": "daily", **DAILY}, newer], {"opus": {"per_image": "1"}}))
    assert ([each.name for each in found.budgets], found.prices) == (["daily"], {})
