"""What people type without having read anything: each does what was meant, or says what to type."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_proxy.core.windows import Window
from acp_proxy.ledger import open_ledger
from harness.rows import MINUTE, line, row
from tests.machine import COMMAND, Machine

HOUR = 60 * MINUTE


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def filled(path: Path, *, ago: int = MINUTE) -> Path:
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(line("claude-sonnet-5", "1.25", input=1000), at=time.time_ns() - ago)])
    return path


@pytest.mark.parametrize(
    "written", ["{home}/other.db", "~/other.db", "sqlite:///{home}/other.db", "sqlite:///~/other.db"]
)
def test_a_ledger_is_named_by_a_path_or_by_a_url(machine: Machine, written: str) -> None:
    filled(machine.home / "other.db")
    named = written.format(home=machine.home)
    assert "$1.25" in machine.answer("report", "--ledger", named)
    assert "$1.25" in machine.answer("report", environ={"ACP_PROXY_LEDGER__URL": named})


def test_a_relative_path_is_relative_to_where_the_command_is_typed(machine: Machine) -> None:
    filled(machine.home / "other.db")
    done = subprocess.run(
        [*COMMAND, "report", "--ledger", "other.db"],
        cwd=machine.home,
        env={"HOME": str(machine.home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "$1.25" in done.stdout


def test_a_relative_path_in_a_configuration_file_is_relative_to_the_file(machine: Machine) -> None:
    directory = machine.home / "team"
    directory.mkdir()
    filled(directory / "spend.db")
    (directory / "config.toml").write_text('[ledger]\nurl = "spend.db"\n')
    assert "$1.25" in machine.answer("report", "--config", str(directory / "config.toml"))


def test_a_copy_of_a_ledger_goes_to_a_path(machine: Machine) -> None:
    filled(machine.home / "old.db")
    machine.answer("ledger", "copy", "--from", "~/old.db", "--to", "~/new.db")
    assert "$1.25" in machine.answer("report", "--ledger", "~/new.db")


def test_the_command_alone_tells_how_to_begin_where_nothing_was_metered(machine: Machine) -> None:
    told = machine.answer()
    assert told.startswith("Nothing in the ledger yet: sqlite:///")
    assert "acp-proxy setup zed" in told
    assert "acp-proxy demo" in told


def test_the_command_alone_tells_what_was_spent_today(machine: Machine) -> None:
    filled(machine.home / ".local/state/acp-proxy/ledger.db")
    assert " today" in machine.answer().splitlines()[0]


def test_an_editor_that_starts_the_command_alone_reads_what_is_missing(machine: Machine) -> None:
    """Its stdin and stdout are pipes: nothing but ACP may come there."""
    done = subprocess.run(
        COMMAND, env={"HOME": str(machine.home)}, input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "acp-proxy run -- AGENT" in done.stderr


@pytest.mark.parametrize("agent", ["claude", "gemini", "sh"])
def test_an_agent_typed_as_a_command_gets_the_command_that_relays_it(machine: Machine, agent: str) -> None:
    said = machine.complaint(agent, "--acp")
    assert said == f"acp-proxy: unknown command {agent}; to relay an agent: acp-proxy run -- {agent} --acp"


def test_a_report_is_by_the_word_behind_it(machine: Machine) -> None:
    filled(machine.home / ".local/state/acp-proxy/ledger.db")
    assert machine.answer("report", "week") == machine.answer("report", "--by", "week")
    assert machine.answer("report", "model") == machine.answer("report", "--by", "model")


def test_a_report_of_today_has_its_hours(machine: Machine) -> None:
    now = datetime.now()
    filled(machine.home / ".local/state/acp-proxy/ledger.db", ago=0)
    header, first, *_ = machine.answer("report", "today", environ={"TZ": ""}).splitlines()
    assert header.startswith("hour ")
    assert first.startswith((f"{now:%Y-%m-%d %H}:00", f"{now + timedelta(minutes=1):%Y-%m-%d %H}:00"))
    assert machine.answer("report", "yesterday").startswith("Nothing in the ledger matches.")


def test_a_session_without_an_id_is_the_last_one(machine: Machine) -> None:
    filled(machine.home / ".local/state/acp-proxy/ledger.db")
    assert machine.answer("session") == machine.answer("session", "last")


@pytest.mark.parametrize(("alias", "model"), [("sonnet", "claude-sonnet-5"), ("claude-sonet-5", "claude-sonnet-5")])
def test_prices_of_a_name_without_a_price_name_models_that_have_one(machine: Machine, alias: str, model: str) -> None:
    done = machine.run("prices", "show", alias)
    assert done.returncode == 1
    assert f"anthropic/{model}" in done.stdout
    assert "openrouter" not in done.stdout


@pytest.mark.parametrize(
    ("short", "meant"),
    [("5h", "rolling:5h"), ("7d", "rolling:168h"), ("rolling:7d", "rolling:168h"), ("2w", "rolling:336h")],
)
def test_a_length_of_time_is_a_rolling_window(short: str, meant: str) -> None:
    assert Window.parse(short).text == meant
