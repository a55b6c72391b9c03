"""Sends the ledger's notices to every configured channel while it runs; never on a relay's path.

Any number of notifiers share a ledger: one of them sends each notice. Each reports by itself that the ledger is
unavailable, because without it they cannot coordinate.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal

from acp_proxy.config import Config
from acp_proxy.core.notice import ledger_is
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import LedgerError, LedgerReadOnlyError, LedgerUnavailableError, Warn, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.notify.delivery import Delivery
from acp_proxy.notify.destinations import Destination, destinations
from acp_proxy.notify.sending import TIMEOUT, Sender

_PATIENCE = 2.0  # seconds that one statement waits for writers
_DEADLINE = 15.0  # seconds that one question to the ledger may take
_ROUND = 5.0  # seconds between two looks at the ledger
AWAY = 20 * SECOND  # after which a ledger that does not answer is worth telling


class Notifier:
    """`clock` is Unix time in nanoseconds, `pause` and `timeout` are seconds. `open` is called in another thread."""

    def __init__(
        self,
        to: Sequence[Destination],
        organisation: str,
        open: Callable[[], BudgetLedger],
        warn: Warn,
        *,
        clock: Callable[[], int] = time.time_ns,
        pause: float = _ROUND,
        timeout: float = TIMEOUT,
        host: str | None = None,
    ) -> None:
        self._organisation = organisation
        self._clock = clock
        self._pause = pause
        self._warn = warn
        self._host = host or socket.gethostname()
        self._books = InThread(open, deadline=_DEADLINE, name="acp-proxy notices", rest=0)  # a round is rest enough
        self._sender = Sender(clock, timeout)
        self.deliveries = [Delivery(each, self._books, self._sender, warn, clock) for each in to]
        self._away_since: int | None = None
        self._told = False
        self._told_refused = False

    @classmethod
    def of(cls, config: Config, warn: Warn) -> Notifier:
        """For every `[[notify]]`. Raises ConfigError with one line for a url_file that cannot be used."""
        organisation = config.identity.organisation
        ledger = partial(open_ledger, config.ledger.url, patience=_PATIENCE, warn=warn)
        return cls(destinations(config.channels, organisation), organisation, ledger, warn)

    async def run(self) -> None:
        """Until it is cancelled, and then it ends at once: what was being sent is sent again later."""
        try:
            async with asyncio.TaskGroup() as group:
                for step in self.steps:
                    group.create_task(self._again_and_again(step))
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        self._books.close(within=1.0)
        await self._sender.aclose()

    @property
    def steps(self) -> list[Callable[[], Awaitable[None]]]:
        """The jobs of every few seconds, which run concurrently: a slow channel does not delay the others."""
        return [self.watch, *(delivery.round for delivery in self.deliveries)]

    async def watch(self) -> None:
        """Report once that the ledger is unavailable, and once that it is back; only for long outages."""
        now = self._clock()
        try:
            await self._books.ask(lambda ledger: ledger.delivery_counts(self._organisation))
        except LedgerError:
            self._away_since = self._away_since or now
            if now - self._away_since >= AWAY and not self._told:
                self._told = True
                self._tell("away", self._away_since, self._away_since)
            return
        if self._told and self._away_since is not None:
            self._tell("back", self._away_since, now)
        self._away_since, self._told = None, False

    def _tell(self, what: Literal["away", "back"], since: int, at: int) -> None:
        notice = ledger_is(what, self._organisation, self._host, since, at)
        for delivery in self.deliveries:
            delivery.tell(notice)

    async def _again_and_again(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self.guarded(step)
            await asyncio.sleep(self._pause)

    async def guarded(self, step: Callable[[], Awaitable[None]]) -> None:
        """A job that fails must not end the others."""
        try:
            await step()
        except LedgerError as error:
            away = isinstance(error, LedgerUnavailableError) and not isinstance(error, LedgerReadOnlyError)
            if not away and not self._told_refused:  # what is due waits; of a ledger that is away `watch` tells
                self._told_refused = True
                self._warn("notify.waits", error=str(error))
        except Exception as error:  # the one boundary
            self._warn("notify.broken", error=type(error).__name__)  # its text may hold a URL
