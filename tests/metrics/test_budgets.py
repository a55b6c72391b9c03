"""Budgets as metrics are budgets as `acp-proxy budget list` prints them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC
from decimal import Decimal
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.core.budget import account_of
from acp_proxy.core.money import NANO
from acp_proxy.core.scope import Subject
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger, Grant
from harness.rows import ALICE, BOB, NOON, line, row
from tests.metrics.scrapes import Scraped, configuration, scrape

BUDGETS = """
[[budget]]
name = "everybody"
window = "total"
limit = { amount = "5", currency = "USD" }

[[budget]]
name = "developer"
per = "user"
window = "total"
limit = { amount = "1.5", currency = "USD" }

[[budget]]
name = "tokens"
window = "total"
limit = { tokens = 1000 }
"""


def listed(config: Config, home: Path) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "acp_proxy", "budget", "list", "--json", "--config", str(config.files[0])]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "alice"}
    done = subprocess.run([*command, "--ledger", config.ledger.url], env=environ, capture_output=True, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout)["budgets"]
    return found


def fill(ledger: BudgetLedger) -> None:
    ledger.append([row(line("opus", "1.25", input=70)), row(line("opus", "0.000000001"), origin=BOB)])


def test_what_is_spent_equals_the_list_and_of_each_ones_the_least_is_left(tmp_path: Path) -> None:
    config = configuration(tmp_path, BUDGETS)
    ledger = open_ledger(config.ledger.url, journals=())
    fill(ledger)
    ledger.grant(Grant("g", "default", "user", "everybody", None, 2 * NANO, "USD", 0, 2**62, "carol", "a deadline"))
    found = scrape(ledger, config, clock=NOON / 1e9)
    ledger.close()
    rows = listed(config, tmp_path)
    assert {each["name"] for each in rows} == {"everybody", "developer", "tokens"}
    for name in ("everybody", "developer", "tokens"):
        least = min((each for each in rows if each["name"] == name), key=lambda each: Decimal(each["left"]))
        for figure in ("limit", "granted", "spent", "held"):
            shown = found.value(f"acp_proxy_budget_{figure}", budget=name, unit=least["unit"])
            assert shown == Decimal(least[figure])
    assert found.value("acp_proxy_budget_spent", budget="developer", unit="USD") == Decimal("1.25")
    assert found.value("acp_proxy_budget_granted", budget="everybody", unit="USD") == 2
    assert found.value("acp_proxy_budget_granted", budget="tokens", unit="tokens") == 0


def test_where_there_is_no_limit_there_is_no_series(ledger: BudgetLedger, config: Config) -> None:
    fill(ledger)
    found = scrape(ledger, config)
    for family in ("info", "limit", "granted", "spent", "held", "reset_timestamp_seconds"):
        assert f"acp_proxy_budget_{family}" not in found


def test_what_a_budget_does_where_it_is_spent_is_told(tmp_path: Path) -> None:
    tried = '[[budget]]\nname = "tried"\nwindow = "rolling:24h"\nmode = "shadow"\nlimit = { turns = 1 }\n'
    config = configuration(tmp_path, BUDGETS + tried)
    ledger = open_ledger(config.ledger.url, journals=())
    fill(ledger)
    found = scrape(ledger, config, clock=NOON / 1e9)
    ledger.close()
    assert found.by("acp_proxy_budget_info", "budget", "mode", "window") == {
        ("everybody", "enforce", "total"): 1,
        ("developer", "enforce", "total"): 1,
        ("tokens", "enforce", "total"): 1,
        ("tried", "shadow", "rolling:24h"): 1,
    }


def test_a_window_that_ends_says_when(tmp_path: Path) -> None:
    day = BUDGETS.replace('window = "total"', 'window = "day"', 1)
    config = configuration(tmp_path, day)
    ledger = open_ledger(config.ledger.url, journals=())
    found = scrape(ledger, config, clock=NOON / 1e9)
    ledger.close()
    reset = found.samples("acp_proxy_budget_reset_timestamp_seconds")
    assert reset == {frozenset({("budget", "everybody")}): NOON // 10**9 + 12 * 3600}


def test_decisions_start_at_0_and_those_of_others_are_other(tmp_path: Path) -> None:
    config = configuration(tmp_path, BUDGETS)
    ledger = open_ledger(config.ledger.url, journals=())
    subject = Subject("default", ALICE.user, ALICE.team, ALICE.project, ALICE.host, ALICE.agent)
    budget = config.budgets[0]
    account = account_of(budget, subject, NOON, UTC, "t")
    before = scrape(ledger, config)
    ledger.count_decisions([(account, "deny"), (account, "deny"), (account, "fail_open")])
    after = scrape(ledger, config)
    elsewhere = scrape(ledger, configuration(tmp_path))
    ledger.close()
    assert before.value("acp_proxy_budget_decisions_total", budget="everybody", decision="deny") == 0
    assert before.value("acp_proxy_budget_overshoot_total", budget="everybody", unit="USD") == 0
    assert after.by("acp_proxy_budget_decisions_total", "budget", "decision") == {
        ("everybody", "deny"): 2,
        ("everybody", "fail_open"): 1,
    }
    assert elsewhere.total("acp_proxy_budget_decisions_total", budget="other") == 3


def test_channels_start_at_0(tmp_path: Path) -> None:
    config = configuration(tmp_path, '[[notify]]\nname = "leads"\nurl = "https://example.com/x"\nformat = "json"\n')
    ledger = open_ledger(config.ledger.url, journals=())
    found: Scraped = scrape(ledger, config)
    ledger.close()
    for result in ("sent", "retried", "failed"):
        assert found.value("acp_proxy_notifications_total", channel="leads", result=result) == 0
