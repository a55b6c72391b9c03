"""An agent's cost as a counter: what it grew by, whichever currency it is told in and wherever it stood."""

from __future__ import annotations

from acp_proxy.core.agents.profile import Cost
from acp_proxy.core.entry import UsageSource
from acp_proxy.core.meter.agent_cost import AgentCost, Increase
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.meter.turn_cost import Bill, Prices, turn_bill
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import PRICES

UNKNOWN, CARRIED = Cost("unknown", fork_inherits=None), Cost("carried")


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
    assert not AgentCost(UNKNOWN).resumed


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


def test_what_a_session_cost_is_not_corrected_by_the_next_one_of_its_id() -> None:
    cost = told(usd(5))
    cost.begin(at_zero=False)
    cost.report(usd(7))
    cost.report(usd(3))
    assert cost.take().amounts == (usd(5),)


def test_what_is_booked_ahead_in_one_currency_is_not_still_to_come_in_another() -> None:
    cost = AgentCost(UNKNOWN)
    cost.book_ahead(eur(5))
    cost.book_ahead(usd(3))
    cost.report(usd(4))
    assert cost.take().amounts == (usd(1),)


def test_the_cost_of_a_session_that_was_closed_may_go_on_or_begin_at_zero() -> None:
    def closed() -> AgentCost:
        cost = told(usd(5))
        cost.take()
        cost.close()
        assert (cost.stood, cost.from_zero) == (usd(5), False)
        return cost

    higher, lower = closed(), closed()
    higher.report(usd(7))
    increase = higher.take()
    assert (increase.amounts, increase.before, bool(increase.unsure)) == ((usd(2),), usd(5), True)
    lower.report(usd(3))
    assert lower.take() == Increase((usd(3),), reported=True)
    assert (higher.resumed, lower.resumed) == (True, False)


def test_a_session_that_was_closed_before_it_told_a_cost_begins_at_zero() -> None:
    cost = AgentCost(UNKNOWN)
    cost.close()
    cost.report(usd(3))
    assert cost.take() == Increase((usd(3),), reported=True)


def test_a_cost_that_is_known_to_go_on_does_so_when_its_session_was_closed() -> None:
    cost = AgentCost(CARRIED)
    for value, amount in ((5, 5), (7, 2)):
        cost.report(usd(value))
        assert cost.take() == Increase((usd(amount),), reported=True)
        cost.close()


def test_nothing_that_was_known_of_a_session_is_true_of_the_next_one_of_its_id() -> None:
    closed, loaded = told(usd(5)), AgentCost(CARRIED)
    closed.take()
    closed.close()
    loaded.begin(at_zero=False)
    loaded.restore(usd(1), (usd(1),))
    for cost in (closed, loaded):
        cost.begin(at_zero=True)
        cost.report(usd(7))
        assert cost.take() == Increase((usd(7),), reported=True)


def test_a_cost_that_falls_by_more_than_it_grew_here_began_again_at_zero() -> None:
    cost = AgentCost(UNKNOWN)
    cost.stand_at(usd(10))
    cost.report(usd(9))
    assert cost.take().amounts == (usd(9),)


def test_a_cost_that_falls_by_what_it_grew_was_corrected() -> None:
    cost = AgentCost(UNKNOWN)
    cost.stand_at(usd(10))
    for value in (12, 10, 11):
        cost.report(usd(value))
    assert cost.take() == Increase((usd(1),), reported=True)


def test_a_cost_that_began_again_tells_of_nothing_before_its_session_was_loaded() -> None:
    cost = AgentCost(UNKNOWN)
    cost.begin(at_zero=False)
    cost.report(usd(5))
    cost.restore(usd(2), (usd(1),))
    assert (cost.so_far.carried_over, cost.so_far.presumed) == (True, (usd(1),))
    cost.report(usd(1))
    increase = cost.take()
    assert (increase.amounts, increase.carried_over, increase.presumed) == ((usd(4),), False, ())


def test_a_cost_of_nothing_is_told_of_a_session_that_may_have_cost_something() -> None:
    cost = AgentCost(UNKNOWN)
    cost.begin(at_zero=False)
    cost.report(usd(0))
    assert cost.stood == usd(0)
    assert cost.take() == Increase(reported=True)


def test_what_the_ledger_knows_is_where_a_loaded_cost_may_go_on_and_nothing_of_a_new_one() -> None:
    loaded, new = AgentCost(UNKNOWN), told(usd(5))
    loaded.begin(at_zero=False)
    new.take()
    for cost, before in ((loaded, usd(5)), (new, None)):
        cost.restore(usd(5))
        cost.report(usd(7))
        told_now = cost.so_far
        assert (told_now.amounts, told_now.before) == ((usd(2),), before)
        assert (bool(told_now.unsure), told_now.carried_over) == (bool(before), bool(before))


def test_a_first_cost_that_the_ledger_knows_already_is_nothing_new() -> None:
    cost = AgentCost(CARRIED)
    cost.begin(at_zero=False)
    cost.report(usd(5))
    assert cost.so_far.baseless
    cost.restore(usd(5))
    assert cost.take() == Increase(reported=True)


def test_a_cost_that_went_on_and_then_fell_below_where_it_stood_has_told_of_this_turn() -> None:
    cost = AgentCost(UNKNOWN)
    cost.begin_perhaps_at(usd(5))
    cost.book_ahead(usd(2))
    cost.report(usd(7))
    cost.report(usd(3))
    assert cost.take() == Increase((usd(1),), reported=True)


# -- a first value of which it is known later where the counter stood


def first_told(*values: int, booked: tuple[Money, ...] | None = None) -> AgentCost:
    cost = AgentCost(CARRIED)
    cost.begin(at_zero=False)
    for value in values:
        cost.report(usd(value))
    cost.take()
    if booked is not None:
        cost.book_for_first(booked)
    return cost


@each_of(
    [
        ((5,), None, usd(2), usd(3)),
        ((5, 6), (), usd(2), usd(3)),  # what came after it is booked as it was told
        ((5, 6), (usd(3),), usd(2), usd(1)),  # ... or is in the price of the turn
        ((7, 3), None, usd(1), usd(2)),  # the last one that nothing could be compared with
        ((5,), None, usd(9), None),
        ((5,), (eur(1),), usd(2), None),
        ((10_100,), (usd(10_000),), usd(0), None),  # 1 % is two price lists
        ((10_101,), (usd(10_000),), usd(0), usd(101)),
    ]
)
def test_what_a_first_value_held_beyond_what_was_booked_for_it_is_told_once(
    case: tuple[tuple[int, ...], tuple[Money, ...] | None, Money, Money | None],
) -> None:
    values, booked, stood, held = case
    cost = first_told(*values, booked=booked)
    assert cost.settle(stood) == held
    assert cost.settle(stood) is None


def test_of_a_value_that_was_compared_with_another_nothing_is_left_to_settle() -> None:
    cost = told(usd(5))
    cost.take()
    cost.book_for_first((usd(3),))
    assert cost.settle(usd(1)) is None
    again = first_told(5)
    again.begin(at_zero=True)
    assert again.settle(usd(1)) is None


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


def bill_of(increase: Increase, source: UsageSource = "agent") -> Bill:
    return turn_bill(
        [("claude-opus-5-5", USED)],
        (),
        TurnUsage(USED, source),
        increase,
        Prices(PRICES, 1, None),
        told=True,
        untold=False,
        saved_at_end=False,
        hides_cache=False,
    )


def billed(amount: int, before: int, unsure: str = "unsure") -> Bill:
    return bill_of(Increase((usd(amount),), reported=True, before=usd(before), unsure=unsure))


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


@each_of([(usd(PRICE + 10_927), "agent"), (usd(PRICE + 10_928), "estimated"), (eur(PRICE), "estimated")])
def test_an_amount_fits_a_price_that_is_one_in_a_thousand_apart_and_no_more(case: tuple[Money, str]) -> None:
    amount, source = case
    bill = bill_of(Increase((amount,), reported=True, unsure="unsure"))
    assert ([line.cost for line in bill.lines], bill.source) == ([amount], source)


@each_of(
    [
        (usd(PRICE - 109_270), usd(PRICE - 109_270), "agent"),
        (usd(PRICE - 109_271), usd(PRICE), "computed"),
        (eur(1), eur(1), "agent"),
    ]
)
def test_a_cost_of_which_a_part_is_not_told_stands_if_it_is_one_in_a_hundred_below_the_price_and_no_less(
    case: tuple[Money, Money, str],
) -> None:
    amount, cost, source = case
    bill = bill_of(Increase((amount,), reported=True, baseless=True))
    assert ([line.cost for line in bill.lines], bill.source) == ([cost], source)


@each_of([(109_270, None), (109_271, usd(109_271))])
def test_what_a_first_cost_since_a_load_has_beyond_one_in_a_hundred_of_the_price_was_spent_before(
    case: tuple[int, Money | None],
) -> None:
    more, unseen = case
    assert bill_of(Increase((usd(PRICE + more),), reported=True, carried_over=True)).unseen == unseen


@each_of(
    [
        (usd(PRICE * 99 // 100), (usd(PRICE * 99 // 100),)),
        (usd(PRICE * 99 // 100 - 1), (usd(PRICE * 99 // 100),)),  # with the nano-dollar of before
        (eur(1), (eur(1),)),
    ]
)
def test_a_fork_that_tells_less_than_its_tokens_cost_at_least_began_at_zero(
    case: tuple[Money, tuple[Money, ...]],
) -> None:
    amount, costs = case
    bill = bill_of(Increase((amount,), reported=True, before=usd(1)), "partial")
    assert tuple(line.cost for line in bill.lines) == costs
