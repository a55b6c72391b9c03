"""What is booked for a turn whose process died without a word: what it held, once, and nothing of anybody else."""

from __future__ import annotations

from contextlib import closing
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Query, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.places import journal_name
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import CAP, GONE, account, held, hold

pytestmark = ONE_AT_A_TIME

TOKENS = account(budget("1000 tokens", name="tokens"))
TURNS = account(budget("9 turns", name="turns"))
CREDITS = account(budget("9 credits", name="credits"))


def booked(ledger: BudgetLedger) -> Entry:
    (found,) = ledger.rows(Query())
    return found.entry


def test_its_row_has_what_it_held_of_each_unit_and_says_why(ledger: BudgetLedger) -> None:
    turn = OpenTurn("a", ALICE, "s1", NOON, GONE, "opus", "p1")
    wants = [(TOKENS, 300), (TURNS, 1), (CAP, usd("0.6")), (CREDITS, 2)]
    ledger.hold(turn, [(each, HoldSize(size, 1)) for each, size in wants], NOON, NOON + EXPIRY)
    ledger.settle_dead(NOON + EXPIRY)
    costs = Money.of("0.6", "USD"), Money(2, "credits")
    assert booked(ledger) == Entry(
        id="a",
        session="s1",
        kind="turn",
        started_at=NOON,
        ended_at=NOON,
        stop_reason="crashed",
        lines=(UsageLine("opus", Usage(input=300), costs[0]), UsageLine("opus", Usage(), costs[1])),
        usage_source="estimated",
        cost_source="estimated",
        detail="the proxy died during the turn: what it held",
    )
    assert held(ledger, account(budget("9 USD", "total", layer="flag"))) == (usd("0.6"), 0)  # of that process


def test_each_budget_is_charged_what_it_held_and_its_row_has_the_least_of_that(ledger: BudgetLedger) -> None:
    """Else a budget of a month, which holds a hundredth of itself, would use up that of a day."""
    month = account(budget("2500 USD", "month", "team"))
    many = account(budget("9999 tokens", name="many"))
    wants = [(CAP, usd("0.3")), (month, usd("25")), (TOKENS, 300), (many, 900), (TURNS, 1)]
    turn = OpenTurn("a", ALICE, "s1", NOON, GONE, "opus", "p1")
    ledger.hold(turn, [(each, HoldSize(size, 1)) for each, size in wants], NOON, NOON + EXPIRY)
    ledger.settle_dead(NOON)
    assert booked(ledger).costs == (Money.of("0.3", "USD"),)
    assert booked(ledger).usage.total == 300
    assert [held(ledger, each) for each, _ in wants] == [(size, 0) for _, size in wants]
    assert ledger.rebuild()
    assert [held(ledger, each) for each, _ in wants] == [(size, 0) for _, size in wants]


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("euros", ["0.3", "0.9"])
def test_a_budget_that_has_a_rate_counts_it_once(ledger: BudgetLedger, euros: str, both_ways: bool) -> None:
    dollars = account(budget("9 USD", rates=(("EUR", 2 * NANO),) if both_ways else ()))
    other = account(budget("9 EUR", name="euros", rates=(("GBP", NANO), ("USD", NANO // 2))))
    hold(ledger, "a", (dollars, "1"), (other, euros), owner=GONE)
    ledger.settle_dead(NOON)
    assert (held(ledger, dollars), held(ledger, other)) == ((usd("1"), 0), (usd(euros), 0))
    assert len(booked(ledger).costs) == 1


def test_what_is_held_in_one_unit_leaves_the_other_unknown(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (TOKENS, 300), owner=GONE)
    ledger.settle_dead(NOON)
    entry = booked(ledger)
    assert (entry.usage_source, entry.cost_source, entry.costs) == ("estimated", "unknown", ())


def test_what_is_held_in_money_is_no_usage(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.6"), owner=GONE)
    ledger.settle_dead(NOON)
    entry = booked(ledger)
    assert (entry.usage_source, entry.cost_source, entry.usage.total) == ("none", "estimated", 0)


def test_it_ended_when_its_process_last_said_that_it_lives(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.6"), owner=GONE)
    ledger.beat("default", ["a"], NOON + 5 + EXPIRY)
    ledger.settle_dead(NOON + 9 * EXPIRY)
    assert booked(ledger).ended_at == NOON + 5


def test_it_did_not_end_after_it_was_booked_nor_before_it_began(ledger: BudgetLedger) -> None:
    for turn, now, ended_at in (("a", NOON + 3, NOON + 3), ("b", NOON - 3, NOON)):
        hold(ledger, turn, (CAP, "0.1"), owner=GONE)
        ledger.beat("default", [turn], NOON + 5 + EXPIRY)
        ledger.settle_dead(now)
        assert [found.entry.ended_at for found in ledger.rows(Query()) if found.entry.id == turn] == [ended_at]


def test_who_asks_how_an_account_stands_has_what_expired_booked(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.3"), owner=GONE)
    assert held(ledger, CAP, NOON + EXPIRY) == (usd("0.3"), 0)


def test_who_asks_of_several_accounts_has_booked_what_one_of_them_bears(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.3"), owner=GONE)
    found = ledger.standing([TOKENS, CAP], NOON)
    assert [(each.spent, each.held) for each in found] == [(0, 0), (usd("0.3"), 0)]


def test_turns_that_run_beside_it_keep_what_they_hold(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.3"), owner=GONE)
    hold(ledger, "b", (CAP, "0.5"))
    assert held(ledger, CAP) == (usd("0.3"), usd("0.5"))


def test_a_row_of_another_organisation_ends_no_turn_of_that_id(ledger: BudgetLedger) -> None:
    hold(ledger, "b", (CAP, "0.4"))
    ledger.append([row(line(cost="0.1"), id="a"), row(id="b", origin=replace(ALICE, organisation="other"))])
    assert held(ledger, CAP) == (usd("0.1"), usd("0.4"))


def test_while_another_reads_its_journal_nothing_is_booked_before_its_hold_expires(url: str, tmp_path: Path) -> None:
    """What was known of the turn may be in there."""
    directory = tmp_path / "journals"
    directory.mkdir()
    journal = directory / f"{journal_name(GONE)}-1.journal"
    with closing(open_ledger(url, journals=[directory])) as ledger, journal.open("wb") as reading:
        flock(reading, LOCK_EX)
        hold(ledger, "a", (CAP, "0.3"), owner=GONE)
        assert ledger.settle_dead(NOON + EXPIRY - 1) == 0
        assert ledger.settle_dead(NOON + EXPIRY) == 1


def test_where_its_journal_is_not_looked_for_nothing_is_booked_in_place_of_the_row_in_it(
    url: str, tmp_path: Path
) -> None:
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    dead = replace(Owner.this(elsewhere), started="long ago")
    with closing(open_ledger(url, journals=[mine])) as ledger:
        hold(ledger, "a", (CAP, "0.3"), owner=dead)
        assert held(ledger, CAP) == (0, usd("0.3"))
        assert hold(ledger, "b", (CAP, "0.8")).verdict.holds == ((CAP, usd("0.7")),)
        ledger.release("default", "b")
        assert held(ledger, CAP, NOON + EXPIRY) == (0, 0)
    with closing(open_ledger(url, journals=[mine, elsewhere], clock=lambda: NOON)) as ledger:
        assert booked(ledger).id == "a"
