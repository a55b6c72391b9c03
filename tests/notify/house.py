"""A notifier on a real ledger, whose rounds a test calls and whose clock it sets by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp_proxy.config.channels import Channel, Secret
from acp_proxy.core.budget import Standing
from acp_proxy.core.notice import Notice, threshold_reached
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.notices import DeliveryCount
from acp_proxy.notify.destinations import destinations
from acp_proxy.notify.notifier import Notifier
from harness.rows import NOON
from tests.core.accounts import budget, usd
from tests.ledger.holds import account
from tests.ledger.warned import Warnings

SECONDS = 10**9


@dataclass
class Clock:
    now: int = NOON

    def __call__(self) -> int:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += int(seconds * SECONDS)


@dataclass
class Desk:
    """`steps` are those of the notifier: its watch, and each channel's round."""

    url: str
    channels: tuple[Channel, ...]
    clock: Clock = field(default_factory=Clock)
    timeout: float = 20.0

    def __post_init__(self) -> None:
        self.warnings = Warnings()
        self.notifier = Notifier(
            destinations(self.channels, "default"),
            "default",
            lambda: open_ledger(self.url, patience=20.0, journals=()),
            self.warnings,
            clock=self.clock,
            timeout=self.timeout,
            host="laptop",
        )

    async def round(self) -> None:
        """Every step once, each as `run` takes them, which lets no failure of one end the others."""
        await asyncio.gather(*(self.notifier.guarded(step) for step in self.notifier.steps))

    def note(self, *notices: Notice) -> None:
        with closing(open_ledger(self.url, journals=())) as ledger:
            ledger.outbox.note(notices)

    def counts(self) -> dict[str, int]:
        """By result; of all channels."""
        with closing(open_ledger(self.url, journals=())) as ledger:
            found = ledger.delivery_counts("default")
        return {result: sum(each.count for each in found if each.result == result) for result in _results(found)}


def _results(counts: list[DeliveryCount]) -> list[str]:
    return list(dict.fromkeys(each.result for each in counts))


def channel(url: str, **fields: Any) -> Channel:
    return Channel(**{"name": "team", "layer": "user", "url": Secret(url), **fields})


@asynccontextmanager
async def desk(place: Path | str, *channels: Channel, **fields: Any) -> AsyncIterator[Desk]:
    """On the ledger of that URL, or on a file in a directory."""
    made = Desk(f"sqlite:///{place / 'ledger.db'}" if isinstance(place, Path) else place, channels, **fields)
    try:
        yield made
    finally:
        await made.notifier.aclose()


def notice(number: int = 80, at: int = NOON, name: str = "daily") -> Notice:
    return threshold_reached(Standing(account(budget("1 USD", name=name)), spent=usd("0.8")), number, at)
