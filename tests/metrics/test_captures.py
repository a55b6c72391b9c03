"""Bills that were kept as metrics: how much of each the ledger had, and until when it was."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger import captures, open_ledger
from acp_proxy.ledger.captures import Capture
from harness.rows import NOON, row
from tests.metrics.scrapes import Scraped, configuration, scrape

RATIO, END = "acp_proxy_capture_ratio", "acp_proxy_capture_end_timestamp_seconds"


def scraped(directory: Path, *given: Capture) -> Scraped:
    config = configuration(directory)
    ledger = open_ledger(config.ledger.url, journals=())
    ledger.append([row()])
    for each in given:
        ledger.tables.write(partial(captures.note, organisation="default", capture=each))
    found = scrape(ledger, config, clock=NOON / 1e9)
    ledger.close()
    return found


def test_a_bill_that_was_kept_has_its_ratios_and_the_end_of_its_days(tmp_path: Path) -> None:
    found = scraped(tmp_path, Capture("openai", NOON - DAY, NOON, NOON, 1000, 875, "USD", 2 * 10**9, 10**9))
    assert found.value(RATIO, provider="openai", of="tokens") == Decimal("0.875")
    assert found.value(RATIO, provider="openai", of="cost") == Decimal("0.5")
    assert found.value(END, provider="openai") == NOON // SECOND


def test_what_a_bill_does_not_say_has_no_ratio(tmp_path: Path) -> None:
    found = scraped(tmp_path, Capture("anthropic", NOON - DAY, NOON, NOON, 0, 0, "USD", 10**9, 10**9))
    assert list(found.samples(RATIO)) == [frozenset({("provider", "anthropic"), ("of", "cost")})]


def test_without_a_bill_there_is_no_series(tmp_path: Path) -> None:
    found = scraped(tmp_path)
    assert RATIO not in found
    assert END not in found
