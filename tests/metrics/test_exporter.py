"""What a scrape says of a ledger, and that it says what a report says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.config import Config
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import report
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.metrics.scrapes import Scraped, configuration, exporter, scrape


def fill(ledger: BudgetLedger) -> None:
    ledger.append(
        [
            row(line("opus", "0.045989", input=4100, cached_read=15060, cached_write=906, output=606, thought=7)),
            row(line("opus", "1.000000001"), line("haiku", "0.2"), kind="autonomous", cost_source="agent"),
            row(line("opus", "3", "credits"), origin=BOB, session="s2"),
            row(line("secret", None, input=5), origin=replace(BOB, agent="codex-acp"), cost_source="unknown"),
            row(line(None, None, input=0), origin=BOB, usage_source="none", cost_source="unknown", kind="side"),
            row(line("opus", "0.5"), usage_source="estimated", cost_source="estimated"),
            row(line("opus", None, input=70), kind="subagent", cost_source="parent"),
        ]
    )


@pytest.mark.parametrize("dimension", ["agent", "model", "team"])
def test_sums_over_labels_are_those_of_a_report_to_the_nano_unit(
    ledger: BudgetLedger, config: Config, dimension: str
) -> None:
    fill(ledger)
    found = scrape(ledger, config)
    lines = report(ledger, dimension, Query(), UTC_ZONE).lines
    costs = {(each.key, cost.currency): Decimal(cost.text) for each in lines for cost in each.costs}
    assert found.by("acp_proxy_cost_total", dimension, "currency") == costs
    tokens = {
        (each.key, kind): getattr(each.usage, kind)
        for each in lines
        for kind in ("input", "cached_read", "cached_write", "output", "thought")
    }
    assert found.by("acp_proxy_tokens_total", dimension, "type") == {
        key: number for key, number in tokens.items() if number
    }


def test_turns_by_kind_are_the_rows_of_a_report_by_turn(ledger: BudgetLedger, config: Config) -> None:
    fill(ledger)
    kinds = [each.about.entry.kind for each in report(ledger, "turn", Query(), UTC_ZONE).lines]  # type: ignore[union-attr]  # all are turns
    assert scrape(ledger, config).by("acp_proxy_turns_total", "kind") == {
        (kind,): kinds.count(kind) for kind in set(kinds)
    }


def test_sources_tell_estimates_apart(ledger: BudgetLedger, config: Config) -> None:
    fill(ledger)
    found = scrape(ledger, config)
    assert found.total("acp_proxy_tokens_total", source="estimated") == 110
    assert found.total("acp_proxy_cost_total", source="estimated") == Decimal("0.5")
    assert found.total("acp_proxy_cost_total", source="agent") == Decimal("1.200000001")


def test_tokens_without_a_price_are_counted_but_not_those_that_a_parent_pays(
    ledger: BudgetLedger, config: Config
) -> None:
    fill(ledger)
    found = scrape(ledger, config)
    assert found.by("acp_proxy_unpriced_tokens_total", "agent", "model") == {("codex-acp", "secret"): 5}
    assert found.value("acp_proxy_unpriced_tokens_total", agent=ALICE.agent, model="opus") == 0


def test_rows_without_usage_are_counted(ledger: BudgetLedger, config: Config) -> None:
    fill(ledger)
    assert scrape(ledger, config).by("acp_proxy_turns_without_usage_total", "agent") == {(ALICE.agent,): 1}


def test_other_organisations_are_not_shown(ledger: BudgetLedger, config: Config) -> None:
    ledger.append([row(origin=replace(ALICE, organisation="elsewhere", agent="theirs"))])
    assert "theirs" not in scrape(ledger, config).text


def test_a_session_counts_once_and_is_active_for_five_minutes(ledger: BudgetLedger, config: Config) -> None:
    ledger.append([row(at=NOON), row(at=NOON - 10 * MINUTE), row(at=NOON + MINUTE)])
    ledger.append([row(session="s2", at=NOON - 10 * MINUTE), row(at=NOON + 2 * MINUTE)])
    found = scrape(ledger, config, clock=(NOON + 3 * MINUTE) / 1e9)
    assert found.value("acp_proxy_sessions_total", agent=ALICE.agent, client="zed") == 2
    assert found.value("acp_proxy_sessions_active", agent=ALICE.agent) == 1
    later = scrape(ledger, config, clock=(NOON + 9 * MINUTE) / 1e9)
    assert later.value("acp_proxy_sessions_active", agent=ALICE.agent) == 0


def test_histograms_are_of_turns_and_keep_exact_sums(ledger: BudgetLedger, config: Config) -> None:
    ledger.append(
        [
            row(
                line("opus", "0.02"), line("haiku", "0.000000001", output=1), context_used=80_000, context_size=100_000
            ),
            row(line("opus", "99"), kind="autonomous", context_used=1, context_size=2),
        ]
    )
    found = scrape(ledger, config)
    cost = {"agent": ALICE.agent, "model": "opus", "currency": "USD"}
    assert found.value("acp_proxy_turn_cost_sum", **cost) == Decimal("0.020000001")
    assert found.value("acp_proxy_turn_cost_bucket", **cost, le="0.01") == 0
    assert found.value("acp_proxy_turn_cost_bucket", **cost, le="0.025") == 1
    assert found.value("acp_proxy_turn_duration_seconds_sum", agent=ALICE.agent) == 60
    assert found.value("acp_proxy_turn_duration_seconds_bucket", agent=ALICE.agent, le="60.0") == 1
    used = {"agent": ALICE.agent, "model": "opus"}
    assert found.value("acp_proxy_context_used_ratio_bucket", **used, le="0.75") == 0
    assert found.value("acp_proxy_context_used_ratio_bucket", **used, le="0.9") == 1
    assert found.value("acp_proxy_context_used_ratio_sum", **used) == Decimal("0.8")


def test_counters_stay_as_they_were_seen_while_the_ledger_is_out_of_reach(ledger: BudgetLedger, config: Config) -> None:
    fill(ledger)
    running = exporter(config)
    before, without = Scraped(running.scrape(ledger)), Scraped(running.without_ledger())
    for name in ("acp_proxy_cost_total", "acp_proxy_turn_cost_bucket", "acp_proxy_relay_bytes_total"):
        assert without.samples(name) == before.samples(name)
    assert before.value("acp_proxy_ledger_up") == 1
    assert without.value("acp_proxy_ledger_up") == 0
    assert "acp_proxy_sessions_active" not in without


def test_an_exporter_that_never_saw_the_ledger_says_so(config: Config) -> None:
    found = Scraped(exporter(config).without_ledger())
    assert found.value("acp_proxy_ledger_up") == 0
    assert "acp_proxy_cost_total" not in found


def test_only_families_of_the_program_its_process_and_its_language_are_there(
    ledger: BudgetLedger, config: Config
) -> None:
    fill(ledger)
    assert {name.partition("_")[0] for name in scrape(ledger, config).names} == {"acp", "process", "python"}


def test_two_organisations_in_one_ledger_each_have_their_own(tmp_path: Path, ledger: BudgetLedger) -> None:
    fill(ledger)
    ours = configuration(tmp_path, '[identity]\norganisation = "other"\n')
    with_nothing = scrape(ledger, ours)
    assert with_nothing.total("acp_proxy_turns_total") == 0


def test_a_ledger_can_be_read_by_another_exporter_at_the_same_time(config: Config, ledger: BudgetLedger) -> None:
    fill(ledger)
    second = open_ledger(config.ledger.url, journals=())
    try:
        assert scrape(second, config).by("acp_proxy_cost_total", "model") == scrape(ledger, config).by(
            "acp_proxy_cost_total", "model"
        )
    finally:
        second.close()
