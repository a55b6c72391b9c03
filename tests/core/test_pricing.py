"""Exact arithmetic over one row's rates."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Peak, Priced, PriceRow, Quote, Rates, Step, Tier, cost, quote
from acp_proxy.core.usage import Usage

CLAUDE = Rates.of("4", "20", "0.2", "5", "8")
TOKENS = st.integers(min_value=0, max_value=10**9)
USAGES = st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)
PRICES = st.decimals(min_value=0, max_value=10_000, places=9).map(str)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def usd(text: str) -> Money:
    return Money.of(text, "USD")


def test_each_kind_of_token_has_its_price_and_thinking_that_of_output() -> None:
    priced = cost(CLAUDE, Usage(input=300, cached_read=850_000, cached_write=50_000, output=4_000, thought=1_000))
    assert priced.cost == usd("0.5212")
    assert not priced.estimated


def test_cache_writes_cost_the_five_minute_price_and_the_result_says_so() -> None:
    priced = cost(CLAUDE, Usage(cached_write=1_000_000))
    assert priced.cost == usd("5")
    assert priced.detail == "cache writes at the 5-minute price"


def test_cache_writes_cost_the_one_hour_price_when_configured() -> None:
    priced = cost(CLAUDE, Usage(cached_write=1_000_000), "1h")
    assert priced.cost == usd("8")
    assert priced.detail == "cache writes at the 1-hour price"


def test_a_model_with_one_price_for_cache_writes_keeps_it_whatever_is_configured() -> None:
    priced = cost(Rates.of("2", "10", "0.1", "2.5"), Usage(cached_write=1_000_000), "1h")
    assert (priced.cost, priced.estimated, priced.detail) == (usd("2.5"), False, "")


def test_tokens_known_to_be_kept_for_an_hour_cost_the_one_hour_price() -> None:
    assert cost(CLAUDE, Usage(), cached_write_1h=1_000_000).cost == usd("8")


@pytest.mark.parametrize(
    ("rates", "price", "detail"),
    [
        (Rates.of("4", "20", "0.2", "5"), "5", "no price for cached_write_1h: as other writes"),
        (Rates.of("4", "20"), "4", "no price for cached_write_1h: as input"),
    ],
)
def test_tokens_kept_for_an_hour_without_a_price_of_their_own_cost_what_other_writes_do(
    rates: Rates, price: str, detail: str
) -> None:
    priced = cost(rates, Usage(), cached_write_1h=1_000_000)
    assert (priced.cost, priced.estimated, priced.detail) == (usd(price), True, detail)


@pytest.mark.parametrize("usage", [Usage(cached_read=1_000_000), Usage(cached_write=1_000_000)])
def test_cached_tokens_without_a_price_of_their_own_are_estimated_as_input(usage: Usage) -> None:
    priced = cost(Rates.of("3", "9"), usage)
    assert priced.cost == usd("3")
    assert priced.estimated
    kind = "cached_read" if usage.cached_read else "cached_write"
    assert priced.detail == f"no price for {kind}: as input"


@pytest.mark.parametrize("rates", [Rates(), Rates.of(output="9"), Rates.of(input="3")])
def test_a_cost_is_unknown_when_a_needed_rate_is(rates: Rates) -> None:
    assert cost(rates, Usage(input=1, output=1)).cost is None


def test_a_rate_that_is_not_needed_may_be_unknown() -> None:
    assert cost(Rates.of(input="3"), Usage(input=1_000_000)).cost == usd("3")


def test_what_is_priced_is_neither_an_estimate_nor_the_users_own_price_unless_that_is_said() -> None:
    assert (Priced(None).estimated, Priced(None).configured) == (False, False)
    assert Quote(CLAUDE, None).estimated is False


def test_no_tokens_cost_nothing() -> None:
    assert cost(CLAUDE, Usage()).cost == usd("0")


def test_the_sum_is_rounded_once_half_to_even() -> None:
    assert cost(Rates.of("0.0005", "0.0005"), Usage(input=1)).cost == Money(0, "USD")
    assert cost(Rates.of("0.0015", "0"), Usage(input=1)).cost == Money(2, "USD")
    assert cost(Rates.of("0.0005", "0.0005"), Usage(input=1, output=1)).cost == Money(1, "USD")
    assert cost(Rates.of("0.000500000000000001", "0"), Usage(input=1)).cost == Money(1, "USD")


@pytest.mark.parametrize(("price", "nano"), [("0.0025", 2), ("0.0035", 4), ("0.0045", 4), ("0.0055", 6)])
def test_half_a_nano_unit_goes_to_the_even_one(price: str, nano: int) -> None:
    assert cost(Rates.of(price), Usage(input=1)).cost == Money(nano, "USD")


def test_a_cost_that_no_ledger_can_hold_is_unknown() -> None:
    priced = cost(CLAUDE, Usage(output=10**18))
    assert (priced.cost, priced.detail) == (None, "cost out of range")
    a_nano_unit = Rates.of("0.001")
    assert cost(a_nano_unit, Usage(input=2**63 - 1)).cost == Money(2**63 - 1, "USD")
    assert cost(a_nano_unit, Usage(input=2**63)).cost is None


@pytest.mark.parametrize(
    "text", ["", "free", "-1", "1e400", "NaN", "Infinity", "0.0000000000000000001", "-0.000000000000000001", "1,5"]
)
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a price per million tokens"):
        Rates.of(input=text)


@given(PRICES, PRICES)
def test_rates_are_kept_exactly(price: str, other: str) -> None:
    texts = Rates.of(input=price, output=other).texts
    assert Decimal(texts["input"] or "") == Decimal(price)
    assert Decimal(texts["output"] or "") == Decimal(other)
    assert texts["cached_read"] is None


@given(PRICES, PRICES, USAGES)
def test_a_cost_is_what_decimals_say_and_never_negative(price: str, other: str, usage: Usage) -> None:
    money = cost(Rates.of(price, other, price, other), usage).cost
    assert money is not None
    assert type(money.nano) is int
    assert money.nano >= 0
    exact = Decimal(price) * (usage.input + usage.cached_read) + Decimal(other) * (
        usage.cached_write + usage.completion
    )
    assert abs(Decimal(money.nano) - exact * 1000) <= Decimal("0.5")


@given(USAGES, USAGES)
def test_a_cost_is_linear_in_the_tokens(one: Usage, other: Usage) -> None:
    both, first, second = (cost(CLAUDE, usage).cost for usage in (one + other, one, other))
    assert both is not None
    assert first is not None
    assert second is not None
    assert both == first.plus(second)  # these rates are whole nano-units per token


TIERED = PriceRow((Step(None, CLAUDE, (Tier(100_000, Rates.of("20", "100")), Tier(200_000, Rates.of("40", "200")))),))


@pytest.mark.parametrize(
    ("context", "price"), [(0, "4"), (100_000, "4"), (100_001, "20"), (200_000, "20"), (200_001, "40"), (10**9, "40")]
)
def test_the_largest_request_decides_the_tier_of_all_tokens(context: int, price: str) -> None:
    found = quote(TIERED, 0, context, prompt=10**9)
    assert found.rates.texts["input"] == price
    assert not found.estimated


def test_a_sum_up_to_the_first_tier_has_the_base_price_for_certain() -> None:
    found = quote(TIERED, 0, None, prompt=100_000)
    assert (found.rates, found.estimated) == (CLAUDE, False)


def test_a_sum_above_the_first_tier_has_the_base_price_as_an_estimate() -> None:
    found = quote(TIERED, 0, None, prompt=100_001)
    assert (found.rates, found.estimated, found.notes) == (CLAUDE, True, ("context unknown: base price",))


def test_without_tiers_no_context_is_needed() -> None:
    assert not quote(PriceRow((Step(None, CLAUDE),)), 0, None, prompt=10**9).estimated


def test_a_price_holds_from_its_date_on_and_the_first_one_before_it_as_an_estimate() -> None:
    old, new = Rates.of("5", "30"), Rates.of("4", "20")
    row = PriceRow((Step(at("2026-07-09"), old), Step(at("2026-08-21"), new)))
    assert quote(row, at("2026-07-09"), None, 0) == Quote(old, at("2026-07-09"))
    assert quote(row, at("2026-08-20T23:59:59"), None, 0).rates == old
    assert quote(row, at("2026-08-21"), None, 0).rates == new
    before = quote(row, at("2026-07-08T23:59:59"), None, 0)
    assert (before.rates, before.estimated) == (old, True)
    assert before.notes == ("no price is known before 2026-07-09: as from then on",)


PEAK = Peak(at("2026-08-16T16:00"), ((1, 4), (6, 10)), 2, frozenset({date(2026, 10, 1)}))


@pytest.mark.parametrize(
    ("moment", "factor"),
    [
        ("2026-11-20T00:59:59", 1),
        ("2026-11-20T01:00:00", 2),
        ("2026-11-20T03:59:59", 2),
        ("2026-11-20T04:00:00", 1),
        ("2026-11-20T06:00:00", 2),
        ("2026-11-20T09:59:59", 2),
        ("2026-11-20T10:00:00", 1),
        ("2026-11-20T15:00:00", 1),
        ("2026-11-21T02:00:00", 1),  # Saturday
        ("2026-11-22T07:00:00", 1),  # Sunday
        ("2026-10-01T02:00:00", 1),  # a holiday
        ("2026-08-14T02:00:00", 1),  # before the rule
    ],
)
def test_peak_hours_cost_more_on_working_days(moment: str, factor: int) -> None:
    found = quote(PriceRow((Step(None, CLAUDE),), peak=PEAK), at(moment), None, 0)
    assert found.rates == CLAUDE.times(factor)
    assert ("peak hours" in found.notes) == (factor == 2)


def test_what_costs_a_multiple_costs_it_for_every_kind_of_token() -> None:
    assert CLAUDE.times(3) == Rates.of("12", "60", "0.6", "15", "24")
    assert Rates.of("1").times(2) == Rates.of("2")  # what is unknown stays so


def test_peak_hours_begin_with_the_moment_since_which_they_hold() -> None:
    row = PriceRow((Step(None, CLAUDE),), peak=Peak(at("2026-11-20T02:00:00"), ((1, 4),), 3))
    assert quote(row, at("2026-11-20T01:59:59"), None, 0).rates == CLAUDE
    assert quote(row, at("2026-11-20T02:00:00"), None, 0).rates == CLAUDE.times(3)
