"""What an exporter keeps between scrapes changes nothing of what it says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_proxy.config import Config
from acp_proxy.core.entry import Origin
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics import Exporter
from harness.rows import ALICE, BOB, line, row
from tests.metrics.scrapes import configuration, exporter

CODEX = Origin("default", "carol", None, None, "desktop", "codex-acp", "1", None)

_rows = st.builds(
    lambda model, cost, currency, origin, kind: row(line(model, cost, currency), origin=origin, kind=kind),
    st.sampled_from(["opus", "haiku", "x" * 300, None]),
    st.sampled_from(["0.01", "2", None]),
    st.sampled_from(["USD", "credits"]),
    st.sampled_from([ALICE, BOB, CODEX]),
    st.sampled_from(["turn", "side"]),
)


def said(running: Exporter, ledger: BudgetLedger) -> list[str]:
    """All that does not depend on the process; in which order series come says nothing."""
    lines = running.scrape(ledger).decode().split("\n")
    own = ("acp_proxy_ledger_op_seconds", "process_", "python_")
    return sorted(line for line in lines if not line.removeprefix("# TYPE ").removeprefix("# HELP ").startswith(own))


# Examples share the ledger.
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(_rows, max_size=3), min_size=1, max_size=4), model=st.sampled_from(["opus", "new", None])
)
def test_it_says_what_one_says_that_was_just_started(
    ledger: BudgetLedger, config: Config, batches: list[list[Row]], model: str | None
) -> None:
    running = exporter(config)
    for rows in batches:
        ledger.append(rows)
        assert said(running, ledger) == said(exporter(config), ledger)
    ledger.tallied.expect("default", "gemini", "core", model)
    assert said(running, ledger) == said(exporter(config), ledger)


def test_the_first_cost_of_an_agent_replaces_what_was_foreseen(ledger: BudgetLedger, config: Config) -> None:
    running = exporter(config)
    ledger.append([row(line("opus", None), cost_source="unknown")])
    assert any('currency="USD",source="computed"} 0' in line for line in said(running, ledger))
    ledger.append([row(line("opus", "3", "credits"), cost_source="agent")])
    assert said(running, ledger) == said(exporter(config), ledger)
    assert not any('currency="USD"' in line for line in said(running, ledger))


def test_sums_that_were_made_anew_are_shown_anew(ledger: BudgetLedger, config: Config) -> None:
    running = exporter(config)
    ledger.append([row(line("opus", "1")), row(line("haiku", "2"), origin=BOB)])
    before = said(running, ledger)
    ledger.rebuild()
    assert said(running, ledger) == before


def test_another_ledger_has_its_own_labels(tmp_path: Path, ledger: BudgetLedger, config: Config) -> None:
    first, *most, last = [row(line(f"model-{number}")) for number in range(201)]
    for rows in ([first], [*most, last]):
        ledger.append(rows)
    running = exporter(config)
    assert any('model="model-0"' in line for line in said(running, ledger))
    (tmp_path / "elsewhere").mkdir()
    with closing(open_ledger(configuration(tmp_path / "elsewhere").ledger.url, journals=())) as other:
        for rows in ([last, *most], [first]):
            other.append(rows)
        assert said(running, other) == said(exporter(config), other)
        assert not any('model="model-0"' in line for line in said(running, other))
