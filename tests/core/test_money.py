"""Amounts: what is no amount, what fits, and how they are rounded."""

from __future__ import annotations

import pytest

from acp_proxy.core.money import NANO, Money, amount_text, budget_text, decimal_text, plus, rounded, summed

_MOST = 2**63 - 1  # what a ledger column holds


def test_what_fits_a_ledgers_column_is_an_amount_and_no_more() -> None:
    for nano in (_MOST, -_MOST):
        assert Money.of(decimal_text(nano), "USD").nano == nano
        assert Money(nano, "USD").text == decimal_text(nano)
    for amount in (decimal_text(_MOST + 1), decimal_text(-_MOST - 1), "9999999999999", "1e13", "1e999999999"):
        with pytest.raises(ValueError, match="out of range"):
            Money.of(amount, "USD")


@pytest.mark.parametrize("amount", ["", "a", "nan", "inf", "-Infinity", "1,5", "0x1"])
def test_what_is_no_number_is_no_amount(amount: str) -> None:
    with pytest.raises(ValueError, match="not an amount of money"):
        Money.of(amount, "USD")


@pytest.mark.parametrize(
    ("tenths", "nano"), [(4, 0), (5, 0), (6, 1), (14, 1), (15, 2), (16, 2), (25, 2), (-5, 0), (-15, -2)]
)
def test_an_amount_is_rounded_half_to_even(tenths: int, nano: int) -> None:
    assert Money.of(f"{tenths}e-10", "USD").nano == nano
    assert rounded(tenths, 10) == nano


@pytest.mark.parametrize(
    ("allowed", "shown"),
    [(100 * NANO, "$1.23"), (100 * NANO - 1, "$1.2346"), (NANO // 10, "$1.2346"), (NANO // 10 - 1, "$1.234567891")],
)
def test_a_budget_is_shown_the_finer_the_less_it_allows(allowed: int, shown: str) -> None:
    assert budget_text(1_234_567_891, "USD", allowed) == shown
    assert budget_text(1_234_567, "tokens", allowed) == "1,234,567"


@pytest.mark.parametrize(
    ("amount", "currency", "decimals", "sentence", "column"),
    [
        ("0.1", "USD", 4, "$0.10", "$0.1000"),
        ("0.0576", "EUR", 4, "€0.0576", "€0.0576"),
        ("1234.5", "GBP", 2, "£1,234.50", "£1,234.50"),
        ("-3", "USD", 2, "-$3.00", "-$3.00"),
        ("2.5", "credits", 4, "2.50 credits", "2.5000 credits"),
        ("0.00001", "USD", 4, "<$0.0001", "<$0.0001"),
        ("-0.00001", "CHF", 2, "<-0.01 CHF", "<-0.01 CHF"),
        ("0", "USD", 9, "$0.00", "$0.000000000"),
        ("0.057611", "USD", 9, "$0.057611", "$0.057611000"),
    ],
)
def test_an_amount_is_written_for_people_in_one_way(
    amount: str, currency: str, decimals: int, sentence: str, column: str
) -> None:
    money = Money.of(amount, currency)
    assert amount_text(money, decimals) == sentence
    assert amount_text(money, decimals, column=True) == column


def test_amounts_are_added_by_currency_and_never_across() -> None:
    dollar, euro = Money(1, "USD"), Money(2, "EUR")
    assert summed([dollar, euro, dollar]) == (Money(2, "USD"), euro)
    assert plus((dollar,), (dollar,)) == (Money(2, "USD"),)
    assert plus((dollar,), (euro,)) == plus((dollar, euro), ()) == plus((), (dollar, euro)) == (dollar, euro)
    assert plus((dollar, euro), (euro,)) == (dollar, Money(4, "EUR"))
    assert plus((dollar, euro), (dollar, euro)) == (Money(2, "USD"), Money(4, "EUR"))
    assert plus((dollar, euro), (dollar,)) == plus((dollar,), (dollar, euro)) == (Money(2, "USD"), euro)
    with pytest.raises(ValueError, match="USD and EUR are not added"):
        dollar.plus(euro)


def test_an_amount_with_another_and_without_it_again_is_the_same() -> None:
    dollar, half = Money.of("1", "USD"), Money.of("0.5", "USD")
    assert (dollar.plus(half), dollar.plus(half).minus(half)) == (Money.of("1.5", "USD"), dollar)


@pytest.mark.parametrize(("nano", "text"), [(0, "0"), (-1, "-0.000000001"), (-NANO, "-1"), (NANO // 2, "0.5")])
def test_an_amount_is_written_exactly_and_without_zeros_at_its_end(nano: int, text: str) -> None:
    assert decimal_text(nano) == text
