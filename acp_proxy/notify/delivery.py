"""One channel's delivery: claims due notices, sends them, and records the result in the ledger.

After a failure the channel pauses with exponential backoff and jitter, so that many senders do not retry at once. The
ledger counts the attempts of each notice, which decides whether it is retried.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial

from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import Warn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.ledger.notices import Claimed, Result
from acp_proxy.notify.destinations import Destination
from acp_proxy.notify.sending import Outcome, Sender

LEASE = 60 * SECOND  # longer than an attempt and the ledger's patience
MOST_TRIES = 8  # within some 64 minutes
_FIRST_PAUSE, _LONGEST_PAUSE = 30, 3600  # seconds
_MOST_AT_ONCE = 5  # with a round every 5 s one a second, which every service takes
_MOST_DIRECT = 20  # of which there are two in each outage


class Delivery:
    """`clock` is Unix time in nanoseconds, `chance` is from 0 to 1."""

    def __init__(
        self,
        to: Destination,
        books: InThread[BudgetLedger],
        sender: Sender,
        warn: Warn,
        clock: Callable[[], int],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.to = to
        self._books = books
        self._sender = sender
        self._warn = warn
        self._clock = clock
        self._chance = chance
        self._direct: deque[Claimed] = deque(maxlen=_MOST_DIRECT)
        self._owed: deque[Callable[[BudgetLedger], None]] = deque()  # what the ledger has to be told yet
        self._failures = 0  # in a row
        self._rests_until = 0

    def tell(self, notice: Notice) -> None:
        """Send it in the next round past the ledger, which is out of reach or was."""
        if notice.kind in self.to.wanted.kinds:
            self._direct.append(Claimed(notice, 0, ""))

    async def round(self) -> None:
        """Send what is due, some at most. Raises LedgerError."""
        if self._clock() < self._rests_until:
            return
        for _ in range(_MOST_AT_ONCE):
            if not (await self._send_direct() or await self._send_noted()):
                return

    async def _send_direct(self) -> bool:
        """Whether one was sent."""
        if not self._direct:
            return False
        first = self._direct.popleft()
        claimed = Claimed(first.notice, first.tries + 1, "")
        result, _ = self._settled(claimed, await self._sender.send(self.to, claimed.notice))
        if result == "retried":
            self._direct.appendleft(claimed)
        self._owed.append(lambda ledger: ledger.outbox.count(self.to.wanted.organisation, self.to.name, result))
        return result == "sent"

    async def _send_noted(self) -> bool:
        """Whether one was sent."""
        if self._clock() < self._rests_until:
            return False
        await self._pay()
        now = self._clock()
        claimed = await self._books.ask(lambda ledger: ledger.outbox.claim(self.to.wanted, now, now + LEASE))
        if claimed is None:
            return False
        outcome = await self._sender.send(self.to, claimed.notice)
        result, pause = self._settled(claimed, outcome)
        at = self._clock() + int(pause * SECOND)
        self._owed.append(partial(_settle, to=self.to, claimed=claimed, result=result, at=at, error=outcome.error))
        await self._pay()
        return result == "sent"

    async def _pay(self) -> None:
        """Records later that a notice was sent, if the ledger was unavailable then, so that it is not sent again."""
        while self._owed:
            await self._books.ask(self._owed[0])
            self._owed.popleft()

    def _settled(self, claimed: Claimed, outcome: Outcome) -> tuple[Result, float]:
        """The result of an attempt, and how many seconds the notice waits."""
        if outcome.result == "sent":
            self._failures = 0
            return "sent", 0
        self._failures += 1
        self._rests_until = self._clock() + int(self._pause(self._failures, outcome) * SECOND)
        result = "failed" if claimed.tries >= MOST_TRIES else outcome.result
        fields = {"channel": self.to.name, "host": self.to.host, "error": outcome.error, "tries": claimed.tries}
        self._warn("notify.failed" if result == "failed" else "notify.retried", **fields)
        return result, self._pause(claimed.tries, outcome) if result == "retried" else 0

    def _pause(self, tries: int, outcome: Outcome) -> float:
        doubled = min(_FIRST_PAUSE * 2.0 ** min(tries - 1, 20), _LONGEST_PAUSE)
        return max(doubled * (0.8 + 0.4 * self._chance()), outcome.wait)


def _settle(
    ledger: BudgetLedger, *, to: Destination, claimed: Claimed, result: Result, at: int, error: str | None
) -> None:
    ledger.outbox.settle(to.wanted, to.name, claimed, result, at, error)
