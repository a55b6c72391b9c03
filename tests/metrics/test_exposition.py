"""The text is what Prometheus reads: its own tools have nothing to say about it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from acp_proxy.config import Config
from acp_proxy.core.money import decimal_text
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.tallies import NO_BOUND
from acp_proxy.metrics.exposition import Buckets, Family, Histogram, exposition
from tests.ledger.rows import line, row
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


@pytest.mark.real
def test_promtool_has_nothing_to_say(ledger: BudgetLedger, config: Config) -> None:
    names = ["opus", 'quo"te', "back\\slash", "line\nbreak", "carriage\rreturn", "x" * 300, "\x01\x7f\u2028"]
    ledger.append([row(line(name), context_used=1, context_size=2) for name in names])
    running = exporter(config)
    for text in (running.scrape(ledger), running.without_ledger()):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
