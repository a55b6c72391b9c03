"""A row that is corrected, on a real database of each backend: it is as if it had been booked like that."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget
from acp_proxy.core.entry import UsageSource
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from harness.rows import ALICE, MINUTE, NOON, amended, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME, Open
from tests.ledger.holds import account, ended, hold, keep, standing
from tests.metrics.scrapes import Sample, Scraped, configuration, exporter

AT_LEAST = row(line("opus", "0.5", input=100, output=10), id="a", usage_source="partial")
EXACT = replace(
    AT_LEAST,
    entry=replace(
        AT_LEAST.entry,
        lines=(line("opus", "0.4", input=20, cached_read=80, output=15, thought=5), line("haiku", "0.3", input=7)),
        usage_source="agent",
        detail="from the agent's own files",
    ),
)
OTHER = row(line("opus", "1", input=1000), id="b", at=NOON + MINUTE)
EVERY_BY = [(), ("model",), ("usage_source", "cost_source"), ("user", "team"), ("currency",), ("day",)]


def sums(ledger: BudgetLedger) -> list[object]:
    return [sorted(ledger.summed(Query(), by), key=repr) for by in EVERY_BY]


@ONE_AT_A_TIME
class TestCorrecting:
    def test_the_row_is_the_new_one_and_its_session_costs_what_the_rows_do(self, ledger: BudgetLedger) -> None:
        ledger.append([AT_LEAST, OTHER])
        assert ledger.correct(AT_LEAST, EXACT, NOON)
        assert list(ledger.rows(Query())) == [EXACT, OTHER]
        state = ledger.state_of(ALICE, "s1")
        assert state is not None
        assert [cost.text for cost in state.costs] == ["1.7"]

    def test_sums_are_those_of_a_ledger_that_had_it_from_the_beginning(self, ledger: BudgetLedger) -> None:
        ledger.append([EXACT, OTHER])
        expected = sums(ledger)
        ledger.correct(EXACT, AT_LEAST, NOON)
        ledger.correct(AT_LEAST, EXACT, NOON)
        assert sums(ledger) == expected
        assert ledger.rebuild()
        assert sums(ledger) == expected

    def test_it_happens_once_whoever_tries(self, ledger: BudgetLedger, another: Open) -> None:
        ledger.append([AT_LEAST])
        other = another()
        assert ledger.correct(AT_LEAST, EXACT, NOON)
        assert not other.correct(AT_LEAST, EXACT, NOON)
        assert list(other.rows(Query())) == [EXACT]

    def test_a_row_that_is_not_there_is_not_made(self, ledger: BudgetLedger) -> None:
        assert not ledger.correct(AT_LEAST, EXACT, NOON)
        assert list(ledger.rows(Query())) == []

    def test_an_append_of_the_old_row_again_leaves_the_new_one(self, ledger: BudgetLedger) -> None:
        """As from a journal, whose process was killed before it noted that the ledger has it."""
        ledger.append([AT_LEAST])
        ledger.correct(AT_LEAST, EXACT, NOON)
        assert ledger.append([AT_LEAST]) == 0
        assert list(ledger.rows(Query())) == [EXACT]

    def test_what_a_page_keeps_of_that_day_is_read_again(self, ledger: BudgetLedger) -> None:
        ledger.append([AT_LEAST])
        before = ledger.recent.rows_by_four_weeks("default")
        (four_weeks,) = before
        by_day = ledger.recent.rows_by_day("default", four_weeks)
        ledger.correct(AT_LEAST, EXACT, NOON)
        assert ledger.recent.rows_by_four_weeks("default").keys() == before.keys()
        assert ledger.recent.rows_by_four_weeks("default") != before
        assert ledger.recent.rows_by_day("default", four_weeks) != by_day

    @pytest.mark.parametrize("of", [budget("9 USD"), budget("9 tokens", per="user"), budget("9 USD", "session")])
    def test_a_budget_has_spent_what_the_new_row_says(self, ledger: BudgetLedger, of: Budget) -> None:
        cap = account(of)
        ledger.append([AT_LEAST])
        keep(ledger, cap)
        ledger.append([OTHER])
        ledger.correct(AT_LEAST, EXACT, NOON)
        asked, made = standing(ledger, cap), held(ledger, cap)
        expected = usd("1.7") if of.limit.unit == "USD" else EXACT.entry.usage.total + OTHER.entry.usage.total
        assert (asked.spent, asked.untold) == (expected, 0)
        assert made == expected

    def test_a_lost_turn_is_charged_what_it_used_and_no_more_what_it_held(self, ledger: BudgetLedger) -> None:
        cap = account(budget("9 USD"), turn="a")
        hold(ledger, "a", (cap, "5"))
        lost = ended("crashed", line("opus", None, input=0, output=0))
        ledger.append([lost])
        assert standing(ledger, cap).spent == usd("5")
        known = amended(lost, lines=(line(cost="0.7"),), usage_source="agent")
        assert ledger.correct(lost, known, NOON)
        assert standing(ledger, cap).spent == usd("0.7")


def held(ledger: BudgetLedger, of: Account) -> int:
    """What is spent, by the sum that a hold makes."""
    return hold(ledger, "next", (of, 1), now=NOON + MINUTE).standings[0].spent


Counted = dict[Sample, Decimal]

SOURCES: tuple[UsageSource, ...] = ("partial", "none", "estimated", "agent")


def test_counters_of_metrics_never_decrease_and_are_right_again_when_others_follow(tmp_path: Path) -> None:
    """A row is told in part, and corrected, again and again."""
    config = configuration(tmp_path)
    shown, before = exporter(config), Counted()
    with closing(open_ledger(config.ledger.url, journals=())) as ledger:
        for number in range(12):
            booked = _numbered(AT_LEAST, number, SOURCES[number % 3])
            ledger.append([booked])
            before = not_less(before, Scraped(shown.scrape(ledger)))
            assert ledger.correct(booked, _numbered(EXACT, number, "agent"), NOON)
            again = Scraped(exporter(config).scrape(ledger))
            before = not_less(before, again)
        assert again.total("acp_proxy_turns_total") == 12
        used = again.total("acp_proxy_tokens_total", source="agent")
        assert used == 12 * EXACT.entry.usage.total
        # Of the source that it was counted under at first no more than one turn stays.
        assert again.total("acp_proxy_tokens_total", source="partial") <= AT_LEAST.entry.usage.total


def _numbered(of: Row, number: int, source: UsageSource) -> Row:
    return amended(of, id=f"t{number:04}", usage_source=source)


def not_less(before: Counted, scraped: Scraped) -> Counted:
    now = {
        (name, labels): value
        for name in scraped.names
        if name.startswith(("acp_proxy_tokens", "acp_proxy_cost", "acp_proxy_turn", "acp_proxy_unpriced"))
        for labels, value in scraped.samples(name).items()
    }
    assert [key for key, value in before.items() if now[key] < value] == []
    return now
