"""Every query of every dashboard on a real Prometheus, exporter and ledger; and its sums against `report`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from acp_proxy.core.money import NANO
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import Line, query, report
from acp_proxy.text.times import UTC_ZONE
from grafana.build.metrics import LABELS, OF_SERVERS, family
from grafana.look.month import NOW, SINCE
from harness.prometheus import Prometheus, Sample, Series, prometheus
from harness.rows import ALICE
from tests.grafana import past
from tests.grafana.dashboards import ALL_TARGETS, PATHS, Target, chosen, filled, load, variables
from tests.grafana.past import BEGIN, FIRST_SCRAPE, HOUR
from tests.real.team import Team

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("grafana")]

# Hours before the end: all that was scraped, parts of it, one that begins before anything was.
WINDOWS = [(FIRST_SCRAPE, NOW), (NOW - 7 * HOUR, NOW), (NOW - 9 * HOUR, NOW - 2 * HOUR), (NOW - HOUR, NOW)]
OF_TARGETS = {"__name__", "job", "instance", "le"}
# What finds nothing, as the exporter does not tell users apart unless it is told to.
WITH_USERS = [target.name for target in ALL_TARGETS if target.panel == "Cost by user"]
TOO_EARLY = (BEGIN - HOUR, NOW)


@dataclass(frozen=True, slots=True)
class Past:
    server: Prometheus
    ledger: BudgetLedger


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    home = tmp_path_factory.mktemp("past")
    config = past.configured(home, f"sqlite:///{home}/ledger.db")
    ledger = past.opened(config)
    with prometheus(home, history="".join(past.scraped(ledger, config))) as server:
        yield Past(server, ledger)
    ledger.close()


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    home = tmp_path_factory.mktemp("users")
    config = past.configured(home, f"sqlite:///{home}/ledger.db", "[metrics]\nuser_label = true\n")
    ledger = past.opened(config)
    with prometheus(home, history="".join(past.scraped(ledger, config))) as server:
        yield Past(server, ledger)
    ledger.close()


def test_a_query_finds_something_and_its_legend_names_labels(before: Past) -> None:
    nothing, unnamed = [], []
    for target in ALL_TARGETS:
        since = SINCE if target.time_from == "now/M" else NOW - 8 * HOUR
        found = _asked(before.server, target, since, NOW, HOUR)
        if all(value.is_nan() for each in found for value in _values(each)):
            nothing.append(target.name)
        named = set(re.findall(r"\{\{(\w+)\}\}", target.legend))
        if not all(named <= each.labels.keys() for each in found):
            unnamed.append(target.name)
    assert (nothing, unnamed) == (WITH_USERS, [])


def test_families_and_their_labels_are_those_that_the_dashboards_are_made_from(before: Past) -> None:
    found: dict[str, set[str]] = {}
    for series in before.server.get("series", **{"match[]": '{__name__=~"acp_proxy_.+"}'}, start=BEGIN, end=NOW):
        found.setdefault(family(series["__name__"]), set()).update(series.keys() - OF_TARGETS)
    assert found == {name: set(labels) for name, labels in LABELS.items() if name not in OF_SERVERS}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_variable_has_values_to_choose_from(before: Past, path: Path) -> None:
    for variable in variables(load(path)).values():
        if variable["type"] == "query":
            text = filled(variable["query"]["query"], chosen(HOUR, 60))
            parts = re.fullmatch(r"label_values\((.+), (\w+)\)", text)
            assert parts, text
            found = before.server.get(f"label/{parts[2]}/values", **{"match[]": parts[1]})
            assert bool(found) == (parts[2] != "user"), text


@pytest.mark.parametrize(("since", "until"), WINDOWS)
@pytest.mark.parametrize(
    ("dashboard", "panel", "by"),
    [
        ("Fleet", "Spent", ()),
        ("Fleet", "Models", ("model",)),
        ("Fleet", "Agents", ("agent",)),
        ("Team chargeback", "Spent", ()),
        ("Team chargeback", "Cost by team", ("team",)),
    ],
)
def test_money_of_a_time_range_is_that_of_the_report(
    before: Past, dashboard: str, panel: str, by: tuple[str, ...], since: int, until: int
) -> None:
    found = {
        (*(each.labels[label] for label in by), each.labels["currency"]): each.value
        for each in _instant(before.server, _target(dashboard, panel), since, until)
    }
    expected = {
        (*((line.key,) if by else ()), money.currency): Decimal(money.nano) / NANO
        for line in _lines(before.ledger, by, since, until)
        for money in line.costs
        if money.nano and money.currency == "USD"
    }
    assert found.keys() == expected.keys()
    assert all(_same(found[key], expected[key]) for key in expected)


def test_another_currency_is_chosen_by_its_name(before: Past) -> None:
    since = NOW - 7 * HOUR
    target = _target("Fleet", "Spent")
    (found,) = before.server.query(filled(target.expression, chosen(NOW - since, HOUR, currency="credits")), at=NOW)
    (known,) = _lines(before.ledger, (), since, NOW)
    (nano,) = [money.nano for money in known.costs if money.currency == "credits"]
    assert (found.labels["currency"], _same(found.value, Decimal(nano) / NANO)) == ("credits", True)


@pytest.mark.parametrize(("since", "until"), WINDOWS)
def test_money_of_users_is_that_of_the_report_where_the_exporter_tells_them_apart(
    with_users: Past, since: int, until: int
) -> None:
    found: dict[str, Decimal] = {}
    for each in _instant(with_users.server, _target("Team chargeback", "Cost by user"), since, until):
        found[each.labels["user"]] = found.get(each.labels["user"], Decimal()) + each.value
    expected = {
        line.key: Decimal(money.nano) / NANO
        for line in _lines(with_users.ledger, ("user",), since, until)
        for money in line.costs
        if money.nano and money.currency == "USD"
    }
    assert len(expected) > 1
    assert found.keys() == expected.keys()
    assert all(_same(found[key], expected[key]) for key in expected)


def test_a_chosen_user_narrows_money_tokens_and_turns(with_users: Past) -> None:
    since = NOW - 7 * HOUR
    jo = chosen(NOW - since, HOUR, user="jo")
    (line,) = [each for each in _lines(with_users.ledger, ("user",), since, NOW) if each.key == "jo"]

    def figure(panel: str) -> Decimal:
        (only,) = with_users.server.query(filled(_target("Fleet", panel).expression, jo), at=NOW)
        return only.value

    assert (int(figure("Turns")), int(figure("Tokens"))) == (line.turns, line.usage.total)
    assert _same(figure("Spent"), _dollars(line))


@pytest.mark.parametrize(("since", "until"), WINDOWS)
def test_tokens_and_turns_of_a_time_range_are_those_of_the_report(before: Past, since: int, until: int) -> None:
    lines = {line.key: line for line in _lines(before.ledger, ("team",), since, until)}
    turns = _instant(before.server, _target("Team chargeback", "Usage by team", 0), since, until)
    tokens = _instant(before.server, _target("Team chargeback", "Usage by team", 4), since, until)
    assert {each.labels["team"]: int(each.value) for each in turns if each.value} == {
        team: line.turns for team, line in lines.items() if line.turns
    }
    assert {each.labels["team"]: int(each.value) for each in tokens if each.value} == {
        team: line.usage.total for team, line in lines.items() if line.usage.total
    }


@pytest.mark.parametrize(
    ("dashboard", "panel", "label"), [("Fleet", "Spend by model", "model"), ("Team chargeback", "Spend by day", "team")]
)
def test_bars_add_up_to_the_total(before: Past, dashboard: str, panel: str, label: str) -> None:
    since, until = NOW - 8 * HOUR, NOW
    sums = {
        (each.labels[label], each.labels["currency"]): sum(value for _, value in each.points)
        for each in _range(before.server, _target(dashboard, panel), since, until - HOUR, HOUR)
    }
    expected = {
        (line.key, money.currency): Decimal(money.nano) / NANO
        for line in _lines(before.ledger, (label,), since, until)
        for money in line.costs
        if money.nano and money.currency == "USD"
    }
    assert sums.keys() == expected.keys()
    assert all(_same(Decimal(sums[key]), expected[key]) for key in expected)


def test_turns_by_stop_reason_add_up_to_the_turns_of_the_report(before: Past) -> None:
    since, until = NOW - 8 * HOUR, NOW
    bars = _range(before.server, _target("Sessions and cost", "Turns by stop reason"), since, until - HOUR, HOUR)
    (known,) = _lines(before.ledger, (), since, until)
    assert sum(value for each in bars for _, value in each.points) == known.turns


def test_what_was_spent_before_the_first_scrape_is_not_of_the_time_range(before: Past) -> None:
    (dollars,) = [
        each.value
        for each in _instant(before.server, _target("Fleet", "Spent"), *TOO_EARLY)
        if each.labels["currency"] == "USD"
    ]
    (known,) = _lines(before.ledger, (), FIRST_SCRAPE, NOW)
    (everything,) = _lines(before.ledger, (), BEGIN, NOW)
    assert _same(dollars, _dollars(known))
    assert not _same(dollars, _dollars(everything))


def test_every_query_finds_something_in_scrapes_of_a_running_serve(tmp_path: Path) -> None:
    team = Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db", past.CONFIG)
    config = past.configured(tmp_path, team.ledger)
    ledger, happenings = past.opened(config), past.happenings(config)
    for each in happenings[:9]:
        each.do(ledger)
    now = time.time_ns()  # by the server's clock what happened then is over
    ledger.note_plan(ALICE, [PlanWindow("seven_day", FULL // 2, "allowed", now + DAY, None, now)])
    with team.served() as port, prometheus(tmp_path, scrape=[port]) as server:
        server.until("count_over_time(acp_proxy_ledger_up[1m]) > 2")
        for each in happenings[9:]:
            each.do(ledger)
        (whole,) = _lines(ledger, (), 0, NOW)
        (at,) = server.until(f'timestamp(sum(acp_proxy_turns_total{{kind="turn"}}) == {whole.turns})')
        server.until("count_over_time(acp_proxy_ledger_up[1m]) > 5")
        end = float(at.value) + 2
        empty = [target.name for target in ALL_TARGETS if not _asked(server, target, end - 120, end, 15)]
    ledger.close()
    assert empty == WITH_USERS


def _asked(
    server: Prometheus, target: Target, since: float, until: float, step: int
) -> Sequence[Sample] | Sequence[Series]:
    if target.at_end:
        return _instant(server, target, since, until)
    return _range(server, target, since, until, step)


def _instant(server: Prometheus, target: Target, since: float, until: float) -> list[Sample]:
    return server.query(filled(target.expression, chosen(int(until - since), HOUR)), at=until)


def _range(server: Prometheus, target: Target, since: float, until: float, step: int) -> list[Series]:
    """As Grafana asks: each `step`, which bars are as wide as."""
    expression = filled(target.expression, chosen(int(until - since), step, __rate_interval="900s"))
    return server.query_range(expression, since, until, step)


def _values(found: Sample | Series) -> list[Decimal]:
    return [found.value] if isinstance(found, Sample) else [value for _, value in found.points]


def _target(dashboard: str, panel: str, number: int = 0) -> Target:
    found = [each for each in ALL_TARGETS if (each.dashboard, each.panel) == (f"acp-proxy: {dashboard}", panel)]
    return found[number]


def _lines(ledger: BudgetLedger, by: tuple[str, ...], since: int, until: int) -> Sequence[Line]:
    """What a report says of turns after `since`, until `until`: a scrape sees what began in its own second."""
    asked = query((since + 1) * NANO, (until + 1) * NANO, ())
    made = report(ledger, by[0] if by else "day", asked, UTC_ZONE)
    return tuple(made.lines) if by else (made.total,)


def _dollars(line: Line) -> Decimal:
    (nano,) = [money.nano for money in line.costs if money.currency == "USD"]
    return Decimal(nano) / NANO


def _same(found: Decimal, expected: Decimal) -> bool:
    """To a millionth: what is lost is lost in float64 on the way through Prometheus."""
    return abs(found - expected) <= abs(expected) / 1_000_000
