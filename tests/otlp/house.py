"""An exporter on a real ledger, whose rounds a test calls and whose clock it sets by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.metrics import Exporter
from acp_proxy.otlp.exporting import Exporting
from acp_proxy.otlp.settings import Signal, settings_of
from acp_proxy.otlp.stream import Stream
from harness.rows import NOON
from tests.ledger.warned import Warnings
from tests.metrics.scrapes import configuration
from tests.notify.house import Clock
from tests.notify.receiver import Receiver

__all__ = ["NOON", "Clock", "House", "house"]


@dataclass
class House:
    """`streams` are those of the exporter, by signal."""

    config: Config
    environ: dict[str, str]
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.warnings = Warnings()
        settings = settings_of(self.config, self.environ)
        assert settings is not None
        self.exporting = Exporting(
            settings,
            Exporter(self.config, Catalog(), clock=lambda: self.clock() / 10**9, journals=(), process=False),
            self.config,
            Catalog(),
            lambda: open_ledger(self.config.ledger.url, patience=20.0, journals=()),
            self.warnings,
            clock=self.clock,
            chance=lambda: 0.5,
        )

    def stream(self, signal: Signal) -> Stream:
        (found,) = [each for each in self.exporting.streams if each.poster.to.signal == signal]
        return found

    def append(self, *rows: Row) -> None:
        with closing(open_ledger(self.config.ledger.url, journals=())) as ledger:
            ledger.append(rows)


@asynccontextmanager
async def house(
    directory: Path, receiver: Receiver, text: str = "", *, clock: Clock | None = None, **environ: str
) -> AsyncIterator[House]:
    """Sends to the receiver; `text` is of its configuration."""
    named = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}", **environ}
    made = House(configuration(directory, text), named, clock or Clock())
    try:
        yield made
    finally:
        await made.exporting.aclose()
