"""Asks providers for their bills each day while it runs, and keeps how much of each the ledger had.

Any number of processes share a ledger: one of them asks each provider. What fails is tried again, and what was kept
before stays meanwhile. A key is read when it is needed, and is in no log line and in no table.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial

from msgspec import Struct

from acp_proxy.bills import BillError
from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, ConfigError
from acp_proxy.config.applied import catalog_of
from acp_proxy.config.values import BillSource
from acp_proxy.core.windows import DAY, HOUR, SECOND
from acp_proxy.ledger import LedgerError, Warn, bill_sources, open_ledger
from acp_proxy.ledger.bill_sources import BillSource as State
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.ledger.statements import Run
from acp_proxy.reconcile import noted, reconcile
from acp_proxy.reconcile.api.bill import fetched
from acp_proxy.reconcile.api.client import Client, LaterError
from acp_proxy.reconcile.api.keys import key_of
from acp_proxy.reconcile.api.listings import PROVIDED, ApiOf, Listing, Provided
from acp_proxy.system.errors import UsageError

_AT = 4 * HOUR  # of the day, in UTC: by then a provider's figures of the day before have come in
_FIRST_PAUSE, _LONGEST_PAUSE = 300 * SECOND, HOUR  # until it is tried again
_LONGEST_WAIT = DAY  # whatever a provider says of it
_LOOKS = (60.0, 600.0)  # seconds until the next look at what is due, at least and at most
_ROUND = 6 * 3600.0  # seconds that a round may take: a year of pages of a slow provider
_PATIENCE = 10.0  # seconds that one statement waits for writers
_LONGEST_TROUBLE = 300  # characters

Known = Callable[[BudgetLedger], Catalog]
"""The prices that hold at a ledger."""


class _EndedError(Exception):
    """This process ends, or another one has taken over."""


class _Asked(Struct, frozen=True):
    """A provider, and where the configuration speaks of it."""

    provider: ApiOf
    provided: Provided
    key: str  # where it stands
    base: str
    days: int

    def client(self, environ: Mapping[str, str], pause: Callable[[float], object]) -> Client:
        """Raises UsageError."""
        table = f"bills.{self.provider}"
        key = key_of(self.key, self.provided, environ, f"{table}.key")
        return Client(self.base, self.provided, key, pause, named=f"{table}.url")


class Fetching:
    """`clock` is Unix ns. `round` blocks; `run` has it done in a thread of its own, with a ledger only meanwhile."""

    def __init__(
        self,
        asked: tuple[_Asked, ...],
        organisation: str,
        environ: Mapping[str, str],
        open: Callable[[], BudgetLedger],
        known: Known,
        warn: Warn,
        clock: Callable[[], int],
    ) -> None:
        self._asked = asked
        self._organisation = organisation
        self._environ = environ
        self._open = open
        self._known = known
        self._warn = warn
        self._clock = clock
        self._holder = os.urandom(8).hex()
        self._ended = threading.Event()
        self._is_away = False

    @classmethod
    def of(
        cls,
        config: Config,
        environ: Mapping[str, str],
        warn: Warn,
        known: Known | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> Fetching | None:
        """None where no provider is named. Raises ConfigError with one line for a key or an address that is none."""
        if not config.bills:
            return None
        asked = tuple(_asked(provider, of) for provider, of in config.bills.items())  # type: ignore[arg-type]
        for each in asked:
            try:
                each.client(environ, time.sleep)
            except UsageError as error:
                raise ConfigError(str(error)) from None
        if known is None:
            catalog = catalog_of(config)
            catalog.read()
            known = lambda _: catalog  # noqa: E731
        ledger = partial(open_ledger, config.ledger.url, patience=_PATIENCE, warn=warn, journals=(), clock=clock)
        return cls(asked, config.identity.organisation, environ, ledger, known, warn, clock)

    async def run(self) -> None:
        """Until it is cancelled. Nobody waits for the thread, which may be reading a page then."""
        thread = InThread(lambda: self, deadline=_ROUND, name="acp-proxy bills", rest=0)
        try:
            while True:
                try:
                    pause = await thread.ask(Fetching.round)
                except Exception as error:  # the one boundary: a ledger that cannot be understood is looked at again
                    self._warn("bills.broken", error=type(error).__name__)
                    pause = _LOOKS[1]
                await asyncio.sleep(pause)
        finally:
            self._ended.set()
            thread.close(within=1.0)

    def close(self) -> None:
        """A ledger is open in a round only."""

    def round(self) -> float:
        """Ask the providers that are due; after how many seconds to look again."""
        try:
            with closing(self._open()) as ledger:
                for each in self._asked:
                    self._ask(ledger, each)
                due = [each.due_at for each in self._states(ledger).values()]
        except LedgerError as error:
            if not self._is_away:
                self._warn("bills.waits", error=str(error))
            self._is_away = True
            return _LOOKS[0]
        self._is_away = False
        soonest, latest = _LOOKS
        return min(max((min(due) - self._clock()) / SECOND, soonest), latest)

    def _ask(self, ledger: BudgetLedger, asked: _Asked) -> None:
        """Raises LedgerError."""
        now, provider = self._clock(), asked.provider
        ours = (self._organisation, provider, self._holder)
        write = ledger.tables.write
        if not write(lambda run: bill_sources.claim(run, *ours, now)):
            return
        before = self._states(ledger)[provider]

        def still_ours() -> None:
            if self._ended.is_set() or not write(lambda run: bill_sources.hold(run, *ours, self._clock())):
                raise _EndedError

        try:
            then, after = self._compared(ledger, asked, still_ours), State(provider, _next(now), now, now)
        except _EndedError:
            write(lambda run: bill_sources.release(run, *ours))
            return
        except (BillError, UsageError) as error:
            then, after = _nothing, _failed(before, now, str(error), error.wait if isinstance(error, LaterError) else 0)
        except LedgerError:
            raise
        except Exception as error:  # nor must a bill that nobody thought of end the others
            then, after = _nothing, _failed(before, now, f"{type(error).__name__}: please report it", 0)
        if write(lambda run: bill_sources.settle(run, self._organisation, self._holder, after, then)):
            self._tell(before, after)

    def _compared(self, ledger: BudgetLedger, asked: _Asked, still_ours: Callable[[], None]) -> Callable[[Run], None]:
        """What is to be kept. Raises BillError, UsageError and LedgerError."""
        client = asked.client(self._environ, self._ended.wait)

        def ask(name: str, listing: Listing, page: str | None) -> bytes:
            still_ours()
            return client.ask(name, listing, page)

        now = self._clock()
        today = now // DAY
        bill = fetched(asked.provider, range(today - asked.days, today), "day", ask)
        still_ours()
        found = reconcile(bill, ledger, self._known(ledger), self._organisation, "day", {})
        return noted(found, self._organisation, now)

    def _states(self, ledger: BudgetLedger) -> dict[str, State]:
        found = bill_sources.sources(ledger.tables.read, self._organisation)
        asked = {each.provider for each in self._asked}
        return {each.provider: each for each in found if each.provider in asked}

    def _tell(self, before: State, after: State) -> None:
        """Once of each trouble, whichever process has it, and once that it is over."""
        if after.trouble and _gist(after.trouble) != _gist(before.trouble):
            self._warn("bills.not_fetched", provider=after.provider, error=after.trouble)
        elif before.trouble and not after.trouble:
            self._warn("bills.fetched_again", provider=after.provider)


def _asked(provider: ApiOf, of: BillSource) -> _Asked:
    """Raises ConfigError."""
    provided = PROVIDED[provider]
    if of.key is None:
        raise ConfigError(f"bills.{provider}.key: expected ${{NAME}} or ${{file:PATH}}")
    base = of.url or provided.base
    if base is None:
        raise ConfigError(f"bills.{provider}.url: expected the address of your {provider}")
    return _Asked(provider, provided, of.key, base, of.days)


def _next(now: int) -> int:
    """When the bill of another day is there."""
    return ((now - _AT) // DAY + 1) * DAY + _AT


def _failed(before: State, now: int, trouble: str, wait: float) -> State:
    doubled = min(_FIRST_PAUSE * 2 ** min(before.failures, 10), _LONGEST_PAUSE)
    due = now + max(doubled, min(int(wait * SECOND), _LONGEST_WAIT))
    return State(before.provider, due, now, before.fetched_at, before.failures + 1, trouble[:_LONGEST_TROUBLE])


def _gist(trouble: str) -> str:
    """What is the same when it happens again, with other days and sizes."""
    return re.sub(r"\d[\d,-]*", "#", trouble)


def _nothing(_: Run) -> None:
    """Is kept of a bill that was not read."""
