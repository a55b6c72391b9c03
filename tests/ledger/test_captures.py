"""How much of a bill the ledger had: the latest of each provider, of one organisation."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from acp_proxy.core.windows import DAY
from acp_proxy.ledger import captures
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.captures import Capture
from harness.rows import NOON

HALF = Capture("anthropic", NOON - DAY, NOON, NOON, 2000, 1000, "USD", 4 * 10**9, 3 * 10**9)


def noted(ledger: BudgetLedger, *given: Capture, organisation: str = "default") -> list[Capture]:
    for each in given:
        ledger.tables.write(partial(captures.note, organisation=organisation, capture=each))
    return captures.latest(ledger.tables.read, "default")


def test_the_latest_of_each_provider_is_kept(ledger: BudgetLedger) -> None:
    later = replace(HALF, noted_at=NOON + 1, seen_tokens=1900)
    other = replace(HALF, provider="openai")
    assert noted(ledger, other, HALF, later) == [later, other]
    assert noted(ledger, HALF) == [later, other]  # what was found earlier


def test_another_organisations_bills_are_not_ours(ledger: BudgetLedger) -> None:
    assert noted(ledger, HALF, organisation="acme") == []


def test_a_ratio_is_of_what_was_billed_and_unknown_where_nothing_was() -> None:
    assert (HALF.of_tokens, HALF.of_cost) == (500_000_000, 750_000_000)
    assert (replace(HALF, billed_tokens=0).of_tokens, replace(HALF, billed=0).of_cost) == (None, None)
    assert replace(HALF, seen_tokens=3000).of_tokens == 1_500_000_000
