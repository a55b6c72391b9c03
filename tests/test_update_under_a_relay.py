"""A relay whose package is updated or removed while it runs goes on with what it has loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.log import Log
from tests.agents.client import line, running, send, send_and_close

ROOT = Path(__file__).parents[1]
AGENT = (sys.executable, str(ROOT / "acp_proxy/demo_agent.py"))


def environ_of(home: Path, package: Path) -> dict[str, str]:
    paths = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(package)}
    return {**paths, "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}  # nothing is written where files are removed


def ask(process: Any, id: int, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    send(process.stdin, json.dumps(message).encode() + b"\n")
    while (answer := json.loads(line(process.stdout))).get("id") != id:
        pass
    return answer["result"]


@pytest.mark.parametrize(("options", "last"), [((), b"sqlite.ledger"), (("--budget", "5"), b"accounts.live_standings")])
def test_a_session_that_opens_after_the_package_went_is_relayed_priced_and_booked(
    options: tuple[str, ...], last: bytes, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "acp_proxy", site / "acp_proxy", ignore=shutil.ignore_patterns("__pycache__"))
    ours = (sys.executable, "-X", "importtime", "-m", "acp_proxy", "run", "--no-summary", *options)
    with running(*ours, "--", *AGENT, env=environ_of(tmp_path, site), cwd=tmp_path) as process:
        ask(process, 1, "initialize", protocolVersion=1)
        loaded = iter(partial(line, process.stderr), b"")
        assert any(b" acp_proxy.ledger.%s\n" % last in each for each in loaded)  # told when it is there, as the last
        shutil.rmtree(site)
        ask(process, 2, "session/new", cwd="/", mcpServers=[])
        answer = ask(process, 3, "session/prompt", sessionId="demo-session", prompt=[])
        send_and_close(process.stdin, b"")
        said = process.stderr.read()
        assert (answer["stopReason"], process.wait()) == ("end_turn", 0)
    assert b"event=" not in said.replace(b"event=ledger.rows_left", b"")  # as a busy machine leaves them to the next
    report = [sys.executable, "-m", "acp_proxy", "report", "--json"]
    env = environ_of(tmp_path, ROOT)
    total = json.loads(subprocess.run(report, env=env, cwd=tmp_path, capture_output=True, check=True).stdout)["total"]
    assert (total["turns"], total["unpriced_turns"], total["cost"]) == (1, 0, {"USD": "0.031359"})


@pytest.mark.parametrize("left", [None, object()], ids=["gone", "half gone"])
def test_a_log_whose_library_went_is_written_all_the_same_on_one_line_each(
    left: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "structlog", left)  # as the import system leaves them
    log = Log("warning")
    log("info", "not wanted")
    log("warning", "ledger.failed", error='no "module"\n\x1b[31mx', pending=2, url=None)
    log("error", "interceptor failed", who="Meter")
    lines = capsys.readouterr().err.splitlines()
    assert [each.partition(" ")[2] for each in lines] == [
        r'logger=acp-proxy level=warning event=ledger.failed error="no \"module\"\n\x1b[31mx" pending=2 url=',
        'logger=acp-proxy level=error event="interceptor failed" who=Meter',
    ]
    assert all(each.startswith("timestamp=20") for each in lines)
