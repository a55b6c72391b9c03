"""Sends what a ledger has as OTLP while it runs: each signal in a round of its own, so that none waits for another.

A receiver that is away is asked less and less often, up to once a minute, or when it said; what it has not taken stays
in the ledger. Of metrics nothing has to be kept: the next export says all.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from functools import partial

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.config.applied import catalog_of
from acp_proxy.ledger import Warn, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.metrics import Exporter
from acp_proxy.otlp.outgoing import Outgoing
from acp_proxy.otlp.sending import Poster
from acp_proxy.otlp.settings import OtlpSettings, Signal, settings_of
from acp_proxy.otlp.stream import SELDOM, Make, Stream

_PATIENCE = 2.0  # seconds that one statement waits for writers
_DEADLINE = 30.0  # seconds that one question to the ledger may take
_ROUND = 5.0  # seconds between two looks for what has happened


class Exporting:
    """`clock` is Unix ns, `chance` from 0 to 1. `open` is called in another thread."""

    def __init__(
        self,
        settings: OtlpSettings,
        exporter: Exporter,
        config: Config,
        catalog: Catalog,
        open: Callable[[], BudgetLedger],
        warn: Warn,
        *,
        clock: Callable[[], int] = time.time_ns,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._warn = warn
        self._outgoing = outgoing = Outgoing(exporter, settings, config, catalog, clock)
        self._books = InThread(open, deadline=_DEADLINE, name="acp-proxy otlp", rest=0)
        make: dict[Signal, Make] = {"metrics": outgoing.metrics, "traces": outgoing.traces, "logs": outgoing.logs}
        self.streams = [
            Stream(
                Poster(target, clock),
                make[target.signal],
                outgoing.settle,
                self._books,
                warn,
                interval=settings.interval if target.signal == "metrics" else _ROUND,
                chance=chance,
                otherwise=outgoing.metrics_without_ledger if target.signal == "metrics" else lambda: None,
            )
            for target in settings.targets
        ]

    @classmethod
    def of(cls, config: Config, environ: Mapping[str, str], warn: Warn) -> Exporting | None:
        """None where nothing says where to. Raises ConfigError with one line for what cannot be used."""
        settings = settings_of(config, environ)
        if settings is None:
            return None
        catalog = catalog_of(config)
        catalog.read()
        ledger = partial(open_ledger, config.ledger.url, patience=_PATIENCE, warn=warn)
        return cls(settings, Exporter(config, catalog, process=False), config, catalog, ledger, warn)

    async def run(self) -> None:
        """Until it is cancelled, and then it ends at once: what was being sent is sent again later."""
        try:
            async with asyncio.TaskGroup() as group:
                for stream in self.streams:
                    group.create_task(self._again_and_again(stream))
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        self._books.tell(self._outgoing.leave)
        self._books.close(within=1.0)
        for stream in self.streams:
            await stream.poster.aclose()

    async def _again_and_again(self, stream: Stream) -> None:
        while True:
            try:
                pause = await stream.round()
            except Exception as error:  # the one boundary: a signal that fails must not end the others
                self._warn("otlp.broken", signal=stream.poster.to.signal, error=type(error).__name__)
                pause = SELDOM
            await asyncio.sleep(pause)
