"""What a relay leaves unloaded: each of 64 windows keeps its own copy of what is imported."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.client import eventually, line, running, send, send_and_close

ROOT = Path(__file__).parents[2]
UNUSED = {"dataclasses", "inspect", "logging", "ssl", "subprocess", "textwrap", "tokenize"}
DEMO = "from acp_proxy import demo_agent; demo_agent.main()"
QUESTIONS = {
    "acp_proxy.core.acp.questions",
    "acp_proxy.core.budget.asking",
    "acp_proxy.dispatch.questions",
    "acp_proxy.interceptors.budgets.asking",
}
TURN = (
    {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
    {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {"id": 2, "method": "session/prompt", "params": {"sessionId": "demo-session", "prompt": []}},
)


def imported_by_a_relay(home: Path, *, path: str = "", prompts: int = 1) -> set[str]:
    """What `run` has imported after a whole turn with the bundled agent, and its row; the answers to all prompts.

    Its input stays open until the ledger has that: a relay whose input ends earlier has half a second for it, warns on
    a busy machine, and its log imports much.
    """
    command = [sys.executable, "-X", "importtime", "-m", "acp_proxy", "run", "--"]
    agent = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {DEMO}"]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{path}"}
    more = [{**TURN[-1], "id": 2 + number} for number in range(1, prompts)]
    said = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in (*TURN, *more))
    open_prompts = set(range(2, 2 + prompts))
    with (home / "imported").open("w") as told, running(*command, *agent, env=environ, stderr=told) as relay:
        send(relay.stdin, said.encode())
        while open_prompts:
            open_prompts.discard(json.loads(line(relay.stdout)).get("id"))
        assert eventually(lambda: has_row(home / ".local/state/acp-proxy/ledger.db"))
        send_and_close(relay.stdin, b"")
        assert relay.wait() == 0
    return {text.rpartition("|")[2].strip() for text in (home / "imported").read_text().splitlines()}


def has_row(ledger: Path) -> bool:
    """Seen by a reader that makes nothing: the relay makes the ledger, as on a new machine."""
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT 1 FROM turn").fetchone())
    except sqlite3.OperationalError:  # it is being made
        return False


def told(code: str, **environ: str) -> str:
    command = [sys.executable, "-c", code]
    environ |= {"PYTHONPATH": f"{environ.get('FIRST', '')}:{ROOT}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.stdout


def test_a_relay_loads_no_module_that_it_never_uses(tmp_path: Path) -> None:
    imported = imported_by_a_relay(tmp_path)
    assert {"asyncio", "uvloop", "orjson", "sqlite3"} <= imported
    assert UNUSED & imported == set()


def test_who_is_refused_and_not_asked_in_the_editor_loads_nothing_of_it(tmp_path: Path) -> None:
    config = tmp_path / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[budget]]\nname = "none"\nwindow = "day"\nlimit = { turns = 1 }\n')
    imported = imported_by_a_relay(tmp_path, prompts=2)
    assert "acp_proxy.core.budget.refusal" in imported
    assert QUESTIONS & imported == set()


def test_interceptors_of_other_packages_find_all_of_asyncio(tmp_path: Path) -> None:
    distribution = tmp_path / "site/others-1.0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text("[acp_proxy.interceptors]\nnone = acp_proxy:Interceptor\n")
    assert {"ssl", "subprocess"} <= imported_by_a_relay(tmp_path, path=str(tmp_path / "site"))


def test_modules_that_were_left_out_can_be_imported_and_used_later() -> None:
    code = """
from acp_proxy.startup.relay_imports import import_for_relay
import_for_relay()
import asyncio, sys, uvloop
assert "ssl" not in sys.modules
def later():
    pass
async def coroutine():
    pass
async def used():
    asyncio.get_running_loop().call_exception_handler({"message": "told"})
    return asyncio.iscoroutinefunction(coroutine), asyncio.iscoroutinefunction(later), sys._getframe() is not None
import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
print(*asyncio.run(used()))
import inspect, ssl, subprocess, dataclasses
print(ssl.create_default_context().__class__.__name__, subprocess.run(["true"]).returncode, inspect.isclass(str))
"""
    assert told(code).split() == ["told", "True", "False", "True", "SSLContext", "0", "True"]


@pytest.mark.parametrize("asked", ["import logging\nlogging.Handler", "import ssl\nssl.OPENSSL_VERSION"])
def test_a_library_that_needs_more_of_such_a_module_gets_the_real_one(tmp_path: Path, asked: str) -> None:
    (tmp_path / "orjson.py").write_text(f"{asked}\nfound = True\n")
    code = (
        "from acp_proxy.startup.relay_imports import import_for_relay\n"
        "import_for_relay()\nimport orjson, asyncio\nprint(orjson.found)"
    )
    assert told(code, FIRST=str(tmp_path)) == "True\n"
