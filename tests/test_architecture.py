"""Rules of the house that no linter knows: what is loaded when, what the core may touch, who may write to stdout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("architecture")  # each module is parsed once for all tests of it

PACKAGE = Path(__file__).parent.parent / "acp_proxy"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = ("tests", "harness", "bench", "grafana")
OF_TESTS = [path for room in ROOMS for path in sorted((PACKAGE.parent / room).rglob("*.py"))]

# Value modules of the standard library, and the two decoders that the relay's path is built on.
CORE_MAY_IMPORT = {
    "__future__",
    "acp_proxy.core",
    "bisect",
    "collections",
    "contextlib",
    "datetime",
    "decimal",
    "enum",
    "functools",
    "_blake2",
    "hashlib",
    "io",  # BytesIO, a buffer that grows
    "itertools",
    "json",
    "msgspec",
    "operator",
    "orjson",
    "re",
    "typing",
}

# What a bare interpreter (without `site`) loads in no time, or has built in.
CHEAP = {"__future__", "_collections_abc", "_signal", "_stat", "abc", "genericpath", "os", "posixpath", "stat", "_abc"}
CHEAP |= {"errno"}  # is built in, and Python 3.14 starts with it

# Commands that people read; everywhere else stdout is the wire.
MAY_WRITE_TO_STDOUT = ("status/cache.py", "cli/", "demo.py", "demo_agent.py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(_parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom():
                yield "(a relative import)"


def loaded_by(module: str) -> set[str]:
    """What a fresh interpreter has loaded after importing `module`, beyond what it starts with."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); before = set(sys.modules); import {module};"
        "print(*(set(sys.modules) - before))"
    )
    # -S: `site`, and what an editable install hooks into it, is not ours.
    command = [sys.executable, "-I", "-S", "-c", code]
    return set(subprocess.run(command, capture_output=True, check=True, text=True, timeout=30).stdout.split())


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("acp_proxy") == {"acp_proxy"}


def test_what_starts_the_agent_loads_nothing_that_takes_time() -> None:
    assert {name for name in loaded_by("acp_proxy.startup.start") if "." not in name} <= {"acp_proxy", *CHEAP}


def test_the_core_imports_only_itself_and_value_modules() -> None:
    core = [path for path in MODULES if PACKAGE / "core" in path.parents]
    assert core
    assert [f"{path.name}: {name}" for path in core for name in imports(path) if not _allowed_in_core(name)] == []


def _allowed_in_core(name: str) -> bool:
    return any(name == allowed or name.startswith(allowed + ".") for allowed in CORE_MAY_IMPORT)


def test_stdout_belongs_to_the_wire_and_to_the_commands_that_people_read() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for path in MODULES
        if not path.relative_to(PACKAGE).as_posix().startswith(MAY_WRITE_TO_STDOUT)
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.expr) and _writes_to_stdout(node)
    ]
    assert found == []


def _writes_to_stdout(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print"), keywords=keywords):
            return "sys.stderr" not in [ast.unparse(word.value) for word in keywords if word.arg == "file"]
        case ast.Attribute():
            return ast.unparse(node) in ("sys.stdout", "sys.__stdout__")
    return False


def test_decoders_are_made_by_who_makes_one_at_a_time() -> None:
    """The core makes those of Structs of its own that nobody else decodes, while it is imported."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for path in MODULES
        if path.name != "decoding.py" and PACKAGE / "core" not in path.parents
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.Call) and _makes_a_decoder(node)
    ]
    assert found == []


def _makes_a_decoder(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in ("Decoder", "convert") or (name == "decode" and any(word.arg == "type" for word in call.keywords))


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in MODULES if _parsed(path).body and not ast.get_docstring(_parsed(path))]
    assert silent == []


def test_the_map_of_the_house_names_every_module_and_none_in_two_rows() -> None:
    house = (
        (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Rooms")[2].partition("## ")[0]
    )
    rows = re.findall(r"^ +(.+?)(?: {4,}|$)", house, re.MULTILINE)
    assert [row for row in rows if rows.count(row) > 1] == []
    named = {"__init__", *re.findall(r"\w+", house)}
    rooms = [PACKAGE / room for room in ("dispatch", "relay")]  # others, and of the core `acp`, by their name alone
    found = [path.parent for room in ("core", "ledger") for path in sorted((PACKAGE / room).rglob("__init__.py"))]
    rooms += [room for room in found if room.name != "acp"]
    modules = [path.stem for room in (PACKAGE, *rooms) for path in room.glob("*.py")]
    assert [name for name in modules if name not in named] == []


def test_what_tests_and_measurements_share_stands_in_neither() -> None:
    borrowed = [
        f"{path.relative_to(PACKAGE.parent)}: {name}"
        for path in OF_TESTS
        if _may_borrow(path)
        for name in imports(path)
        if name.split(".")[0] == "tests" and (not _is_a_test(path) or name.rpartition(".")[2].startswith("test_"))
    ]
    assert borrowed == []


def _is_a_test(path: Path) -> bool:
    return path.relative_to(PACKAGE.parent).parts[0] == "tests"


def _may_borrow(path: Path) -> bool:
    """By its text: to parse all of them takes seconds."""
    name = rb"tests[\w.]*\.test_" if _is_a_test(path) else rb"tests\b"
    return re.search(rb"\b(?:from|import)\s+" + name, path.read_bytes()) is not None


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())
