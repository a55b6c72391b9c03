"""Budgets as a user meets them: the installed command, real processes, one ledger, and kill -9."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.config import load
from acp_proxy.config.digest import digest
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.places import journal_directories
from acp_proxy.serve.running_turns import running_turns
from harness.faults.trial import until
from tests.editor import BUDGET, PATIENT, Editor, proxy


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".config/acp-proxy").mkdir(parents=True)
    (tmp_path / ".config/acp-proxy/config.toml").write_text(BUDGET + PATIENT)
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "USER": "alice"}


def rows(environ: dict[str, str]) -> list[Row]:
    url = f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db"
    with closing(open_ledger(url, journals=journal_directories(environ))) as ledger:
        return list(ledger.rows(Query()))


def known_of_the_first(environ: dict[str, str]) -> list[str]:
    """What the first of the turns that run has cost, as anyone would take it over now."""
    url = f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db"
    journals = journal_directories(environ)
    with closing(open_ledger(url, journals=journals)) as ledger:
        first, *_ = running_turns(ledger, "default", journals, time.time_ns())
    return [cost.text for cost in first.costs]


def settings(environ: dict[str, str]) -> dict[str, str]:
    """What the ledger knows of the machines' files: digests, by layer."""
    with closing(open_ledger(f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db", journals=())) as ledger:
        return {said.layer: said.digest for said in ledger.settings("default", time.time_ns())}


def test_a_cap_holds_over_processes(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        assert editor.prompt("end 0.9")["result"] == {"stopReason": "end_turn"}
        assert editor.leave() == 0
    with proxy(environ) as process:
        editor = Editor(process)
        assert editor.prompt("end 0.1")["result"] == {"stopReason": "end_turn"}
        refused = editor.prompt("end 0.2")["result"]
        assert refused["_meta"] == {"acp-proxy": {"budget": "cap"}}
        editor.leave()
    assert [[cost.text for cost in row.entry.costs] for row in rows(environ)] == [["0.9"], ["0.1"]]


def test_a_killed_turn_is_booked_at_what_it_had_cost(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        editor.prompt("hang 0.7")
        editor.prompt("hang 0.75")  # queued behind it; what the agent says of its cost is noted ten times a second
        assert until(lambda: known_of_the_first(environ) == ["0.75"])
        editor.kill()
    first, *_ = sorted(rows(environ), key=lambda row: row.entry.id)
    assert [cost.text for cost in first.entry.costs] == ["0.75"]


def test_a_killed_turn_without_any_figure_is_booked_at_what_it_held(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        Editor(process).prompt("silent")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (row,) = rows(environ)
    assert [cost.text for cost in row.entry.costs] == ["0.2"]
    assert row.entry.cost_source == "estimated"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_turn_that_a_signal_ends_is_settled(environ: dict[str, str], number: signal.Signals) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        editor.prompt("hang 0.3")
        process.send_signal(number)
        process.wait()
    (row,) = rows(environ)
    assert [cost.text for cost in row.entry.costs] == ["0.3"]


def test_dollars_use_up_a_budget_in_euros_that_has_a_rate_for_them(environ: dict[str, str], tmp_path: Path) -> None:
    in_euros = BUDGET.replace('"USD"', '"EUR"').replace('"1"', '"0.45"')
    (tmp_path / ".config/acp-proxy/config.toml").write_text(f'{in_euros}rates = {{ USD = "0.5" }}\n{PATIENT}')
    with proxy(environ) as process:
        editor = Editor(process)
        assert editor.prompt("end 0.9")["result"] == {"stopReason": "end_turn"}
        refused = editor.prompt("end 0.91")
        assert refused["result"]["_meta"] == {"acp-proxy": {"budget": "cap"}}
        editor.leave()
    assert [[cost.text for cost in row.entry.costs] for row in rows(environ)] == [["0.9"]]


def test_a_budget_that_cannot_count_the_only_turn_of_a_run_is_told_in_its_log(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / ".config/acp-proxy/config.toml").write_text(BUDGET.replace('"USD"', '"EUR"') + PATIENT)
    log = tmp_path / "log"
    with proxy(environ, "--log", str(log)) as process:
        editor = Editor(process)
        editor.prompt("end 0.9")
        assert until(lambda: log.exists() and "which counts EUR: $0.90." in log.read_text(encoding="utf-8"))
        editor.leave()
    assert "event=budget.not_counted" in log.read_text(encoding="utf-8")


def test_the_flag_limits_one_run_and_not_the_next(environ: dict[str, str]) -> None:
    for _ in range(2):
        with proxy(environ, "--budget", "0.1") as process:
            editor = Editor(process)
            assert editor.prompt("end 0.1")["result"] == {"stopReason": "end_turn"}
            assert editor.prompt("end 0.2")["result"]["_meta"] == {"acp-proxy": {"budget": "--budget"}}
            editor.leave()


def test_the_ledger_knows_by_which_files_a_proxy_judged(environ: dict[str, str]) -> None:
    config = load({}, environ)
    known = {"admin": digest(config, "admin"), "user": digest(config, "user")}
    with proxy(environ) as process:
        editor = Editor(process)
        assert until(lambda: settings(environ) == known)  # a proxy that ends at once may have no time for it
        editor.leave()


def test_a_mistake_in_a_budget_keeps_the_agent_from_being_started(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / ".config/acp-proxy/config.toml"
    file.write_text(BUDGET.replace('"total"', '"totaly"'))
    with proxy(environ) as process:
        _, error = process.communicate()
        assert process.returncode == 2
        assert error.startswith(f"acp-proxy: {file}:3: budget.window: expected ".encode())
        assert error.count(b"\n") == 1
