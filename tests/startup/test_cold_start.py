"""What commands that only look leave alone: each module that is imported is waited for, at each start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.sqlite.version import SCHEMA_VERSION
from harness.rows import MINUTE, line, row

ROOT = Path(__file__).parents[2]
WRITING = {
    f"acp_proxy.ledger.{name}"
    for name in (
        *("accounts.holding", "accounts.overshoot", "journal.records", "journal.recovery", "journal.writer"),
        *("migrations", "notices", "settings", "sql_ledger", "sqlite.ledger", "sqlite.schema", "sqlite.fair_lock"),
        *("sums.tallied", "sums.tallies", "worker", "writing.appending", "writing.rows"),
    )
}
HEAVY = {"asyncio", "csv", "dataclasses", "difflib", "inspect", "logging", "orjson", "rich", "socket", "subprocess"}
if sys.version_info >= (3, 14):
    HEAVY -= {"dataclasses", "inspect"}  # argparse takes them along, for its colours
RELAYING = {f"acp_proxy.{name}" for name in ("app", "dispatch", "interceptors", "relay", "wiring", "core.pricing")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a turn of a moment ago, and a budget."""
    with closing(open_ledger(f"sqlite:///{tmp_path}/.local/state/acp-proxy/ledger.db", journals=())) as ledger:
        ledger.append([row(line("claude-sonnet-5", "1.25", input=1000), at=time.time_ns() - MINUTE)])
    config = tmp_path / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        '[[budget]]\nname = "daily"\nwindow = "rolling:24h"\nlimit = { amount = "5", currency = "USD" }\n'
    )
    return tmp_path


def imported(home: Path, *arguments: str) -> set[str]:
    """What the command has imported when it ends."""
    command = [sys.executable, "-X", "importtime", "-m", "acp_proxy", *arguments]
    ours = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    environ = ours | {"TZ": "UTC", "USER": "alice"}
    done = subprocess.run(command, env=environ, cwd=home, capture_output=True, text=True, check=False)
    assert (done.returncode, "1.25" in done.stdout) == (0, True)
    return {text.rpartition("|")[2].strip() for text in done.stderr.splitlines()}


def test_a_status_is_told_without_what_only_writes_json(home: Path) -> None:
    assert "json" not in imported(home, "status")


@pytest.mark.parametrize("command", ["status", "report", "report --by turn", "session last", "budget list"])
def test_who_only_looks_does_not_import_what_writes(home: Path, command: str) -> None:
    found = imported(home, *command.split())
    assert "acp_proxy.ledger.sqlite.reader" in found
    assert found & (WRITING | RELAYING | HEAVY) == set()


def test_a_ledger_at_the_last_step_is_known_without_the_steps() -> None:
    assert len(MIGRATIONS) == SCHEMA_VERSION


def test_a_status_takes_along_nothing_that_others_import_for_functions_that_nobody_calls(home: Path) -> None:
    taken_along = {
        *("platform", "textwrap", "urllib.parse", "ipaddress", "random", "unicodedata", "msgspec.inspect"),
        *("decimal", "ntpath", "numbers", "uuid", *(("datetime",) if sys.version_info < (3, 12) else ())),
    }
    if sys.version_info[:2] != (3, 12):
        taken_along.add("fnmatch")
    assert imported(home, "status") & taken_along == set()


@pytest.mark.parametrize("command", ["report", "budget list"])
def test_a_command_takes_along_no_translations_and_no_archives(home: Path, command: str) -> None:
    taken_along = {"gettext", "locale", "shutil", "lzma", "string", "decimal", "uuid", "copy"}
    assert imported(home, *command.split()) & taken_along == set()


def test_who_needs_what_was_not_taken_along_gets_it() -> None:
    code = """
from acp_proxy.startup.lean_imports import import_leanly
import_leanly()
import datetime, pathlib, msgspec, platform, urllib.parse, uuid
print(pathlib.Path("/a b").as_uri(), urllib.parse.quote("ü"), platform.node() != "", uuid.uuid4().version)
print(msgspec.json.schema(msgspec.defstruct("Point", [("x", int)]))["$ref"])
print(type(msgspec.inspect.type_info(int)).__name__, msgspec.toml.decode("a = 1"))
print(pathlib.Path("/a.b").match("*.b"), pathlib.PureWindowsPath("C:/a").parts[0])
day = datetime.datetime.strptime("2026-11-01", "%Y-%m-%d").date()
print(day, msgspec.json.decode(msgspec.json.encode(day), type=datetime.date) == day)
"""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [
        *("file:///a%20b %C3%BC True 4", "#/$defs/Point", "IntType {'a': 1}"),
        *("True C:\\", "2026-11-01 True"),
    ]


def test_who_only_looks_can_still_reckon_with_decimals() -> None:
    code = """
from acp_proxy.startup.lean_imports import import_leanly
import_leanly(only_to_look=True)
import decimal, uuid
from acp_proxy.core.money import Money
print(Money.of("0.0000000015", "USD").nano, decimal.Decimal("0.1"), uuid.UUID(int=0))
"""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["2", "0.1", "00000000-0000-0000-0000-000000000000"]


def test_an_msgspec_that_asks_more_of_what_is_put_off_gets_it(tmp_path: Path) -> None:
    package = tmp_path / "msgspec"
    package.mkdir()
    (package / "__init__.py").write_text("from .toml import __needed__\n")
    (package / "toml.py").write_text("__needed__ = 'all of it'\n")
    code = (
        "from acp_proxy.startup.lean_imports import import_leanly\n"
        "import_leanly()\nimport msgspec\nprint(msgspec.__needed__)"
    )
    environ = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("all of it\n", "")
