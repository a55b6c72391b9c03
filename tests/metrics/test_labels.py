"""Labels are bounded in number and length, stay as they are, and cost no sum anything."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.config import Config
from acp_proxy.core.money import NANO
from acp_proxy.ledger import Query, Row
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.sums.labels import Label
from acp_proxy.metrics.labels import MOST, Labels
from harness.rows import ALICE, BOB, line, row
from tests.ledger.strategies import any_row
from tests.metrics.scrapes import Scraped, configuration, scrape


def sums_are_those_of_the_ledger(found: Scraped, ledger: BudgetLedger) -> None:
    everything = Query(where=(("organisation", "default"),))
    sums = next(iter(ledger.summed(everything, ())), None)
    costs = {} if sums is None else {cost.currency: Decimal(cost.text) for cost in sums.costs}
    assert found.total("acp_proxy_cost_total") == sum(costs.values())
    assert found.total("acp_proxy_tokens_total") == (sums.usage.total if sums else 0)
    assert found.total("acp_proxy_turns_total") == (sums.rows if sums else 0)


# Examples share the ledger: sums are of all rows so far.
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(any_row, min_size=1, max_size=3), long=st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
)
def test_sums_are_those_of_the_ledger_whatever_rows_say(
    ledger: BudgetLedger, config: Config, rows: list[Row], long: str
) -> None:
    number = next(iter(ledger.summed(Query(), ())), None)
    unique = [
        replace(
            each,
            origin=replace(each.origin, organisation="default"),
            entry=replace(
                each.entry,
                id=f"{number.rows if number else 0}-{index}",
                ended_at=max(-(2**62), min(each.entry.ended_at, 2**62)),
                lines=tuple(replace(one, model=(one.model or "") + long * 2000) for one in each.entry.lines),
            ),
        )
        for index, each in enumerate(rows)
    ]
    ledger.append([each for each in unique if all(-(2**60) < cost.nano < 2**60 for cost in each.entry.costs)])
    sums_are_those_of_the_ledger(scrape(ledger, config), ledger)


def test_ten_thousand_models_are_two_hundred_and_other(ledger: BudgetLedger, config: Config) -> None:
    ledger.append([row(line(f"model-{number}", "0.000000001"), id=f"row-{number}") for number in range(10_000)])
    found = scrape(ledger, config)
    models = found.values_of("model")
    assert len(models) == MOST["model"] + 1
    assert "other" in models
    assert found.value("acp_proxy_label_overflow_total", label="model") == 10_000 - MOST["model"]
    assert found.total("acp_proxy_cost_total", model="other") == Decimal(10_000 - MOST["model"]) / NANO
    sums_are_those_of_the_ledger(found, ledger)


def test_a_name_of_ten_kilobytes_is_other(ledger: BudgetLedger, config: Config) -> None:
    ledger.append(
        [row(line("x" * 10_000)), row(origin=replace(ALICE, agent="y" * 201, team="z" * 201, client="c" * 999))]
    )
    found = scrape(ledger, config)
    assert max(len(value) for name in ("agent", "model", "team", "client") for value in found.values_of(name)) <= 200
    assert found.total("acp_proxy_cost_total", model="other") == Decimal("0.01")
    for label in ("agent", "model", "team", "client"):
        assert found.value("acp_proxy_label_overflow_total", label=label) == 1
    sums_are_those_of_the_ledger(found, ledger)


def test_names_that_mean_something_to_the_format_stay_names(ledger: BudgetLedger, config: Config) -> None:
    names = [
        'a"} 1\nacp_proxy_cost_total{x="',
        "back\\slash",
        "\\",
        "line\nbreak",
        "carriage\rreturn",
        "tab\t",
        "\u2028",
        "{}",
    ]
    ledger.append([row(line(name), origin=replace(ALICE, team=name)) for name in names])
    found = scrape(ledger, config)
    assert found.by("acp_proxy_turns_total", "team") == {(name,): 1 for name in names}
    assert found.by("acp_proxy_cost_total", "model") == {(name,): Decimal("0.01") for name in names}


def test_a_value_without_a_name_is_called_as_reports_call_it(ledger: BudgetLedger, config: Config) -> None:
    ledger.append([row(line(None), origin=replace(BOB, client=None))])
    found = scrape(ledger, config)
    assert found.by("acp_proxy_cost_total", "model", "team") == {("unknown", "none"): Decimal("0.01")}
    assert found.value("acp_proxy_sessions_total", agent=BOB.agent, client="unknown") == 1


def test_users_and_projects_are_told_apart_only_where_that_is_wanted(tmp_path: Path, ledger: BudgetLedger) -> None:
    ledger.append([row(), row(origin=BOB)])
    assert not {"user", "project"} & _label_names(scrape(ledger, configuration(tmp_path)))
    wanted = configuration(tmp_path, "[metrics]\nuser_label = true\nproject_label = true\n")
    found = scrape(ledger, wanted)
    assert found.by("acp_proxy_cost_total", "user", "project") == {
        ("alice", "web"): Decimal("0.01"),
        ("bob", "infra"): Decimal("0.01"),
    }
    assert found.by("acp_proxy_turns_total", "user") == {("alice",): 1, ("bob",): 1}
    sums_are_those_of_the_ledger(found, ledger)


def test_who_came_first_is_shown_for_ever(ledger: BudgetLedger, config: Config) -> None:
    known = [Label("team", f"team-{number}", number) for number in range(1, 1000)]
    first, later = Labels(known[:50]), Labels(known)
    for label in known[:50]:
        assert first.of("team", label.value) == later.of("team", label.value) == label.value
    assert later.of("team", "team-101") == "other"
    assert (first.overflow["team"], later.overflow["team"]) == (0, 999 - MOST["team"])


def test_nothing_that_only_grows_falls_when_an_exporter_starts_anew(ledger: BudgetLedger, config: Config) -> None:
    before: dict[tuple[str, frozenset[tuple[str, str]]], Decimal] = {}
    for step in range(3):
        rows = [row(line(f"model-{step}-{number}"), session=f"s{number % 7}") for number in range(110)]
        ledger.append(rows)
        after = scrape(ledger, config)
        counters = {
            (name, labels): value
            for name in after.names
            if name.startswith("acp_proxy_") and "op_seconds" not in name and "active" not in name
            for labels, value in after.samples(name).items()
        }
        assert all(counters[key] >= value for key, value in before.items())
        before = counters


def _label_names(found: Scraped) -> set[str]:
    return {name for family in found.names for labels in found.samples(family) for name, _ in labels}
