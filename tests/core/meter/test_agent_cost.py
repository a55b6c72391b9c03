"""An agent's cost as a counter: what it grew by, whichever currency it is told in and wherever it stood."""

from __future__ import annotations

from acp_proxy.core.agents.profile import Cost
from acp_proxy.core.meter.agent_cost import AgentCost, Increase
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.meter.turn_cost import Bill, Prices, turn_bill
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import PRICES

UNKNOWN = Cost("unknown", fork_inherits=None)


def usd(nano: int) -> Money:
    return Money(nano, "USD")


def eur(nano: int) -> Money:
    return Money(nano, "EUR")


def told(*values: Money) -> AgentCost:
    cost = AgentCost(UNKNOWN)
    for value in values:
        cost.report(value)
    return cost


def test_nothing_was_told_by_an_increase_of_nothing() -> None:
    assert AgentCost(UNKNOWN).take() == Increase()
    nothing = Increase()
    assert [nothing.reported, nothing.baseless, nothing.carried_over, nothing.doubted] == [False] * 4


def test_each_currency_has_a_counter_of_its_own_until_the_session_begins_anew() -> None:
    cost = told(eur(5), usd(1), eur(6))
    assert cost.take().amounts == (eur(6), usd(1))
    cost.begin(at_zero=True)
    cost.report(usd(1))
    cost.report(eur(6))
    assert cost.take().amounts == (usd(1), eur(6))


def test_only_what_was_not_taken_yet_may_be_corrected() -> None:
    cost = told(usd(5), usd(3))
    assert cost.take().amounts == (usd(3),)
    cost.report(usd(2))  # began again at 0
    assert cost.take().amounts == (usd(2),)


def test_what_is_told_in_another_currency_corrects_nothing_of_before() -> None:
    cost = told(eur(5), usd(1))
    cost.take()
    cost.report(eur(4))
    assert cost.take().amounts == (eur(4),)


def test_a_correction_of_what_was_booked_ahead_is_still_to_come() -> None:
    cost = AgentCost(UNKNOWN)
    cost.book_ahead(usd(5))
    for value, amounts in ((5, ()), (3, ()), (5, ()), (6, (usd(1),))):
        cost.report(usd(value))
        assert cost.so_far.amounts == amounts


def test_a_fork_that_told_a_cost_before_the_ledger_knew_its_parents_goes_on_from_there() -> None:
    cost = AgentCost(UNKNOWN)
    cost.begin_perhaps_at(None)
    cost.report(usd(5))
    assert cost.so_far.baseless
    cost.restore_parent(usd(3))
    assert (cost.so_far.amounts, cost.so_far.before, cost.so_far.baseless) == ((usd(2),), usd(3), False)
    cost.take()
    cost.report(usd(6))
    assert cost.take() == Increase((usd(1),), reported=True)


def test_what_is_known_of_a_fork_is_not_changed_by_the_ledgers_word_on_its_parent() -> None:
    here = AgentCost(UNKNOWN)
    here.begin_perhaps_at(usd(3))
    here.restore_parent(usd(1))
    assert here.stood == usd(3)
    new = AgentCost(UNKNOWN)
    new.restore_parent(usd(1))
    assert new.stood == Money(0, "")


# -- a counter of which it is not certain where it began

USED = Usage(1100, 5010, 301, 201)
PRICE = 10_927_000  # nano-USD


def billed(amount: int, before: int, unsure: str = "unsure") -> Bill:
    increase = Increase((usd(amount),), reported=True, before=usd(before), unsure=unsure)
    return turn_bill(
        [("claude-opus-5-5", USED)], (), TurnUsage(USED, "agent"), increase, Prices(PRICES, 1, None), told=True
    )


@each_of(
    [
        (2_000_000, 10_000_000, 12_000_000, "estimated"),  # both together are closer to the price
        (8_000_000, 50_000_000, 8_000_000, "estimated"),
        (PRICE, 1_000_000, PRICE, "agent"),  # one fits
        (927_000, 10_000_000, PRICE, "agent"),
    ]
)
def test_the_beginning_that_is_closer_to_the_price_of_the_tokens_is_taken(case: tuple[int, int, int, str]) -> None:
    amount, before, cost, source = case
    bill = billed(amount, before)
    assert ([line.cost for line in bill.lines], bill.source) == ([usd(cost)], source)


def test_where_nothing_is_unsure_the_increase_stands() -> None:
    assert [line.cost for line in billed(2_000_000, 10_000_000, "").lines] == [usd(2_000_000)]
