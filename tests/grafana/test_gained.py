"""What a counter gained, on a real Prometheus, where `increase` is wrong: late series, restarts, moves, silence."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import pytest

from grafana.build.promql import gained, gained_ahead
from harness.prometheus import Prometheus, prometheus
from tests.grafana.dashboards import ALL_TARGETS, chosen, filled

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("grafana")]

BEGIN, EVERY = 1_795_000_000 - 1_795_000_000 % 3600, 60
HOUR = 3600

# By job: scrapes by the minute in which they were made. Each has a ledger; `turns` is the counter, None before it was.
Scraped = Mapping[int, int | None]
JOBS: dict[str, tuple[Scraped, int]] = {  # ... and what the second hour gained
    "steady": ({minute: minute for minute in range(121)}, 60),
    "begins": ({minute: None if minute < 90 else 7 for minute in range(121)}, 7),
    "begins-at-0": ({minute: None if minute < 90 else 7 * (minute > 100) for minute in range(121)}, 7),
    "begins-at-once": ({minute: None if minute <= 60 else 7 for minute in range(121)}, 7),
    "first-scraped-late": ({minute: 1000 + minute for minute in range(90, 121)}, 30),
    "begins-after-the-first-scrape": ({minute: None if minute < 100 else 5 for minute in range(90, 121)}, 5),
    "silent-at-the-beginning": ({minute: minute for minute in range(121) if not 50 < minute < 70}, 50),
    "silent-at-the-end": ({minute: minute for minute in range(111)}, 50),
    "silent-in-between": ({minute: minute for minute in range(121) if not 70 < minute < 110}, 60),
    "idle": (dict.fromkeys(range(121), 3), 0),
}


RENAMED = {
    "acp_proxy_budget_decisions_total": 'budget="{}",decision="deny"',
    "acp_proxy_notifications_total": 'channel="{}",result="failed"',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    lines = [line for job, (scrapes, _) in JOBS.items() for line in _lines(f'job="{job}",instance="one"', scrapes)]
    lines += _lines('job="moved",instance="old"', {minute: 100 + minute for minute in range(91)})
    lines += _lines('job="moved",instance="new"', {minute: 100 + minute for minute in range(91, 121)})
    without = {minute: None if minute <= 70 else 1000 + minute for minute in range(30, 121)}
    lines += _lines('job="started-without-ledger",instance="one"', without, away=range(71))
    kept = {minute: 80 if 80 < minute < 100 else minute for minute in range(121)}
    lines += _lines('job="ledger-away",instance="one"', kept, away=range(81, 100))
    for family, labels in RENAMED.items():
        lines += _counted(family, labels.format("old"), {minute: 40 + 5 * (minute > 70) for minute in range(81)})
        lines += _counted(family, labels.format("new"), {minute: 3 * (minute > 100) for minute in range(81, 121)})
        lines += _counted(family, labels.format("other"), dict.fromkeys(range(81, 121), 45))
    with prometheus(tmp_path_factory.mktemp("gained"), history="".join(lines)) as started:
        yield started


def _lines(target: str, scrapes: Scraped, away: Container[int] = ()) -> Iterator[str]:
    """Text of scrapes; in the minutes `away` the exporter had no ledger."""
    for minute, turns in scrapes.items():
        at = BEGIN + minute * EVERY
        yield f"acp_proxy_ledger_up{{{target}}} {int(minute not in away)} {at}\n"
        if turns is not None:
            yield f'acp_proxy_turns_total{{agent="a",{target}}} {turns} {at}\n'


def _counted(family: str, labels: str, scrapes: Mapping[int, int]) -> Iterator[str]:
    for minute, number in scrapes.items():
        yield f'{family}{{{labels},job="steady",instance="one"}} {number} {BEGIN + minute * EVERY}\n'


@pytest.mark.parametrize("job", JOBS)
def test_an_hour_gained_what_was_seen_to_come_in_it(server: Prometheus, job: str) -> None:
    expression = gained(f'acp_proxy_turns_total{{job="{job}"}}')
    (found,) = server.query(filled(expression, chosen(HOUR, EVERY)), at=BEGIN + 2 * HOUR)
    assert found.value == JOBS[job][1]


def test_an_exporter_that_moves_gains_nothing_by_it(server: Prometheus) -> None:
    expression = gained('acp_proxy_turns_total{job="moved"}')
    (found,) = server.query(filled(expression, chosen(HOUR, EVERY)), at=BEGIN + 2 * HOUR)
    assert found.value == 59  # one is lost: that of the minute between the last scrape there and the first here


@pytest.mark.parametrize(("job", "gain"), [("started-without-ledger", 49), ("ledger-away", 60)])
def test_a_ledger_that_comes_back_brings_only_what_came_since_it_was_seen(
    server: Prometheus, job: str, gain: int
) -> None:
    expression = gained(f'acp_proxy_turns_total{{job="{job}"}}')
    (found,) = server.query(filled(expression, chosen(HOUR, EVERY)), at=BEGIN + 2 * HOUR)
    assert found.value == gain


@pytest.mark.parametrize("panel", ["Refused", "Notifications lost"])
def test_a_budget_or_channel_that_is_renamed_does_nothing_again(server: Prometheus, panel: str) -> None:
    """What it did until then is that of `other` from then on."""
    (shown,) = [each for each in ALL_TARGETS if each.panel == panel]
    (found,) = server.query(filled(shown.expression, chosen(HOUR, EVERY)), at=BEGIN + 2 * HOUR)
    assert found.value == 5 + 3


def test_ahead_is_the_same_an_hour_earlier(server: Prometheus) -> None:
    selector = 'acp_proxy_turns_total{job="steady"}'
    ahead = filled(gained_ahead(selector), chosen(HOUR, HOUR))
    assert [found.value for found in server.query(ahead, at=BEGIN + HOUR)] == [60]


def test_bars_that_are_not_over_have_what_came_so_far(server: Prometheus) -> None:
    ahead = filled(gained_ahead('acp_proxy_turns_total{job="steady"}'), chosen(HOUR, HOUR))
    assert [found.value for found in server.query(ahead, at=BEGIN + 2 * HOUR - 600)] == [10]
