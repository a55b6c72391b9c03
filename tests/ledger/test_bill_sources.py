"""Providers whose bills are fetched: one process asks each of them, and one that was followed keeps nothing."""

from __future__ import annotations

from functools import partial

from acp_proxy.core.windows import DAY
from acp_proxy.ledger import bill_sources
from acp_proxy.ledger.bill_sources import LEASE, BillSource
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.statements import Run
from harness.rows import NOON

WENT_WELL = BillSource("openai", NOON + DAY, NOON, NOON)


def claimed(ledger: BudgetLedger, holder: str, now: int = NOON, organisation: str = "default") -> bool:
    return ledger.tables.write(
        partial(bill_sources.claim, organisation=organisation, provider="openai", holder=holder, now=now)
    )


def held(ledger: BudgetLedger, holder: str, now: int) -> bool:
    return ledger.tables.write(
        partial(bill_sources.hold, organisation="default", provider="openai", holder=holder, now=now)
    )


def settled(ledger: BudgetLedger, holder: str, source: BillSource = WENT_WELL) -> list[str]:
    """What was done with it."""
    done = list[str]()

    def work(run: Run) -> None:
        done.clear()
        bill_sources.settle(run, "default", holder, source, lambda _: done.append("kept"))

    ledger.tables.write(work)
    return done


def test_one_of_several_asks_until_its_lease_is_over(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one")
    assert not claimed(ledger, "other", NOON + LEASE - 1)
    assert held(ledger, "one", NOON + LEASE - 1)
    assert not claimed(ledger, "other", NOON + LEASE)
    assert claimed(ledger, "other", NOON + 2 * LEASE)
    assert not held(ledger, "one", NOON + 2 * LEASE)


def test_what_is_not_due_is_asked_by_nobody(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one")
    assert settled(ledger, "one") == ["kept"]
    assert ledger.bill_sources("default") == [WENT_WELL]
    assert not claimed(ledger, "one", NOON + DAY - 1)
    assert claimed(ledger, "other", NOON + DAY)


def test_who_was_followed_by_another_keeps_nothing(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one")
    assert claimed(ledger, "other", NOON + LEASE)
    assert settled(ledger, "one") == []
    failed = BillSource("openai", NOON + LEASE + 1, NOON + LEASE, 0, 1, "nobody is there")
    assert settled(ledger, "other", failed) == ["kept"]
    assert ledger.bill_sources("default") == [failed]


def test_who_lets_go_is_followed_at_once(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one")
    ledger.tables.write(lambda run: bill_sources.release(run, "default", "openai", "one"))
    assert claimed(ledger, "other")


def test_times_of_a_clock_that_was_ahead_hold_nobody_up(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one", NOON + 300 * DAY)
    assert claimed(ledger, "other")
    assert settled(ledger, "other", BillSource("openai", NOON + 300 * DAY, NOON + 299 * DAY)) == ["kept"]
    assert claimed(ledger, "one")


def test_another_organisation_asks_for_itself(ledger: BudgetLedger) -> None:
    assert claimed(ledger, "one")
    assert claimed(ledger, "other", organisation="acme")
    assert [each.provider for each in ledger.bill_sources("acme")] == ["openai"]
