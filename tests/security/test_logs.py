"""What is logged and what is kept: all recordings with every text in them marked, at debug, and where marks turn up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.config import Config, load
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side
from acp_proxy.core.traffic import Traffic
from acp_proxy.interceptor import Interceptor
from acp_proxy.interceptors.summary import Summary
from acp_proxy.log import Log
from acp_proxy.wiring import wired
from harness.recordings import TRANSCRIPTS
from tests.ends import Wire
from tests.machine import COMMAND
from tests.replay import play
from tests.serve.house import Home

RECORDINGS = sorted(TRANSCRIPTS.glob("*/*.jsonl"))
MARK = "CANARY-4f1d"
# A title, and the words by which an agent calls a plan's windows and their overage, which may be new ones.
KEPT = {
    ("session", "title"),
    *((table, name) for table in ("plan_window", "plan_change") for name in ("name", "overage")),
}

# What a message is about, and no content: who speaks, of which session, tool call, model, unit and mode.
STRUCTURE = {
    *("jsonrpc", "method", "id", "sessionId", "sessionUpdate", "stopReason", "messageId", "toolCallId", "requestId"),
    *(
        "agentInfo",
        "clientInfo",
        "info",
        "clientCapabilities",
        "protocolVersion",
        "kind",
        "status",
        "state",
        "type",
        "outcome",
    ),
    *(
        "modelId",
        "currentModelId",
        "model",
        "models",
        "_claude/model",
        "resolvedModel",
        "currency",
        "configId",
        "currentValue",
        "value",
        "category",
    ),
    *("modeId", "currentModeId", "optionId", "role", "priority"),
}


class Clumsy(Interceptor):
    """Fails at everything, and says what it saw."""

    def on_event(self, event: Event) -> Iterable[Effect]:
        raise RuntimeError(f"{MARK} {event}")


def marked(value: Any) -> Any:
    """Every text that is no structure gets the mark in front of it."""
    match value:
        case dict():
            return {name: each if name in STRUCTURE else marked(each) for name, each in value.items()}
        case list():
            return [marked(each) for each in value]
        case str():
            return f"{MARK} {value}"
    return value


def lines_of(recording: Path) -> Iterator[tuple[Side, bytes]]:
    for record in map(json.loads, recording.read_text(encoding="utf-8").splitlines()):
        side = Side.CLIENT if record["dir"] == "c2a" else Side.AGENT
        try:
            yield side, json.dumps(marked(json.loads(record["raw"]))).encode() + b"\n"
        except ValueError:  # what agents print beside the protocol
            yield side, f"{MARK} {record['raw']}\n".encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path)
    home.configure('[[budget]]\nname = "cap"\nwindow = "day"\nlimit = { amount = "1000", currency = "USD" }\n')
    return home


async def relayed(recording: Path, config: Config, log: Log, client: Wire) -> str:
    """The whole wiring of `run` around one recording; the summary."""
    traffic, summary = Traffic(), Summary()
    dispatcher = wired(config, ["agent"], log, [summary, Clumsy()], traffic=traffic)
    dispatcher.attach(client, Wire())
    for side, line in lines_of(recording):
        dispatcher.lines(side, line)
    dispatcher.finish()
    await dispatcher.aclose()
    return summary.render() or ""


async def test_no_text_of_any_recording_is_logged_at_debug_or_kept_but_as_a_title(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    config = load({}, home.environ)
    client, log_of_all = Wire(), Log("debug")
    summaries = [await relayed(recording, config, log_of_all, client) for recording in RECORDINGS]
    log = capsys.readouterr().err
    assert log.count("Clumsy") > len(RECORDINGS)
    assert MARK.encode() in client.data
    assert MARK not in log
    assert MARK not in "".join(summaries)
    assert where_it_is_kept(home.path / ".local/state/acp-proxy/ledger.db", len(RECORDINGS)) <= KEPT


def where_it_is_kept(ledger: Path, turns: int) -> set[tuple[str, str]]:
    """Tables and their columns."""
    found = set()
    with closing(sqlite3.connect(ledger)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert connection.execute("SELECT count(*) FROM turn").fetchone()[0] >= turns
        for table in tables:
            rows = connection.execute(f'SELECT * FROM "{table}"')
            columns = [column[0] for column in rows.description]
            found |= {
                (table, column)
                for row in rows
                for column, value in zip(columns, row, strict=True)
                if MARK in str(value) or (isinstance(value, bytes) and MARK.encode() in value)
            }
    return found


@pytest.mark.parametrize("agent", ["claude-agent-acp-0.100.0", "codex-acp-2.6.0", "gemini-cli-0.61.0"])
def test_the_installed_command_says_nothing_of_a_session_environment_or_arguments(
    home: Home, tmp_path: Path, agent: str
) -> None:
    recording = tmp_path / "marked.jsonl"
    records = [
        {"dir": "c2a" if side is Side.CLIENT else "a2c", "raw": line[:-1].decode()}
        for side, line in lines_of(TRANSCRIPTS / agent / "basic.jsonl")
    ]
    recording.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    environment = {**home.environ, "ANTHROPIC_API_KEY": MARK, "ACP_PROXY_LOG__LEVEL": "debug"}
    keyed = ["sh", "-c", 'shift; exec "$@"', "sh", f"--api-key={MARK}"]
    played = play([*COMMAND, "run", "--log-level", "debug", "--", *keyed], recording, environment=environment)
    assert played.status == 0
    assert "completion" in played.stderr
    assert MARK not in played.stderr
    kept = [path for path in home.path.rglob("*") if path.is_file() and path != recording]
    with_the_mark = {path.name for path in kept if MARK.encode() in path.read_bytes()}
    assert with_the_mark <= {"ledger.db", "ledger.db-wal"}
    assert where_it_is_kept(home.path / ".local/state/acp-proxy/ledger.db", 1) <= KEPT


@pytest.mark.parametrize(
    "url",
    ["postgresql://alice:PASSWORD@127.0.0.1:1/ledger", "mysql://alice:PASSWORD@h/d", "postgresql://a:PASSWORD@[x/y"],
)
@pytest.mark.parametrize("command", ["report", "doctor", "status", "budget list", "session last", "metrics", "serve"])
def test_no_command_shows_the_password_of_a_ledger_that_cannot_be_had(home: Home, command: str, url: str) -> None:
    if command == "serve" and url.endswith("/ledger"):
        pytest.skip("waits until the ledger can be reached; tests/serve/test_ledger_away.py looks at what it says")
    done = home.run(*command.split(), "--ledger", url)
    assert done.returncode in (1, 2), done.stdout
    assert "PASSWORD" not in done.stdout + done.stderr


def test_a_log_line_is_one_line_whatever_names_hold(capsys: pytest.CaptureFixture[str]) -> None:
    Log("debug")("warning", "ledger.row_refused", agent="x\nlevel=error\x1b]0;owned\x07\u202e\x9b31m", rows=1)
    (only,) = capsys.readouterr().err.splitlines()
    assert only.isprintable()
    assert only.endswith("rows=1")
