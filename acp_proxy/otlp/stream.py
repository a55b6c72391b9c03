"""One signal: what is made out of the ledger is posted, and struck off there when the receiver has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acp_proxy.ledger import LedgerError, Warn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.otlp.outgoing import Batch
from acp_proxy.otlp.sending import Outcome, Poster

SELDOM = 60.0  # seconds between two tries of what somebody has to mend first

_MOST = 1000  # turns, or records, of one request
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds

Make = Callable[[BudgetLedger, int], Batch | None]  # in the ledger's thread; of so many turns or records at most


class Stream:
    """`interval` is seconds between two rounds. `otherwise` makes what is sent when the ledger does not answer."""

    def __init__(
        self,
        poster: Poster,
        make: Make,
        settle: Callable[[BudgetLedger, Batch], None],
        books: InThread[BudgetLedger],
        warn: Warn,
        *,
        interval: float,
        chance: Callable[[], float],
        otherwise: Callable[[], Batch | None] = lambda: None,
    ) -> None:
        self.poster = poster
        self._make = make
        self._settle = settle
        self._books = books
        self._warn = warn
        self._interval = interval
        self._chance = chance
        self._otherwise = otherwise
        self._most = _MOST
        self._failures = 0  # in a row
        self._unsettled: Batch | None = None  # that was sent, and the ledger has not heard of it
        self._told: str | None = None  # what was logged last, until it goes well again

    async def round(self) -> float:
        """Send what there is; after how many seconds the next round is due."""
        pause: float | None = None
        while pause is None:
            away = None
            try:
                await self._settled()
                batch = await self._books.ask(self._next)
            except LedgerError as error:
                away = f"ledger: {error}"
                batch = self._otherwise()
            if batch is None:
                self._tell(away or (self._told if self._failures else None))
                return self._interval
            outcome = await self.poster.post(batch.content)
            self._tell(away or outcome.error)
            pause = self._judged(batch, outcome)
        with suppress(LedgerError):  # it hears of it in the next round
            await self._settled()
        return pause

    def _next(self, ledger: BudgetLedger) -> Batch | None:
        return self._make(ledger, self._most)

    async def _settled(self) -> None:
        """Raises LedgerError."""
        if (batch := self._unsettled) is not None:
            await self._books.ask(lambda ledger: self._settle(ledger, batch))
            self._unsettled = None

    def _judged(self, batch: Batch, outcome: Outcome) -> float | None:
        """Seconds until the next round; None where there may be more to send at once."""
        match outcome.result:
            case "sent":
                self._failures = 0
                self._most = min(_MOST, self._most * 2)
            case "smaller" if len(batch.done) > 1:
                self._most = max(1, len(batch.done) // 2)
                return None
            case "smaller" | "refused" if batch.done or batch.states:  # never to be sent again
                pass
            case _:
                self._failures += 1
                return self._pause(outcome)
        self._unsettled = batch
        return None if batch.done else self._interval

    def _pause(self, outcome: Outcome) -> float:
        if outcome.result in ("elsewhere", "refused", "smaller"):
            return SELDOM
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
