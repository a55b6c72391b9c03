"""`acp-proxy demo` as a newcomer runs it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from acp_proxy import demo, demo_agent
from acp_proxy.demo import DemoError, _Editor, _Installation
from tests.pace import slower

pytestmark = pytest.mark.xdist_group("demo")  # one run for all tests of it

Run = tuple[subprocess.CompletedProcess[str], float, Path]  # what it printed, seconds, its home directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {"HOME": str(home), "XDG_STATE_HOME": str(home), "TMPDIR": str(home), "NO_COLOR": "1"}
    began = time.monotonic()
    command = [sys.executable, "-m", "acp_proxy", "demo"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=demo.SECONDS)
    return done, time.monotonic() - began, home


def test_it_ends_well_within_ten_seconds(run: Run) -> None:
    """Of a machine as most are, with nothing else to do."""
    done, seconds, _ = run
    assert (done.returncode, done.stderr) == (0, "")
    assert seconds < 10 * slower()


def test_a_relay_that_is_gone_is_told_and_not_what_could_not_be_written_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SECONDS", 0)

    def play() -> None:
        with _Installation.in_directory(tmp_path).editor() as editor:
            while told(editor) == "acp-proxy ended during initialize":  # it is being killed
                pass
            editor.call("initialize", {})

    with pytest.raises(DemoError, match="acp-proxy was gone before initialize"):
        play()


def told(editor: _Editor) -> str:
    with pytest.raises(DemoError) as error:
        editor.call("initialize", {})
    return str(error.value)


def test_it_shows_what_the_editor_gets_after_each_turn(run: Run) -> None:
    shown = [line for line in run[0].stdout.splitlines() if "acp-proxy adds this" in line]
    assert len(shown) == len(demo_agent.SCRIPT)
    assert all("context" in line and "session $0.0" in line for line in shown)


def test_it_shows_a_warning_a_refusal_and_what_a_grant_does(run: Run) -> None:
    _, warning, rest = run[0].stdout.partition("90 % of budget")
    _, refusal, rest = rest.partition("Not sent to the agent: budget")
    _, grant, rest = rest.partition("$ acp-proxy budget grant demo")
    assert warning
    assert refusal
    assert grant
    assert rest.splitlines()[1].startswith("Granted $0.05")
    assert "agent  " + demo_agent.SCRIPT[-1].says in rest


def test_the_budget_at_its_end_has_what_was_granted(run: Run) -> None:
    budget = run[0].stdout.rpartition("$ acp-proxy budget list")[2]
    assert "$0.0600  $0.0500" in budget


def test_the_report_at_its_end_has_every_token_of_the_script(run: Run) -> None:
    total = sum(turn.usage()["totalTokens"] for turn in demo_agent.SCRIPT)
    assert f"{total:,}" in run[0].stdout.rpartition("$ acp-proxy report")[2]


def test_it_ends_with_what_to_type_next(run: Run) -> None:
    assert "acp-proxy run -- AGENT" in run[0].stdout.rpartition("To meter a real agent")[2]


def test_it_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    environment = os.environ | {"HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "80"}
    with (
        os.fdopen(ours, "rb", 0) as terminal,
        subprocess.Popen([sys.executable, "-m", "acp_proxy", "demo"], env=environment, stdout=its) as process,
    ):
        os.close(its)
        said = b""
        with suppress(OSError):  # its end
            while read := terminal.read(1 << 16):
                said += read
    assert process.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert sum("← acp-proxy" in line for line in lines) == len(demo_agent.SCRIPT) + 2


def test_it_leaves_nothing_behind(run: Run) -> None:
    assert list(run[2].iterdir()) == []
