"""What is paid for work under a plan: a seat's price of a month, in proportion to the list prices of the work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from acp_proxy.core.money import Money
from acp_proxy.core.scope import PLAN
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.text.times import SECOND, Zone

SeatOf = Callable[[str], Money | None]  # an agent -> what a seat of it costs a month; None where that is not known


class Seats:
    """Of one organisation's users, in months of a time zone. A month is read when it is first asked for."""

    def __init__(self, ledger: LedgerReader, organisation: str, zone: Zone, seat_of: SeatOf) -> None:
        self._ledger = ledger
        self._organisation = organisation
        self._zone = zone
        self._seat_of = seat_of
        self._listed: dict[datetime, dict[tuple[object, object], dict[str, int]]] = {}

    def effective_cost(self, day: datetime, user: str, agent: str, listed: Money) -> Money | None:
        """Of what would cost `listed` on a day: its share of the user's seat. None where the seat's price is not known,
        or is in another currency. Raises LedgerError.
        """
        seat = self._seat_of(agent)
        if seat is None or seat.currency != listed.currency:
            return None
        whole = self._of_month(day.replace(day=1)).get((user, agent), {}).get(listed.currency, 0)
        return Money(seat.nano * listed.nano // whole, seat.currency) if whole > 0 else None

    def _of_month(self, month: datetime) -> dict[tuple[object, object], dict[str, int]]:
        """The list prices of all that was used under a plan, by user and agent, and by currency."""
        if month not in self._listed:
            since, until = (self._begin(each) for each in (month, (month + timedelta(days=32)).replace(day=1)))
            where = (("organisation", self._organisation), ("billing", PLAN))
            self._listed[month] = {
                (sums.key[0], sums.key[1]): {cost.currency: cost.nano for cost in sums.costs}
                for sums in self._ledger.summed(Query(since, until, where), ("user", "agent"))
            }
        return self._listed[month]

    def _begin(self, local: datetime) -> int:
        return int(local.replace(tzinfo=self._zone.info).timestamp()) * SECOND
