"""What went around a relay as a metric: of the last 30 days, by agent, and only where something was imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.catalog import Catalog
from acp_proxy.core.entry import IMPORT
from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics import Exporter
from harness.rows import ALICE, NOON, line, row
from tests.metrics.scrapes import Scraped, configuration, scrape

RATIO = "acp_proxy_coverage_ratio"
CLAUDE = replace(ALICE, agent="@agentclientprotocol/claude-agent-acp")
BESIDE = replace(ALICE, agent="claude-code", client=IMPORT)
OTHER = replace(ALICE, agent="other-agent")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    with closing(open_ledger(configuration(tmp_path).ledger.url, journals=())) as ledger:
        yield ledger


def relayed(tokens: int, at: int = NOON) -> Row:
    return row(line(input=tokens), origin=CLAUDE, at=at)


def imported(tokens: int, at: int = NOON) -> Row:
    return row(line(input=tokens), origin=BESIDE, at=at, kind="call")


def test_an_agent_has_one_ratio_under_the_name_that_an_import_gives_it(ledger: BudgetLedger, tmp_path: Path) -> None:
    ledger.append([relayed(300), imported(100)])
    found = scrape(ledger, configuration(tmp_path), clock=NOON / SECOND)
    assert found.samples(RATIO) == {frozenset({("agent", "claude-code")}): Decimal("0.75")}


def test_an_agent_of_which_nothing_was_imported_has_none(ledger: BudgetLedger, tmp_path: Path) -> None:
    ledger.append([row(line(input=500), origin=OTHER), imported(100)])
    found = scrape(ledger, configuration(tmp_path), clock=NOON / SECOND)
    assert found.samples(RATIO) == {frozenset({("agent", "claude-code")}): Decimal(0)}


def test_without_an_import_there_is_no_series(ledger: BudgetLedger, tmp_path: Path) -> None:
    ledger.append([relayed(300)])
    assert RATIO not in scrape(ledger, configuration(tmp_path), clock=NOON / SECOND)


def test_it_is_of_the_last_thirty_days(ledger: BudgetLedger, tmp_path: Path) -> None:
    ledger.append([relayed(300), imported(100), imported(900, NOON - 31 * DAY), relayed(5000, NOON - 31 * DAY)])
    config = configuration(tmp_path)
    assert scrape(ledger, config, clock=NOON / SECOND).value(RATIO, agent="claude-code") == Decimal("0.75")
    later = NOON + 31 * DAY
    assert RATIO not in scrape(ledger, config, clock=later / SECOND), "nothing was imported of these days"


def test_rows_are_read_again_after_ten_minutes(ledger: BudgetLedger, tmp_path: Path) -> None:
    now = NOON // SECOND
    clock = iter([now, now + 599, now + 600])
    scraping = Exporter(configuration(tmp_path), Catalog(), clock=lambda: next(clock), journals=())
    ledger.append([relayed(300), imported(100)])
    ratios = []
    for _ in range(3):
        ratios.append(Scraped(scraping.scrape(ledger)).value(RATIO, agent="claude-code"))
        ledger.append([imported(100)])
    assert ratios == [Decimal("0.75"), Decimal("0.75"), Decimal("0.5")]
