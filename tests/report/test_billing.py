"""What was used under a plan, called what it is wherever it stands: a list price that nobody is billed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.config import ConfigError, load
from acp_proxy.config.applied import billed_by, seat_of
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.windows import DAY
from acp_proxy.focus.rows import Market
from acp_proxy.focus.rows import rows as focus_rows
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import spreadsheet, tables
from acp_proxy.status import formats
from acp_proxy.status.overview import status
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, BOB, NOON, line, row
from tests.metrics.scrapes import configuration, scrape
from tests.report.house import as_json, found

ON_PLAN, BILLED = replace(ALICE, billing="plan"), replace(ALICE, billing="tokens")


def test_a_table_says_what_of_it_is_a_list_price(ledger: BudgetLedger) -> None:
    report = found(ledger, "day", row(line(cost="1.5"), origin=ON_PLAN), row(line(cost="2"), origin=BILLED))
    assert "list price, not billed: $1.5000 under a plan" in "".join(tables.plain(report))
    whole = as_json(report)
    assert whole["rows"][0]["not_billed"] == whole["total"]["not_billed"] == {"USD": "1.5"}


def test_a_table_of_what_is_billed_says_nothing_of_plans(ledger: BudgetLedger) -> None:
    assert "list price" not in "".join(tables.plain(found(ledger, "day", row(origin=BILLED), row())))


def test_turns_and_sessions_say_it_too(ledger: BudgetLedger) -> None:
    rows = row(line(cost="1"), origin=ON_PLAN), row(line(cost="2"), origin=BILLED)
    (dear, cheap) = as_json(found(ledger, "turn", *rows))["rows"]
    assert [(each["billing"], each.get("not_billed")) for each in (dear, cheap)] == [
        ("tokens", None),
        ("plan", {"USD": "1"}),
    ]
    (session,) = as_json(found(ledger, "session"))["rows"]
    assert session["not_billed"] == {"USD": "1"}


def test_a_spreadsheet_has_a_column_for_it(ledger: BudgetLedger) -> None:
    rows = row(line("opus", "1"), origin=ON_PLAN), row(line("haiku", "2"), origin=BILLED)
    header, *lines = "".join(spreadsheet.as_csv(found(ledger, "model", *rows))).splitlines()
    assert header.endswith(",turns_without_usage,not_billed_USD")
    assert [each.rpartition(",")[2] for each in lines] == ["", "1"]


def test_a_report_by_billing_has_what_is_not_known_by_itself(ledger: BudgetLedger) -> None:
    report = found(ledger, "billing", row(origin=ON_PLAN), row(origin=BILLED), row())
    assert {line.key for line in report.lines} == {"plan", "tokens", "unknown"}


@pytest.mark.parametrize(
    ("origins", "said"),
    [
        ((ON_PLAN,), "$0.01 today (list price, not billed)"),
        ((ON_PLAN, BILLED), "$0.02 today ($0.01 of it at list price, not billed)"),
        ((BILLED,), "$0.01 today · "),
    ],
)
def test_a_status_says_it(tmp_path: Path, ledger: BudgetLedger, origins: tuple[object, ...], said: str) -> None:
    ledger.append([row(origin=origin) for origin in origins])  # type: ignore[arg-type]
    shown = formats.as_line(status(ledger, configuration(tmp_path), ALICE.subject(), UTC_ZONE, NOON))
    assert shown.startswith(said)


def test_metrics_have_it_beside_the_cost(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    ledger = open_ledger(config.ledger.url, journals=())
    ledger.append([row(line(cost="1"), origin=ON_PLAN), row(line(cost="2"), origin=BILLED)])
    shown = scrape(ledger, config, clock=NOON / 1e9)
    ledger.close()
    labels = {"agent": ALICE.agent, "currency": "USD"}
    assert shown.value("acp_proxy_cost_not_billed_total", **labels) == 1
    assert shown.total("acp_proxy_cost_total", **labels) == 3


class TestFocus:
    @staticmethod
    def costs(ledger: BudgetLedger, seat: Money | None) -> list[tuple[object, ...]]:
        market = Market(lambda _: None, lambda *_: None, lambda _: seat)
        rows = focus_rows(ledger, Query(), "default", UTC_ZONE, market)
        columns = ("x_Billing", "BilledCost", "ListCost", "EffectiveCost")
        return sorted(tuple(str(each[name]) for name in columns) for each in rows)

    def test_a_seat_is_shared_in_proportion_to_list_prices(self, ledger: BudgetLedger) -> None:
        ledger.append(
            [
                row(line(cost="30"), origin=ON_PLAN),
                row(line(cost="10"), origin=ON_PLAN, at=NOON + 2 * DAY),
                row(line(cost="5"), origin=replace(BOB, billing="plan")),
                row(line(cost="2"), origin=BILLED),
            ]
        )
        assert self.costs(ledger, Money(20 * NANO, "USD")) == [
            ("plan", "0", "10", "5"),
            ("plan", "0", "30", "15"),
            ("plan", "0", "5", "20"),
            ("tokens", "2", "2", "2"),
        ]
        effective = sum(Decimal(str(each[3])) for each in self.costs(ledger, Money(20 * NANO, "USD"))[:3])
        assert effective == 40  # of two users

    def test_without_a_seats_price_in_this_currency_it_is_not_known(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(cost="30"), origin=ON_PLAN)])
        for seat in (None, Money(20 * NANO, "EUR")):
            assert self.costs(ledger, seat) == [("plan", "0", "30", "None")]


def test_the_configuration_says_it_by_agent_or_by_a_pattern(tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        '[billing."*claude*"]\nby = "plan"\nseat = "100"\n[billing.claude-api]\nby = "tokens"\n'
        '[billing.codex]\nby = "plan"\nseat = "20"\ncurrency = "EUR"\n',
    )
    assert [billed_by(config, each).by for each in ("claude-agent-acp", "claude-api", "goose")] == [
        "plan",
        "tokens",
        None,
    ]
    assert seat_of(config, "claude-agent-acp") == Money(100 * NANO, "USD")
    assert (seat_of(config, "codex"), seat_of(config, "claude-api")) == (Money(20 * NANO, "EUR"), None)


def test_another_word_gets_one_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[billing.codex]\nby = "seat"\n')
    with pytest.raises(ConfigError, match=r"config.toml:2: billing.codex.by: expected plan or tokens"):
        load({"config": str(file)}, {"HOME": str(tmp_path)}, admin_file=file)
