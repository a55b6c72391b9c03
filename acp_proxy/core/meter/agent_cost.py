"""An agent's own cost: one cumulative counter per session and agent process, booked as increases; or each turn's own.

It restarts, goes on from another process, or begins with a parent's spend. What its rows add up to equals what the
agent reports, to the nano-unit.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.agents.profile import Cost
from acp_proxy.core.entry import COST_TOLD
from acp_proxy.core.money import Money, plus

_FELL = f"{COST_TOLD}, which fell and is taken to have begun again at 0"
_MAY_GO_ON = f"{COST_TOLD}, which may have gone on from what was spent before"


class Increase(Struct, frozen=True):
    """What the agent's cost grew by since it was last taken.

    `before`: of a session that was loaded or forked, its earlier cost, which is left out of `amounts`; if the counter
    began at 0, it belongs to them. `unsure` says why `amounts` may be wrong; it is empty where they are certain.
    """

    amounts: tuple[Money, ...] = ()  # one per currency, none of them 0
    reported: bool = False  # the agent said something about cost
    baseless: bool = False  # where the counter stood is not known: the turn's price is to be had from its tokens
    carried_over: bool = False  # the first since a load in a new process: may hold spend that nobody reported
    doubted: bool = False  # the counter may have begun at 0 meanwhile, and have passed where it stood
    presumed: tuple[Money, ...] = ()  # booked for that spend already, because its proxy died
    before: Money | None = None
    unsure: str = ""

    def beyond_presumed(self, amount: Money) -> Money:
        """What is left to book of spend that nobody reported: the larger of both counts, not both."""
        held = sum(money.nano for money in self.presumed if money.currency == amount.currency)
        return Money(max(0, amount.nano - held), amount.currency)


class AgentCost:
    """The counter of one session."""

    __slots__ = (
        "_adopted",
        "_ahead",
        "_anew",
        "_baseless",
        "_before",
        "_carried",
        "_doubted",
        "_falls_unexplained",
        "_first",
        "_goes_on",
        "_grown",
        "_known",
        "_may_go_on",
        "_of_turns",
        "_others",
        "_perhaps",
        "_reported",
        "_restarts",
        "_unsure",
        "last",
        "pending",
        "resumed",
    )

    def __init__(self, counts: Cost) -> None:
        self.last: Money | None = None  # as last reported or restored
        self._goes_on = counts.counter == "carried"
        self._may_go_on = counts.counter in ("carried", "unknown")
        self._falls_unexplained = counts.counter == "unknown"
        self._of_turns = counts.counter == "turn"  # its last word is what the turn costs
        self._restarts = counts.counter == "restarts"
        self._anew = "clear" in counts.moves  # where its context is cleared
        self._others: dict[str, Money] = {}  # the same in currencies that it was told in before
        self._known = True  # where it stood: at `last`, or at 0
        self._ahead: Money | None = None  # booked from the catalog, and still to come in the agent's cost
        self.pending: tuple[Money, ...] = ()  # reported, and not taken yet
        self._adopted: Money | None = None  # a first value that nothing could be compared with
        # What was presumed of spend that nobody reported, which the first increase since a load may hold; else None
        self._carried: tuple[Money, ...] | None = None
        self._grown = 0  # nano-units by which `last` grew since it was taken: so much may be corrected
        self._perhaps: Money | None = None  # where it stands, unless it has begun at 0: the next value may tell
        self._before: Money | None = None  # the same, since it was told one that may go on from there
        self._unsure = ""
        self.resumed = False  # what was taken last may have gone on from an earlier cost that is known
        # `_adopted` once it was taken, and what was booked in its place, by tokens and prices: for `settle`
        self._first: tuple[Money, tuple[Money, ...]] | None = None
        self._reported = self._baseless = self._doubted = False

    @property
    def positive(self) -> bool:
        """Whether the agent knows prices: a cost of 0 says nothing."""
        return self.last is not None and self.last.nano > 0

    @property
    def told(self) -> Money | None:
        """What the agent told last, here or in another process; None if that was nothing, or 0."""
        return self.last if self.positive else self._perhaps

    @property
    def from_zero(self) -> bool:
        """Whether all that it will tell was spent here: it began at 0, and says nothing yet."""
        return self._may_go_on and self._known and not self.positive

    def is_news(self, value: Money) -> bool:
        """Whether it is more than what is known already."""
        return self.last is None or self.last.currency != value.currency or value.nano > self.last.nano

    def begin(self, *, at_zero: bool) -> None:
        """A session is opened: at 0, or at what it cost in another process, which somebody must tell."""
        self.last, self._known = None, at_zero
        self._perhaps = self._before = None
        self._grown, self._unsure = 0, ""
        self._others.clear()
        self._carried = None
        self._first = None
        self._ahead = None  # of a counter that says nothing any more

    def begin_perhaps_at(self, value: Money | None) -> None:
        """A session is opened that may go on from this cost, or begin at 0. None: nobody knows the cost."""
        self.begin(at_zero=value is not None and not value.nano)
        self._perhaps = value if value is not None and value.nano else None

    def close(self) -> None:
        """The session is closed: its cost may begin at 0 when it is loaded."""
        if self._restarts:
            self.begin(at_zero=True)
        elif self._falls_unexplained and self.positive:
            self._perhaps, self.last, self._known = self.last, None, False

    @property
    def stood(self) -> Money | None:
        """Where it stands by all that is known, for a fork of this session. 0 of no currency is 0."""
        return self.last or self._perhaps or (Money(0, "") if self._known else None)

    def stand_at(self, value: Money) -> None:
        """Without anything being spent: the value moved, or a fork begins with its parent's."""
        self.last, self._known, self._perhaps = value, True, None

    def restore(self, value: Money, presumed: tuple[Money, ...] = ()) -> None:
        """What the ledger knows; late is better than never while nothing was taken. 0 is that in any currency.

        Of no currency, it is where a cost begins that was not told yet, as in a new session.
        """
        if self._perhaps is not None:
            return
        if not self._known and self._falls_unexplained and value.nano and self._adopted is None:
            self._perhaps, self._carried = value, presumed
        elif not self._known:
            self.last = value if value.currency else None
            self._known, self._carried = True, presumed
        elif (first := self._adopted) is not None and _is_within(value, first):
            self._add(Money(first.nano - value.nano, first.currency))
            self._adopted, self._baseless, self._carried = None, False, presumed

    def restore_parent(self, value: Money) -> None:
        """What the ledger knows of a fork's parent, if that is not known here and no cost of the fork is taken yet."""
        told = self._adopted and self.last
        if self._perhaps is not None or (self._known and told is None):
            return
        if told is not None:
            self.pending, self._adopted, self._baseless = (), None, False
        self.begin_perhaps_at(value)
        if told is not None:
            self.report(told)

    def catch_up(self, value: Money) -> None:
        """Where it stands by what others have booked; no less than it told here."""
        if self.last is not None and self.last.currency == value.currency:
            self.last = Money(max(self.last.nano, value.nano), value.currency)

    def book_for_first(self, costs: tuple[Money, ...] | None) -> None:
        """What was priced in place of a first value. None: the user's prices stand, whatever it holds."""
        if costs is None:
            self._first = None
        elif costs and self._first is not None and self.last is not None:
            self._first = self.last, costs  # a turn has all of its price, also what was told after the first value

    def settle(self, value: Money, presumed: tuple[Money, ...] = ()) -> Money | None:
        """What the first value held beyond what was booked for it, once it is known where the counter stood."""
        if self._first is None:
            return None
        (first, costs), self._first = self._first, None
        if not _is_within(value, first) or any(cost.currency != first.currency for cost in costs):
            return None
        booked = sum(cost.nano for cost in costs)
        missing = Money(first.nano - value.nano - booked, first.currency)
        if missing.nano * 100 <= booked:
            return None  # 1 % is two price lists, not spend
        return Increase(presumed=presumed).beyond_presumed(missing)

    def doubt(self) -> None:
        """Its context may have been cleared."""
        self._doubted = self._anew

    def report(self, value: Money) -> None:
        if not value.nano and self.positive and not self._restarts:
            return  # a gap in what the agent knows: where a cost stood is not 0, and what is spent now is still to come
        if self._perhaps is not None:
            self._begin_again(value)
        last, known, told = self.last, self._known, self._reported
        self._reported = True
        if not value.nano and not known:
            self.last = value
            return  # nor is it 0 from where a cost goes on
        if last is not None and last.currency != value.currency:
            self._others[last.currency] = last
            self._grown, last = 0, self._others.get(value.currency)
        self.last, self._known = value, True
        if not known:
            self._adopted, self._baseless = value, True
        elif self._of_turns:
            self.pending = (value,) if value.nano else self.pending
        elif last is None:
            self._reported = self._add(value) or told
        elif value.nano >= last.nano:
            self._reported = self._add(Money(value.nano - last.nano, value.currency)) or told
        elif last.nano - value.nano <= self._grown and not self._doubted:
            self._correct(Money(last.nano - value.nano, value.currency))
        elif self._adopted is not None:
            self._adopted = value
        elif self._before is not None:  # less than the earlier cost: it began at 0
            self._before, self._unsure = None, ""
            self._correct(Money(self._grown, value.currency))
            self._reported = self._add(value) or told
        elif self._goes_on:
            self._baseless = True  # it should not have fallen: what it stands at is all there is to go by
        else:
            self._reported = self._add(value) or told  # restarted at 0
            self._carried = None
            if self._falls_unexplained:
                self._unsure = _FELL

    def _begin_again(self, value: Money) -> None:
        """The first value since a load or a fork: one below the earlier cost began at 0, a higher one may go on."""
        before, self._perhaps = self._perhaps, None
        if not value.nano:
            self._perhaps = before  # it does not tell one yet
        elif before is None or before.currency != value.currency:
            return
        elif value.nano < before.nano:
            self._known, self._carried = True, None
        else:
            self.last, self._known, self._before = before, True, before
            self._unsure = _MAY_GO_ON if self._falls_unexplained else ""

    def book_ahead(self, cost: Money) -> None:
        """A turn was priced from its tokens although the agent will still report its cost: not twice, then."""
        if (ahead := self._ahead) is None or ahead.currency != cost.currency:
            self._ahead = cost
        else:
            self._ahead = ahead.plus(cost)

    @property
    def so_far(self) -> Increase:
        """What there is to take."""
        carried = self._carried if self.pending else None
        return Increase(
            self.pending,
            self._reported,
            self._baseless,
            carried is not None,
            self._doubted,
            carried or (),
            self._before,
            self._unsure,
        )

    def take(self) -> Increase:
        increase = self.so_far
        self.resumed = increase.before is not None
        if self._reported:
            self._before, self._unsure = None, ""
            self._carried, self._doubted = None, False
        self._grown = 0
        if self._adopted is not None:
            self._first = self._adopted, ()
        self.pending, self._adopted = (), None
        self._reported = self._baseless = False
        return increase

    def _add(self, amount: Money) -> bool:
        """False when all of it was booked ahead: a turn that is over cost that, and nothing is said of this one."""
        left = amount
        self._grown += amount.nano
        if (ahead := self._ahead) is not None and ahead.currency == amount.currency:
            booked = min(ahead.nano, amount.nano)
            left = Money(amount.nano - booked, amount.currency)
            self._ahead = Money(ahead.nano - booked, ahead.currency) if ahead.nano > booked else None
        if left.nano:
            self.pending = plus(self.pending, (left,))
        return left.nano > 0 or not amount.nano

    def _correct(self, amount: Money) -> None:
        """The agent has taken back so much of what its cost grew by since it was taken."""
        self._grown -= amount.nano
        pending = {money.currency: money.nano for money in self.pending}
        back = min(amount.nano, pending.get(amount.currency, 0))
        if rest := amount.nano - back:  # this much of it was booked ahead, and is still to come
            self.book_ahead(Money(rest, amount.currency))
        pending[amount.currency] = pending.get(amount.currency, 0) - back
        self.pending = tuple([Money(nano, currency) for currency, nano in pending.items() if nano])


def _is_within(value: Money, other: Money) -> bool:
    return other.nano >= value.nano and (not value.nano or value.currency == other.currency)
