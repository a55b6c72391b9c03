"""Alice, who uses the house, and the lead of her team: both at one hub."""

from __future__ import annotations

from contextlib import closing

from acp_proxy.core.budget.requests import Decision, MoreRequest, Wish
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger.hub.ledger import HubLedger
from harness.rows import NOON
from tests.ledger.warned import Warnings

PEOPLE = {
    "alice": Identity("alice", "default", "core", "developer"),
    "lead": Identity("bob", "default", "core", "lead", ("core",)),
}


def by(url: str, who: str) -> HubLedger:
    return HubLedger(
        url, lambda: NOON, patience=20, warn=Warnings(), journals=(), authorization=lambda _: f"Bearer {who}"
    )


def asked(url: str, id: str = "r1") -> MoreRequest:
    with closing(by(url, "alice")) as ledger:
        return ledger.ask_for_more(Wish(id, "user", "daily", "user", "alice", 5_000_000_000, "USD", "release"))


def decided(url: str, decision: Decision) -> None:
    with closing(by(url, "lead")) as ledger:
        ledger.decide(decision)


def requests(url: str) -> list[MoreRequest]:
    """Those of alice, the latest first."""
    with closing(by(url, "alice")) as ledger:
        return ledger.requests(own=True)
