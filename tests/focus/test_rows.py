"""Chargeback rows: what they add up to, what FOCUS asks of them, and what is not known."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.focus.columns import columns_of
from acp_proxy.focus.formats import as_csv, as_json
from acp_proxy.focus.rows import Market
from acp_proxy.focus.rows import rows as focus_rows
from acp_proxy.ledger import Ledger, Query, Row, open_ledger
from acp_proxy.report import report
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import times
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row

HOUR = 60 * MINUTE
DAY = 24 * HOUR
BERLIN = times.zone("Europe/Berlin")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def rows(ledger: Ledger, *given: Row, zone: times.Zone = times.UTC_ZONE) -> list[dict[str, Any]]:
    ledger.append(given)
    return list(focus_rows(ledger, Query(), "default", zone, MARKET))


def _seller(model: str) -> str | None:
    return "anthropic" if "claude" in model else None


MARKET = Market(_seller, lambda model, usage, at: None)


def test_a_row_is_a_day_of_one_user_agent_and_model(ledger: Ledger) -> None:
    spent = line("claude-sonnet-5", "0.05", input=100, output=20)
    given = (row(spent), row(spent, at=NOON + HOUR), row(spent, at=NOON + DAY), row(spent, origin=BOB))
    found = rows(ledger, *given)
    assert [(one["ChargePeriodStart"], one["Tags"]["user"], one["BilledCost"]) for one in found] == [
        ("2026-11-21T00:00:00Z", "alice", "0.1"),
        ("2026-11-21T00:00:00Z", "bob", "0.05"),
        ("2026-11-22T00:00:00Z", "alice", "0.05"),
    ]
    assert found[0]["ConsumedQuantity"] == 240
    assert found[0]["x_Turns"] == 2


def test_what_focus_wants_in_every_row_is_there(ledger: Ledger) -> None:
    (only,) = rows(ledger, row(line("claude-sonnet-5")))
    assert only["BillingAccountId"] == "default"
    assert only["BillingCurrency"] == "USD"
    assert (only["ChargeCategory"], only["ChargeFrequency"]) == ("Usage", "Usage-Based")
    assert (only["ServiceCategory"], only["ServiceSubcategory"]) == ("AI and Machine Learning", "Generative AI")
    assert only["ProviderName"] == "anthropic"
    assert (only["BillingPeriodStart"], only["BillingPeriodEnd"]) == ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z")
    assert only["BilledCost"] == only["EffectiveCost"] == only["ListCost"] == only["ContractedCost"]


def test_a_row_says_who_used_what_and_how_its_figures_are_known(ledger: Ledger) -> None:
    spent = line("opus", "0.05", input=1, cached_read=2, cached_write=4, output=8, thought=16)
    (only,) = rows(ledger, row(spent, kind="side", usage_source="estimated", cost_source="agent"))
    assert only["Tags"] == {"user": "alice", "team": "core", "project": "web", "agent": "claude-agent-acp"}
    assert (only["BillingAccountName"], only["BillingAccountType"]) == ("default", "Organisation")
    assert (only["SubAccountName"], only["SubAccountType"]) == ("core", "Team")
    assert only["ChargeDescription"] == "opus in claude-agent-acp"
    assert [value for name, value in only.items() if name.startswith("x_Tokens")] == [1, 2, 4, 8, 16]
    assert (only["ConsumedQuantity"], only["ConsumedUnit"]) == (31, "Tokens")
    sources = ("x_Kind", "x_UsageSource", "x_CostSource", "x_CostAtLeast")
    assert [only[name] for name in sources] == ["side", "estimated", "agent", False]


def test_who_is_in_no_team_and_a_model_without_a_name_have_no_account_and_no_tag_of_theirs(ledger: Ledger) -> None:
    (only,) = rows(ledger, row(line(None), origin=BOB))
    assert only["Tags"] == {"user": "bob", "project": "infra", "agent": "claude-agent-acp"}
    assert (only["SubAccountId"], only["SubAccountName"], only["SubAccountType"]) == (None, None, None)
    assert (only["SkuId"], only["ChargeDescription"]) == (None, "unknown model in claude-agent-acp")


def test_a_model_of_which_nobody_is_known_to_sell_it_is_sold_by_the_agent(ledger: Ledger) -> None:
    (only,) = rows(ledger, row(line("mystery")))
    assert only["ProviderName"] == only["ServiceName"] == "claude-agent-acp"


def test_days_and_months_are_those_of_the_time_zone(ledger: Ledger) -> None:
    change = times.parse("2026-10-24T23:30:00Z", times.UTC_ZONE, 0)
    (only,) = rows(ledger, row(at=change), zone=BERLIN)
    assert (only["ChargePeriodStart"], only["ChargePeriodEnd"]) == ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
    assert (only["BillingPeriodStart"], only["BillingPeriodEnd"]) == ("2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z")


def test_an_unknown_cost_is_no_zero(ledger: Ledger) -> None:
    (only,) = rows(ledger, row(line("mystery", None)))
    assert (only["BilledCost"], only["BillingCurrency"], only["x_CostAtLeast"]) == (None, None, True)
    (cells,) = csv.DictReader(io.StringIO("".join(as_csv([only]))))
    assert (cells["BilledCost"], cells["x_CostAtLeast"]) == ("", "true")


def test_a_day_of_which_a_part_has_no_known_cost_is_a_lower_bound(ledger: Ledger) -> None:
    """Of a day that clocks change in the ledger is asked in two parts."""
    early, late = (times.parse(f"2026-10-25T{clock}Z", times.UTC_ZONE, 0) for clock in ("00:30:00", "12:00:00"))
    (only,) = rows(ledger, row(line("m", None), at=early), row(line("m", "1"), at=late), zone=BERLIN)
    assert (only["BilledCost"], only["x_Turns"], only["x_CostAtLeast"]) == ("1", 2, True)


def test_currencies_have_a_row_each_and_tokens_are_counted_once(ledger: Ledger) -> None:
    two = row(line("m", "2", "credits", input=5), line("m", "1", input=10))
    found = rows(ledger, two)
    assert [(one["BillingCurrency"], one["BilledCost"]) for one in found] == [("USD", "1"), ("credits", "2")]
    assert sum(one["ConsumedQuantity"] for one in found) == 15
    assert found[1]["x_Turns"] == 0


MONEY = st.none() | st.builds(Money, st.integers(0, 10**12), st.sampled_from(["USD", "EUR", "credits"]))
LINES = st.builds(UsageLine, st.sampled_from(["a", "b", None]), st.builds(Usage, *[st.integers(0, 10**6)] * 5), MONEY)
ROWS = st.lists(
    st.builds(
        lambda lines, at, team: row(*lines, at=NOON + at * HOUR, origin=replace(ALICE, team=team)),
        st.lists(LINES, min_size=1, max_size=3),
        st.integers(-2000, 2000),
        st.sampled_from([None, "core"]),
    ),
    max_size=15,
)


@settings(max_examples=25, deadline=None)
@given(ROWS)
def test_rows_add_up_to_the_report(tmp_path_factory: pytest.TempPathFactory, given_rows: list[Row]) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path_factory.mktemp('focus')}/ledger.db", journals=())
    found = rows(ledger, *given_rows, zone=BERLIN)
    total = report(ledger, "day", Query(), BERLIN).total
    costs: dict[str, Decimal] = {}
    for one in found:
        if one["BilledCost"] is not None:
            costs[one["BillingCurrency"]] = costs.get(one["BillingCurrency"], Decimal(0)) + Decimal(one["BilledCost"])
    assert costs == {cost.currency: Decimal(cost.text) for cost in total.costs}
    assert sum(one["ConsumedQuantity"] for one in found) == total.usage.total
    ledger.close()


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo", "Asia/Beirut")
STARTS = st.one_of(
    st.integers(-(3 * 10**9), 3 * 10**9),  # seconds
    st.integers(-7200, 7200).map(lambda by: 1_162_090_860 + by),  # St. John's sets its clocks back after midnight
    st.integers(-7200, 7200).map(lambda by: 1_325_239_200 + by),  # Apia leaves a day out
    st.integers(-7200, 7200).map(lambda by: 1_774_735_200 + by),  # Beirut has no midnight
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(STARTS, st.sampled_from(["a", "b"])), max_size=12), st.sampled_from(ZONES))
def test_each_row_is_in_the_day_that_clocks_showed(
    tmp_path_factory: pytest.TempPathFactory, given_starts: list[tuple[int, str]], name: str
) -> None:
    zone = times.zone(name)
    ledger = open_ledger(f"sqlite:///{tmp_path_factory.mktemp('focus')}/ledger.db", journals=())
    found = rows(ledger, *(row(line(model), at=at * 10**9) for at, model in given_starts), zone=zone)
    ledger.close()
    shown = Counter((zone.local(at * 10**9).date(), model) for at, model in given_starts)
    days = [(zone.local(times.parse(one["ChargePeriodStart"], zone, 0)).date(), one["SkuId"]) for one in found]
    assert days == sorted(shown)
    assert [one["x_Turns"] for one in found] == [shown[day] for day in days]


def test_a_day_that_clocks_leave_and_come_back_to_is_one(ledger: Ledger) -> None:
    """St. John's, a minute after midnight: what comes a week after the first row must not cut that day in two."""
    starts = ("2006-10-22T12:00:00Z", "2006-10-29T02:20:00Z", "2006-10-29T02:30:30Z", "2006-10-29T02:50:00Z")
    given = [row(at=times.parse(text, times.UTC_ZONE, 0)) for text in starts]
    found = rows(ledger, *given, zone=times.zone("America/St_Johns"))
    assert [one["x_Turns"] for one in found] == [1, 2, 1]


def test_a_turn_whose_clock_was_set_back_by_weeks_is_in_the_day_of_its_start(ledger: Ledger) -> None:
    late = row(at=NOON + 30 * DAY, took=-30 * DAY)
    assert [one["ChargePeriodStart"] for one in rows(ledger, row(), late)] == [
        "2026-11-21T00:00:00Z",
        "2026-12-21T00:00:00Z",
    ]


def test_a_spreadsheet_gets_no_formula_and_a_terminal_no_escape(ledger: Ledger) -> None:
    evil = row(
        line("=cmd|' /C calc'!A0", "-1"),
        origin=replace(ALICE, agent="@scope/a\x1b[31m", team="-1+1", project="\u202eshop"),
    )
    text = "".join(as_csv(rows(ledger, evil)))
    (cells,) = csv.DictReader(io.StringIO(text))
    assert cells["SkuId"].startswith("'=")
    assert (cells["ServiceName"], cells["BilledCost"]) == ("@scope/a", "-1")  # to be joined with what others know
    assert cells["SubAccountId"] == "'-1+1"
    assert "\x1b" not in text
    assert "\u202e" not in text
    tags = json.loads(cells["Tags"])
    assert (tags["team"], tags["project"]) == ("-1+1", "\u202eshop")


def test_json_is_the_same_with_exact_costs(ledger: Ledger) -> None:
    said = json.loads("".join(as_json(rows(ledger, row(line(cost="0.000000001"))))))
    assert (said["focus"], said["rows"][0]["BilledCost"]) == ("1.2", "0.000000001")


def test_json_in_pieces_is_that_of_the_whole(ledger: Ledger) -> None:
    for found in ([], rows(ledger, row(line())), rows(ledger, row(line()), row(line("m", None), origin=BOB))):
        assert "".join(as_json(found)) == as_json_text({"focus": "1.2", "rows": found})


def test_what_is_written_in_pieces_is_there_once() -> None:
    found = [{**dict.fromkeys(columns_of("1.2")), "x_Turns": number} for number in range(450)]
    cells = list(csv.DictReader(io.StringIO("".join(as_csv(found)))))
    assert [int(one["x_Turns"]) for one in cells] == list(range(450))


def test_weeks_are_read_as_they_are_taken(ledger: Ledger) -> None:
    ledger.append([row(at=NOON + number * DAY) for number in (0, 300, 600)])
    found = focus_rows(ledger, Query(), "default", times.UTC_ZONE, MARKET)
    assert next(found)["ChargePeriodStart"] == "2026-11-21T00:00:00Z"
    ledger.append([row(at=NOON + 300 * DAY)])  # by when another would have read all of them
    assert [one["x_Turns"] for one in found] == [2, 1]


def test_the_command_writes_csv_or_json_of_the_wanted_days(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = open_ledger(url, journals=())
    ledger.append([row(line("claude-sonnet-5")), row(line("claude-sonnet-5"), at=NOON + 40 * DAY)])
    ledger.close()
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TZ": "UTC"}
    command = [sys.executable, "-m", "acp_proxy", "export", "--ledger", url]

    def said(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], env=environ, capture_output=True, text=True, check=False)

    (only,) = csv.DictReader(io.StringIO(said("--focus", "--until", "2026-12-01").stdout))
    assert (only["ProviderName"], only["BilledCost"]) == ("anthropic", "0.01")
    assert len(json.loads(said("--focus", "--json").stdout)["rows"]) == 2
    assert said("--focus", "--since", "2027-06-01").stdout == ",".join(columns_of("1.2")) + "\n"
    assert "ServiceProviderName" in json.loads(said("--focus", "1.4", "--json").stdout)["rows"][0]
    assert said("--focus", "2.0").stderr == "acp-proxy: --focus: expected 1.2, 1.3 or 1.4, not '2.0'\n"
    mistake = said()
    assert (mistake.returncode, mistake.stdout) == (2, "")
    assert "--focus" in mistake.stderr
    assert mistake.stderr.count("\n") == 1
