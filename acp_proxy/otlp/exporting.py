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

from acp_proxy.config import Config
from acp_proxy.config.applied import catalog_of
from acp_proxy.ledger import LedgerError, Warn, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.metrics import Exporter
from acp_proxy.otlp.outgoing import Batch, Outgoing
from acp_proxy.otlp.sending import Outcome, Poster
from acp_proxy.otlp.settings import OtlpSettings, settings_of

_PATIENCE = 2.0  # seconds that one statement waits for writers
_DEADLINE = 30.0  # seconds that one question to the ledger may take
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds
_SELDOM = 60.0  # seconds between two tries of what somebody has to mend first


class Exporting:
    """`clock` is Unix ns, `chance` from 0 to 1. `open` is called in another thread."""

    def __init__(
        self,
        settings: OtlpSettings,
        exporter: Exporter,
        organisation: str,
        open: Callable[[], BudgetLedger],
        warn: Warn,
        *,
        clock: Callable[[], int] = time.time_ns,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._warn = warn
        self._outgoing = Outgoing(exporter, settings, organisation, clock)
        self._books = InThread(open, deadline=_DEADLINE, name="acp-proxy otlp", rest=0)
        self.streams = [
            Stream(Poster(target, clock), settings.interval, self._books, self._outgoing, warn, chance)
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
        return cls(settings, Exporter(config, catalog, process=False), config.identity.organisation, ledger, warn)

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
                pause = _SELDOM
            await asyncio.sleep(pause)


class Stream:
    """One signal."""

    def __init__(
        self,
        poster: Poster,
        interval: float,
        books: InThread[BudgetLedger],
        outgoing: Outgoing,
        warn: Warn,
        chance: Callable[[], float],
    ) -> None:
        self.poster = poster
        self._interval = interval
        self._books = books
        self._outgoing = outgoing
        self._warn = warn
        self._chance = chance
        self._failures = 0  # in a row
        self._told: str | None = None  # what was logged last, until it goes well again

    async def round(self) -> float:
        """Send what there is; after how many seconds the next round is due."""
        batch = await self._made()
        if batch is None:
            return self._interval
        return await self._sent(batch)

    async def _made(self) -> Batch | None:
        try:
            return await self._books.ask(self._outgoing.metrics)
        except LedgerError as error:
            self._tell(f"ledger: {error}")
            return self._outgoing.metrics_without_ledger()

    async def _sent(self, batch: Batch) -> float:
        outcome = await self.poster.post(batch.content)
        if outcome.result == "sent":
            self._failures = 0
            self._tell(outcome.error)
            return self._interval
        self._failures += 1
        self._tell(outcome.error)
        return min(self._pause(outcome), max(self._interval, outcome.wait))

    def _pause(self, outcome: Outcome) -> float:
        if outcome.result == "elsewhere":
            return _SELDOM
        doubled = min(_FIRST_PAUSE * 2.0 ** min(self._failures - 1, 20), _LONGEST_PAUSE)
        return max(doubled * (0.8 + 0.4 * self._chance()), outcome.wait)

    def _tell(self, error: str | None) -> None:
        """Once of each trouble, and once that it is over."""
        if error == self._told:
            return
        to = self.poster.to
        if error is None:
            self._warn("otlp.sent_again", signal=to.signal, host=to.host)
        else:
            self._warn("otlp.not_sent", signal=to.signal, host=to.host, error=error)
        self._told = error
