"""What bill and ledger differ by, in parts that add up to it: exactly, and as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.reconcile import Reconciliation
from acp_proxy.reconcile.difference import Difference, in_steps
from tests.bills.made import FORMS, Call
from tests.reconcile.month import DAYS, FIRST, calls_of, priced, reconciled, rows, whole_month


def split(found: Reconciliation) -> Difference:
    """Having checked that its parts add up to what the table says, to the nano-unit."""
    assert found.difference is not None
    whole = found.difference.whole
    sides = (found.total.bill, found.total.ledger)
    billed, booked = (sum(each.nano for each in side.costs if each.currency == whole.currency) for side in sides)
    assert whole.nano == billed - booked == sum(amount.nano for _, amount in found.difference.parts)
    return found.difference


def call(day: int, model: str, tokens: tuple[int, int, int, int, int], nano: int) -> Call:
    """Billed by so many nano-dollars more than at known prices."""
    listed = priced(Call(FIRST + day, model, tokens=tokens))
    return replace(listed, amount=listed.amount + Decimal(nano).scaleb(-9))


CALL = st.builds(
    call,
    st.integers(0, DAYS - 1),
    st.sampled_from(["claude-sonnet-5", "claude-opus-5-5", "claude-haiku-5-5", "unheard-of"]),
    st.tuples(*[st.integers(0, 10**6)] * 5),
    st.integers(-(10**6), 10**6),
)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(CALL, min_size=1, max_size=8),
    st.sets(st.integers(0, len(rows()) - 1), max_size=12),
    st.sampled_from(["anthropic", "openai", "csv"]),
)
def test_the_parts_add_up_to_the_whole_difference(
    tmp_path_factory: pytest.TempPathFactory, more: Sequence[Call], missing: set[int], form: str
) -> None:
    kept = [row for number, row in enumerate(rows()) if number not in missing]
    provider, made = FORMS[form]
    bill = made(whole_month([*calls_of(rows()), *more]))
    split(reconciled(tmp_path_factory.mktemp("parts"), kept, bill, provider))


def test_a_model_that_only_the_bill_has_is_not_in_the_ledger(tmp_path: Any) -> None:
    calls = whole_month([*calls_of(rows()), priced(Call(FIRST + 3, "claude-haiku-5-5", tokens=(10**6, 0, 0, 0, 0)))])
    parts = dict(split(reconciled(tmp_path, rows(), FORMS["anthropic"][1](calls))).parts)
    assert parts["unseen"].text == f"{calls[-3].amount.normalize():f}"


def test_a_discount_is_another_price(tmp_path: Any) -> None:
    calls = [replace(call, amount=call.amount / 2) for call in whole_month(calls_of(rows()))]
    parts = dict(split(reconciled(tmp_path, rows(), FORMS["anthropic"][1](calls))).parts)
    halved = sum(int(call.amount.scaleb(9).to_integral_value()) for call in calls)
    assert abs(parts["price"].nano + halved) <= len(calls)
    assert "unseen" not in parts


@given(st.lists(st.integers(-(10**15), 10**15), max_size=8), st.sampled_from([1, 10, 10**5, 10**7]))
def test_what_is_shown_of_parts_adds_up_to_what_is_shown_of_the_whole(parts: list[int], step: int) -> None:
    whole = sum(parts)
    shown = in_steps(whole, parts, step)
    assert abs(sum(shown) - whole) * 2 <= step
    assert all(each % step == 0 and abs(each - part) < step for each, part in zip(shown, parts, strict=True))
