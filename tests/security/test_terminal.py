"""Names come from agents, models, clients and repositories: whatever shows them, a terminal only prints them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.report import BY
from harness.rows import ALICE, MINUTE, line, row
from tests.machine import COMMAND
from tests.serve.house import Home

pytestmark = pytest.mark.xdist_group("terminal")  # one ledger for all tests of it

TURNED = "\u202e\u2066\u200f\u061c"  # marks that turn the direction of writing
ATTACK = (
    f"ev\x1b[5mil\x1b]0;owned\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\x1b[1;1H\x9b6n\x90q\x9c\r\n\x08\x7f\0{TURNED}\u2028end"
)
NAME = ATTACK.replace("\0", "")  # PostgreSQL and command lines know no NUL
OUR_STYLES = re.compile(r"\x1b\[(0|1|2|31|33|36|38;5;208)m")

COMMANDS = [
    *(f"report --by {by}" for by in BY),
    *(f"report --by {by} --csv" for by in ("session", "turn")),
    *(f"report --by {by} --json" for by in ("session", "turn")),
    *("session last", "session last --json", "export --focus", "export --focus --json", "status"),
    *("budget list", "budget list --json", "budget grants", "budget grants --json", "budget simulate --config CONFIG"),
    *(
        "budget check --agent NAME --model NAME --project NAME",
        "budget grant cap --for-user NAME --amount 1 --for 1h --reason NAME",
    ),
    *(
        "doctor",
        "prices list NAME",
        "prices show NAME",
        "prices show NAME --json",
        "prices show NAME --json",
        "notify test",
    ),
    *(
        "session NAME",
        "report --by NAME",
        "report --since NAME",
        "budget grant NAME --amount 1",
        "NAME",
        "report --NAME",
    ),
    *("setup NAME", "--config NAME report", "--ledger NAME report", "setup --list"),
]
CONFIG = """
[[budget]]
name = "cap"
per = "user"
window = "day"
limit = { amount = "100", currency = "USD" }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    home.configure(CONFIG)
    now = time.time_ns()
    origin = replace(ALICE, team=NAME, project=NAME, agent=NAME, agent_version=NAME, client=NAME)
    state = SessionState(title=NAME, model=NAME, context_used=10, context_size=100)
    lines = [line(NAME, "0.5"), line(f"{NAME}2", "0.25", NAME), line(f"{NAME}3", None)]
    home.append(
        row(
            *lines,
            origin=replace(origin, user=user),
            session=f"{NAME}{user}",
            at=now - MINUTE,
            state=state,
            message_id=NAME,
            context_used=10,
            context_size=100,
        )
        for user in ("alice", NAME)
    )
    granted = home.run("budget", "grant", "cap", "--for-user", NAME, "--amount", "1", "--for", "1h", "--reason", NAME)
    assert granted.returncode == 0, granted.stderr
    return home


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_does_nothing_to_a_terminal(home: Home, command: str) -> None:
    config = home.path / ".config/acp-proxy/config.toml"
    words = [word.replace("NAME", NAME).replace("CONFIG", str(config)) for word in command.split()]
    shown = in_a_terminal(home, words)
    plain = OUR_STYLES.sub("", shown)
    assert plain.strip()
    assert "Traceback" not in plain
    assert [sign for sign in plain if not sign.isprintable() and sign not in "\r\n"] == []


def test_the_attack_would_be_seen(home: Home) -> None:
    assert not ATTACK.replace("\r", "").replace("\n", "").isprintable()
    assert "evil" in in_a_terminal(home, ["report", "--by", "agent"])


def test_a_terminal_shows_the_summary_of_a_run_without_control_signs(home: Home) -> None:
    agent = home.path / "agent.py"
    agent.write_text(AGENT, encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "run", "--", sys.executable, "-u", str(agent), NAME],
        env=home.environ,
        input="".join(f"{each}\n" for each in SAID),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "evil" in done.stderr
    assert done.stderr.replace("\n", "").isprintable()


def in_a_terminal(home: Home, words: list[str]) -> str:
    """All that the command writes, to stdout or stderr, of a terminal with 160 columns."""
    ours, its = pty.openpty()
    environ = {**home.environ, "COLUMNS": "160", "TERM": "xterm-256color"}
    with subprocess.Popen([*COMMAND, *words], env=environ, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        written = b""
        with suppress(OSError):  # EIO: the other side is closed
            while data := os.read(ours, 1 << 16):
                written += data
        os.close(ours)
        process.wait(60)
    return written.decode()


SAID = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
    '{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}}',
)
AGENT = """
import json, sys
name = sys.argv[1]
for line in sys.stdin:
    asked = json.loads(line)
    result = {
        "initialize": {"protocolVersion": 1, "agentInfo": {"name": name, "version": name}},
        "session/new": {"sessionId": "s", "models": {"currentModelId": name, "availableModels": []}},
        "session/prompt": {"stopReason": name, "usage": {"inputTokens": 5, "outputTokens": 5, "totalTokens": 10}},
    }[asked["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
"""
