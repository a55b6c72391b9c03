"""The text is what Prometheus reads: its own tools have nothing to say about it."""

from __future__ import annotations

import subprocess
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from acp_proxy.config import Config
from acp_proxy.core.money import NANO, decimal_text
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.sums.tallies import NO_BOUND
from acp_proxy.metrics.exposition import AnyFamily, Buckets, Family, Histogram, exposition
from harness.rows import line, row
from tests.metrics.scrapes import exporter

# A NUL ends the text for Prometheus, and is replaced; what cannot be written as UTF-8 becomes a question mark.
_values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(samples=st.dictionaries(st.tuples(_values, _values), st.integers(0, 2**53)))
def test_any_label_comes_back(samples: dict[tuple[str, ...], int]) -> None:
    family = Family("acp_proxy_x_total", "counter", "Some.", ("one", "two"), samples.items())
    (found,) = text_string_to_metric_families(exposition([family]).decode())
    assert {(each.labels["one"], each.labels["two"]): each.value for each in found.samples} == {
        key: float(number) for key, number in samples.items()
    }


_BOUNDS = (NANO // 2, NANO, 50 * NANO)
_rows = st.lists(st.tuples(_values, _values, st.integers(0, 2**53)), max_size=5)


@given(counted=_rows, level=st.integers(-(2**53), 2**53), observed=st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_it_is_the_text_of_prometheus_client_but_for_how_numbers_are_written(
    counted: list[tuple[str, str, int]], level: int, observed: list[int]
) -> None:
    ours: list[AnyFamily] = [
        Family("acp_proxy_x_total", "counter", "Some.", ("a", "b"), [((a, b), number) for a, b, number in counted]),
        Family("acp_proxy_y", "gauge", "Some.", (), [((), level)]),
        Histogram(
            "acp_proxy_z",
            "Some.",
            ("a",),
            _BOUNDS,
            [(("b",), Buckets(dict(zip((*_BOUNDS, NO_BOUND), observed, strict=True)), 3 * NANO))],
        ),
    ]
    counter = CounterMetricFamily("acp_proxy_x", "Some.", labels=["a", "b"])
    for a, b, number in counted:
        counter.add_metric([a, b], number)
    histogram = HistogramMetricFamily("acp_proxy_z", "Some.", labels=["a"])
    below = zip(["0.5", "1.0", "50.0", "+Inf"], map(float, accumulate(observed)), strict=True)
    histogram.add_metric(["b"], list(below), 3)
    theirs = [counter, GaugeMetricFamily("acp_proxy_y", "Some.", value=level), histogram]
    assert _with_floats(exposition(ours)) == "".join(map(_by_prometheus_client, theirs))


class _Collector:
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]


def _by_prometheus_client(family: Metric) -> str:
    registry = CollectorRegistry()
    registry.register(_Collector(family))
    lines = generate_latest(registry).decode().splitlines(keepends=True)
    return "".join([*lines[:-2], lines[-1], lines[-2]] if family.type == "histogram" else lines)  # our sum comes first


def _with_floats(text: bytes) -> str:
    written = []
    for each in text.decode().split("\n")[:-1]:
        start, _, number = each.rpartition(" ")
        float_text = number if each.startswith("#") else floatToGoString(number)  # type: ignore[no-untyped-call]  # of a package without types
        written.append(f"{start} {float_text}\n")
    return "".join(written)


@given(st.integers(0, 2**63))
def test_nano_units_are_written_exactly(nano: int) -> None:
    text = exposition([Family("acp_proxy_x_total", "counter", "Some.", (), [((), nano)], nano=True)])
    assert text.decode().splitlines()[-1] == f"acp_proxy_x_total {decimal_text(nano)}"


def test_a_histogram_is_cumulative_and_has_its_old_bounds_too() -> None:
    buckets = Buckets({10**9: 2, 3 * 10**9: 1, NO_BOUND: 4}, 7)
    family = Histogram("acp_proxy_x", "Some.", ("a",), (10**9, 2 * 10**9), [(("b",), buckets)])
    assert exposition([family]).decode().splitlines()[2:] == [
        'acp_proxy_x_bucket{a="b",le="1.0"} 2',
        'acp_proxy_x_bucket{a="b",le="2.0"} 2',
        'acp_proxy_x_bucket{a="b",le="3.0"} 3',
        'acp_proxy_x_bucket{a="b",le="+Inf"} 7',
        'acp_proxy_x_sum{a="b"} 0.000000007',
        'acp_proxy_x_count{a="b"} 7',
    ]


def test_what_is_no_text_does_not_break_the_rest() -> None:
    family = Family("acp_proxy_x", "gauge", "Some.", ("a",), [(("\ud800\0",), 1)])
    assert exposition([family]).decode().splitlines()[-1] == 'acp_proxy_x{a="?\ufffd"} 1'


@pytest.mark.needs("promtool")
def test_promtool_has_nothing_to_say(ledger: BudgetLedger, config: Config) -> None:
    names = ["opus", 'quo"te', "back\\slash", "line\nbreak", "carriage\rreturn", "x" * 300, "\x01\x7f\u2028"]
    ledger.append([row(line(name), context_used=1, context_size=2) for name in names])
    running = exporter(config)
    for text in (running.scrape(ledger), running.without_ledger()):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
