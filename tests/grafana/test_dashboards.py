"""What can be said of the dashboards without a server: they are as the code makes them, and Grafana knows every key."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from promql_parser import AggregateExpr, Expr, MatchOp, VectorSelector

from acp_proxy.text.figures import context_level
from grafana.build.metrics import LABELS, family, labels
from grafana.build.names import UIDS
from tests.grafana import strict
from tests.grafana.dashboards import (
    ALL_TARGETS,
    DIRECTORY,
    PATHS,
    Json,
    Target,
    chosen,
    filled,
    load,
    panels,
    variables,
)

DAY, HOUR = 86400, 3600
OF_PROMETHEUS = {"scrape_duration_seconds", "process_resident_memory_bytes"}
OF_TARGETS = {"job", "instance", "le"}

each_dashboard = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def test_what_is_committed_is_what_the_code_makes() -> None:
    command = [sys.executable, "-m", "grafana.build", "--check"]
    done = subprocess.run(command, cwd=DIRECTORY.parent.parent, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_there_is_a_file_for_each_dashboard_under_its_id() -> None:
    assert {path.stem for path in PATHS} == set(UIDS.values())
    assert [load(path)["uid"] for path in PATHS] == [path.stem for path in PATHS]


@each_dashboard
def test_grafana_knows_every_key_and_every_value(path: Path) -> None:
    assert strict.complaints(load(path)) == []


def test_a_misspelled_key_is_noticed_wherever_it_is() -> None:
    whole = load(PATHS[0])
    for place in _places(whole):
        broken = deepcopy(whole)
        place(broken)["misspeled"] = 1
        assert strict.complaints(broken) != []


def _places(whole: Json) -> Iterator[Any]:
    first = whole["panels"].index(panels(whole)[0])
    yield lambda each: each
    yield lambda each: each["panels"][first]
    yield lambda each: each["panels"][first]["options"]
    yield lambda each: each["panels"][first]["fieldConfig"]["defaults"]
    yield lambda each: each["templating"]["list"][0]


@each_dashboard
def test_panels_lie_side_by_side_and_not_on_each_other(path: Path) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in load(path)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


@each_dashboard
def test_every_panel_has_a_number_and_a_name_of_its_own_and_says_what_it_counts(path: Path) -> None:
    dashboard = load(path)
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        assert panel["description"].endswith(".")


@each_dashboard
def test_the_data_source_is_chosen_by_the_reader(path: Path) -> None:
    dashboard = load(path)
    assert variables(dashboard)["datasource"]["query"] == "prometheus"
    asked = [panel["datasource"] for panel in panels(dashboard)]
    asked += [variable["datasource"] for variable in variables(dashboard).values() if variable["type"] == "query"]
    assert asked
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in asked)


@each_dashboard
def test_team_agent_model_and_user_can_be_chosen_several_at_once_or_all(path: Path) -> None:
    for name in ("team", "agent", "model", "user"):
        variable = variables(load(path))[name]
        assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".*")


@each_dashboard
def test_links_lead_to_the_other_dashboards_and_take_the_choice_along(path: Path) -> None:
    dashboard = load(path)
    links = dashboard["links"]
    assert {link["url"] for link in links} == {f"/d/{uid}" for uid in UIDS.values() if uid != dashboard["uid"]}
    assert all(link["includeVars"] for link in links)


@each_dashboard
def test_links_stand_at_the_top_and_not_in_a_menu(path: Path) -> None:
    assert not any("placement" in link for link in load(path)["links"])


@each_dashboard
def test_links_of_cells_lead_to_variables_that_the_other_dashboard_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for uid, name in re.findall(r"/d/([\w-]+)\?[^\"]*var-(\w+)=", text):
        assert name in variables(load(path.with_name(f"{uid}.json")))


@each_dashboard
def test_links_of_cells_keep_what_else_is_chosen(path: Path) -> None:
    for url in re.findall(r"/d/[\w-]+\?[^\"]*", path.read_text(encoding="utf-8")):
        kept = re.findall(r"\$\{(\w+):queryparam\}|var-(\w+)=", url)
        assert sorted(name for names in kept for name in names if name) == [
            "agent",
            "currency",
            "datasource",
            "model",
            "team",
            "user",
        ]


@each_dashboard
def test_links_of_cells_take_every_name_along_as_it_is(path: Path) -> None:
    """Otherwise Grafana encodes for a whole address, and a team `R&D` would be read as `R`."""
    for url in re.findall(r"/d/[\w-]+\?[^\"]*", path.read_text(encoding="utf-8")):
        assert re.findall(r"\{__value[^}]*\}", url) == ["{__value.raw:percentencode}"]


@each_dashboard
def test_days_are_those_of_the_time_zone_that_readers_set_in_grafana(path: Path) -> None:
    assert load(path)["timezone"] == ""


@each_dashboard
def test_cells_of_heatmaps_look_back_and_bars_ahead_as_grafana_draws_them(path: Path) -> None:
    for panel in panels(load(path)):
        ahead = "offset -$__interval" in panel["targets"][0]["expr"]
        bars = panel["fieldConfig"]["defaults"].get("custom", {}).get("drawStyle") == "bars"
        assert ahead == bars, panel["title"]


@each_dashboard
def test_rates_span_two_scrapes_a_minute_apart_also_where_grafana_expects_four_a_minute(path: Path) -> None:
    for panel in panels(load(path)):
        if any("$__rate_interval" in target["expr"] for target in panel["targets"]):
            assert panel["interval"] == "2m", panel["title"]


@each_dashboard
def test_agents_are_named_without_the_scope_of_their_package(path: Path) -> None:
    for panel in panels(load(path)):
        named = [target.get("legendFormat", "").startswith("{{agent}}") for target in panel["targets"]]
        every = [each["options"] for each in panel.get("transformations", []) if each["id"] == "renameByRegex"]
        renamed = [options for options in every if "@" in options["regex"]]
        assert bool(renamed) == any(named), panel["title"]
        for options in renamed:
            regex = options["regex"].removeprefix("/").removesuffix("/")
            assert re.sub(regex, options["renamePattern"], "@npm/agent-acp USD") == "agent-acp USD"


@each_dashboard
def test_axes_of_shares_reach_100_percent_and_not_more_than_there_is(path: Path) -> None:
    for panel in panels(load(path)):
        config = panel["fieldConfig"]["defaults"]
        if (panel["type"], config["unit"]) == ("timeseries", "percentunit"):
            assert config["custom"]["axisSoftMax"] == 1, panel["title"]


@each_dashboard
def test_rankings_have_an_order(path: Path) -> None:
    for panel in panels(load(path)):
        if panel["type"] == "bargauge":
            assert panel["targets"][0]["expr"].startswith("sort_desc("), panel["title"]


@each_dashboard
def test_no_team_is_called_none(path: Path) -> None:
    for panel in panels(load(path)):
        legends = [target.get("legendFormat", "") for target in panel.get("targets", ())]
        if any(legend.startswith("{{team}}") for legend in legends):
            renamed = [each["options"] for each in panel["transformations"] if each["id"] == "renameByRegex"]
            assert {"regex": "/^none( |$)/", "renamePattern": "no team$1"} in renamed, panel["title"]
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            if override["matcher"]["options"] == "Team":
                shown = {each["id"]: each["value"] for each in override["properties"]}
                assert shown["mappings"][0]["options"]["none"]["text"] == "no team"


@pytest.mark.parametrize("title", ["Context by agent, p90", "Context over time, p90"])
def test_a_context_has_the_colour_that_it_has_in_reports(title: str) -> None:
    [panel] = [panel for path in PATHS for panel in panels(load(path)) if panel["title"] == title]
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    for mille in (740, 750, 890, 900, 940, 950, 951):
        colour = [step["color"] for step in steps if step["value"] is None or step["value"] <= mille / 1000][-1]
        assert colour.replace("green", "normal") == context_level(mille, 1000), mille


@each_dashboard
def test_dollars_are_only_written_where_a_legend_or_a_filter_says_so(path: Path) -> None:
    for panel in panels(load(path)):
        config = panel["fieldConfig"]
        assert config["defaults"]["unit"] != "currencyUSD"
        for override in config.get("overrides", []):
            if {"id": "unit", "value": "currencyUSD"} in override["properties"]:
                assert override["matcher"] == {"id": "byRegexp", "options": "/USD$/"}


@each_dashboard
def test_figures_of_money_name_their_currency_also_where_there_is_only_one(path: Path) -> None:
    for panel in panels(load(path)):
        if panel["type"] == "stat":
            money = "currencyUSD" in str(panel["fieldConfig"]["overrides"])
            assert (panel["options"]["textMode"] == "value_and_name") == money, panel["title"]


def test_a_query_only_asks_for_what_the_exporter_has() -> None:
    for target in ALL_TARGETS:
        for selector in _selectors(_parsed(target)):
            name = selector.name or ""
            if name not in OF_PROMETHEUS:
                known = {*labels(family(name)), *OF_TARGETS}
                assert {matcher.name for matcher in selector.matchers.matchers} <= known, target.name


@each_dashboard
def test_one_currency_is_chosen_and_dollars_at_first(path: Path) -> None:
    variable = variables(load(path))["currency"]
    assert (variable["multi"], variable["includeAll"], variable["current"]["value"]) == (False, False, "USD")


@each_dashboard
def test_a_choice_of_currency_is_only_shown_where_there_is_money(path: Path) -> None:
    dashboard = load(path)
    money = any("$currency" in target["expr"] for panel in panels(dashboard) for target in panel["targets"])
    assert (variables(dashboard)["currency"].get("hide", 0) == 0) == money


def test_every_amount_of_money_is_in_the_chosen_currency() -> None:
    for target in ALL_TARGETS:
        for selector in _selectors(_parsed(target)):
            if "currency" in LABELS.get(family(selector.name or ""), ()):
                exact = {each.name: each.value for each in selector.matchers.matchers if each.op == MatchOp.Equal}
                assert exact.get("currency") == "USD", target.name


@each_dashboard
def test_amounts_of_budgets_in_different_units_share_no_axis(path: Path) -> None:
    """A share of what is allowed has no unit; an amount stands in a table, beside its unit."""
    for panel in panels(load(path)):
        amounts = [target["expr"] for target in panel["targets"] if _in_units(target["expr"])]
        if amounts and panel["fieldConfig"]["defaults"]["unit"] != "percentunit" and panel["type"] != "stat":
            assert panel["type"] == "table", panel["title"]
            assert all("unit" in amount for amount in amounts), panel["title"]


def _in_units(expression: str) -> bool:
    return any("unit" in LABELS.get(family(name), ()) for name in re.findall(r"acp_proxy_\w+", expression))


def test_money_of_several_currencies_and_amounts_of_several_units_are_never_added_up() -> None:
    assert [target.name for target in ALL_TARGETS if any(map(_mixes, _all_within(_parsed(target))))] == []


def _mixes(expression: Expr) -> bool:
    if not isinstance(expression, AggregateExpr) or _compares_only(expression):
        return False
    selectors = _selectors(expression.expr)
    kept = set(expression.modifier.labels) if expression.modifier else set()
    kept |= {each.name for selector in selectors for each in selector.matchers.matchers if each.op == MatchOp.Equal}
    of = {label for selector in selectors for label in LABELS.get(family(selector.name or ""), ())}
    return bool({"currency", "unit"} & of - kept)


def _compares_only(expression: AggregateExpr) -> bool:
    """Whether it picks or counts, and so adds nothing up."""
    return str(expression.op) in ("max", "min", "count")


def _parsed(target: Target) -> Expr:
    return promql_parser.parse(filled(target.expression, chosen(DAY, HOUR)))


def _selectors(expression: Expr) -> list[VectorSelector]:
    return [each for each in _all_within(expression) if isinstance(each, VectorSelector)]


def _all_within(expression: Expr) -> list[Expr]:
    found: list[Expr] = []
    promql_parser.walk(expression, found.append)
    return found
