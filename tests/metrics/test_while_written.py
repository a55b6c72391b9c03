"""Scrapes while proxies write, and what is not in the ledger yet."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.writer import open_journal
from harness.rows import row
from tests.ledger.processes import Process
from tests.ledger.warned import Warnings
from tests.metrics.scrapes import Scraped, exporter, scrape

WRITERS, ROWS = 8, 25


def test_nothing_falls_while_eight_processes_write_and_nothing_is_missed(ledger: BudgetLedger, config: Config) -> None:
    writers = [Process("append", config.ledger.url, f"writer-{number}", str(ROWS)) for number in range(WRITERS)]
    for writer in writers:
        writer.until_ready()
    for writer in writers:
        writer.go_on()
    turns = Decimal()
    with closing(open_ledger(config.ledger.url, journals=())) as reader:
        while turns < WRITERS * ROWS:
            found = scrape(reader, config)
            assert found.total("acp_proxy_turns_total") >= turns
            turns = found.total("acp_proxy_turns_total")
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    found = scrape(ledger, config)
    assert found.total("acp_proxy_turns_total") == WRITERS * ROWS
    assert found.total("acp_proxy_cost_total") == WRITERS * ROWS * Decimal("0.01")
    assert found.total("acp_proxy_turn_duration_seconds_count") == WRITERS * ROWS
    assert found.total("acp_proxy_sessions_total") == 1


def test_rows_that_only_a_journal_has_are_pending(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal = open_journal([directory], config.ledger.url, Warnings())
    slots = [journal.write(row()) for _ in range(3)]
    running = exporter(config, journals=[directory])
    assert Scraped(running.scrape(ledger)).value("acp_proxy_ledger_pending_entries") == 3
    assert slots[0] is not None
    journal.done(slots[0])
    assert Scraped(running.scrape(ledger)).value("acp_proxy_ledger_pending_entries") == 2
    journal.close()


def test_rows_for_another_ledger_are_not_pending(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal = open_journal([directory], f"sqlite:///{tmp_path}/other.db", Warnings())
    journal.write(row())
    running = exporter(config, journals=[directory])
    assert Scraped(running.scrape(ledger)).value("acp_proxy_ledger_pending_entries") == 0
    journal.close()
