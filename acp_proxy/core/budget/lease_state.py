"""All that a hub has lent to a machine: the lease that is spent from, and those that are to go back. Only values.

An id stands here before the hub is asked for its lease, so that none is forgotten: neither where the answer is lost nor
where the process that asked is killed. `ledger/hub/lease_store.py` keeps it as JSON on the disk, by the names of these
fields: a new one needs a default, and none is renamed, or an update would forget what was lent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget.lease import Lease


class LeaseState(Struct, frozen=True):
    """`ending` are leases of which nothing is drawn any more, but whose rows the hub does not have yet. `owed` are ids
    to give back. `asked` are ids that the hub was asked for and has not answered, each with the process that asks.
    """

    current: Lease | None = None
    ending: tuple[Lease, ...] = ()
    owed: tuple[str, ...] = ()
    asked: dict[str, str] = {}

    @property
    def leases(self) -> Iterator[Lease]:
        if self.current is not None:
            yield self.current
        yield from self.ending

    def changed(self, change: Callable[[Lease], Lease]) -> LeaseState:
        """With the same change made to all leases."""
        current = None if self.current is None else change(self.current)
        return replace(self, current=current, ending=tuple(map(change, self.ending)))

    def put_back(self) -> LeaseState:
        """Nothing is drawn of the current one from now on; it is owed once the hub has all its rows."""
        over = [each for each in self.leases if not each.drawn]
        ending = tuple(each for each in self.leases if each.drawn)
        return replace(self, current=None, ending=ending, owed=(*self.owed, *(each.id for each in over)))

    def ask(self, lease: str, by: str, is_gone: Callable[[str], bool]) -> LeaseState:
        """The process `by` asks for a lease of this id; what processes asked for that are gone is owed."""
        back = self.put_back()
        lost = [each for each, process in back.asked.items() if is_gone(process)]
        asked = {each: process for each, process in back.asked.items() if each not in lost}
        return replace(back, owed=(*back.owed, *lost), asked={**asked, lease: by})

    def take(self, lease: Lease, returned: Collection[str]) -> LeaseState:
        """The hub has lent it, and has back those `returned`. One that was asked for no more is owed at once."""
        back = replace(self, owed=tuple(each for each in self.owed if each not in returned))
        if lease.id not in self.asked:
            return replace(back, owed=(*back.owed, lease.id))
        back = back.put_back()
        asked = {each: process for each, process in back.asked.items() if each != lease.id}
        return replace(back, current=lease, asked=asked)

    def lose(self, lease: str) -> LeaseState:
        """Nobody knows whether the hub has lent it."""
        if lease not in self.asked:
            return self
        asked = {each: process for each, process in self.asked.items() if each != lease}
        return replace(self, owed=(*self.owed, lease), asked=asked)
