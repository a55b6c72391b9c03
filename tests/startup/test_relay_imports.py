"""What a relay leaves unloaded: each of 64 windows keeps its own copy of what is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNUSED = {"dataclasses", "inspect", "logging", "ssl", "subprocess", "textwrap", "tokenize"}
TURN = (
    {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
    {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {"id": 2, "method": "session/prompt", "params": {"sessionId": "demo-session", "prompt": []}},
)


def imported_by_a_relay(home: Path, *, path: str = "") -> set[str]:
    """What `run` has imported after a whole turn with the bundled agent."""
    command = [sys.executable, "-X", "importtime", "-m", "acp_proxy", "run", "--"]
    agent = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import acp_proxy.demo_agent"]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{path}"}
    said = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in TURN)
    done = subprocess.run(
        [*command, *agent], env=environ, input=said, capture_output=True, text=True, check=True, timeout=60
    )
    return {text.rpartition("|")[2].strip() for text in done.stderr.splitlines()}


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
