"""Leases: a part of each budget that a hub lends to a machine, and of which that alone spends while there is no hub.

Only arithmetic. Times are ns of a clock that cannot be set, and that goes on while the machine sleeps. The hub counts a
lease as held for far longer than the machine may spend from it: what was spent arrives in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.windows import HOUR

PREFIX = "lease-"  # of the ids of leases, which no turn has
_ALL = 100  # percent


class Terms(Struct, frozen=True, forbid_unknown_fields=True):
    """How much a hub lends of what is left, in percent, but of no budget more than so many turns take; for how long a
    machine may spend from it, and how much longer it is held until the machine's rows are there.
    """

    share: int = 10
    turns: int = 5
    hours: int = 12
    kept_days: int = 7

    def portion(self, left: int, turn: int) -> int:
        """Of what is left of an account, where a turn takes so much: of a small rest up to a half, for one turn."""
        share = max(left * self.share // _ALL, min(turn, left // 2))
        return max(0, min(share, self.turns * turn))

    @property
    def usable(self) -> int:
        """ns"""
        return self.hours * HOUR

    @property
    def kept(self) -> int:
        """ns from its beginning on"""
        return self.usable + self.kept_days * 24 * HOUR


class Lease(Struct, frozen=True):
    """As its machine keeps it. `left` and `drawn` are by the keys of accounts, `drawn` by turns whose rows the hub does
    not have yet; `boot` names the clock's beginning, `whose` the user that it was lent to, `by` the processes of turns.
    """

    id: str
    boot: str
    since: int
    until: int
    left: dict[str, int]
    drawn: dict[str, dict[str, int]] = {}
    used: bool = False
    whose: str = ""
    by: dict[str, str] = {}

    def holds(self, boot: str, now: int) -> bool:
        """After a restart of the machine nobody knows how much of its time is over."""
        return self.boot == boot and self.since <= now < self.until

    def is_due(self, accounts: Iterable[str], boot: str, now: int, gone: Collection[str] = ()) -> bool:
        """Whether another one is to be had: half of its time is over, it was used, or of an account it has nothing.

        `gone` are turns whose process is: nobody waits for these.
        """
        if not self.holds(boot, now):
            return True
        wanted = self.used or now >= (self.since + self.until) // 2 or any(each not in self.left for each in accounts)
        return wanted and self.drawn.keys() <= set(gone)

    def draw(
        self, turn: str, sizes: Mapping[str, HoldSize], boot: str, now: int, by: str = ""
    ) -> tuple[Lease, dict[str, int]] | None:
        """Amounts for a turn of the process `by`; None if one of its accounts has too little, or the time is over."""
        if not self.holds(boot, now):
            return None
        amounts = {}
        for account, size in sizes.items():
            amount = size.within(self.left.get(account, 0))
            if amount is None or amount <= 0:
                return None
            amounts[account] = amount
        left = {account: amount - amounts.get(account, 0) for account, amount in self.left.items()}
        drawn, processes = {**self.drawn, turn: amounts}, {**self.by, turn: by}
        return replace(self, left=left, drawn=drawn, by=processes, used=True), amounts

    def charge(self, turn: str, charged: Mapping[str, int]) -> Lease:
        """The turn has ended: what it did not use may be drawn again, and what it used beyond is not there any more."""
        drawn = self.drawn.get(turn)
        if drawn is None:
            return self
        left = dict(self.left)
        for account, amount in drawn.items():
            left[account] = max(0, left.get(account, 0) + amount - charged.get(account, 0))
        return replace(self, left=left, drawn={**self.drawn, turn: {}})

    def settled(self, turn: str) -> Lease:
        """The hub has its row, and charged the lease for it."""
        drawn = {each: amounts for each, amounts in self.drawn.items() if each != turn}
        return replace(self, drawn=drawn, by={each: process for each, process in self.by.items() if each in drawn})
