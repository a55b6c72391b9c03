"""Rules of the house that no linter knows: what is loaded when, what the core may touch, who may write to stdout."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "acp_proxy"
MODULES = sorted(PACKAGE.rglob("*.py"))

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
MAY_WRITE_TO_STDOUT = {"answers.py", "cli.py", "demo.py", "demo_agent.py"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
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
    assert {name for name in loaded_by("acp_proxy.start") if "." not in name} <= {"acp_proxy", *CHEAP}


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda path: path.name)
def test_the_core_imports_only_itself_and_value_modules(path: Path) -> None:
    foreign = {name for name in imports(path) if not _allowed_in_core(name)}
    assert foreign == set()


def _allowed_in_core(name: str) -> bool:
    return any(name == allowed or name.startswith(allowed + ".") for allowed in CORE_MAY_IMPORT)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_stdout_belongs_to_the_wire_and_to_the_commands_that_people_read(path: Path) -> None:
    if path.name in MAY_WRITE_TO_STDOUT:
        return
    assert [ast.unparse(node) for node in ast.walk(ast.parse(path.read_bytes())) if _writes_to_stdout(node)] == []


def _writes_to_stdout(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print"), keywords=keywords):
            return "sys.stderr" not in [ast.unparse(word.value) for word in keywords if word.arg == "file"]
        case ast.Attribute():
            return ast.unparse(node) in ("sys.stdout", "sys.__stdout__")
    return False


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    source = ast.parse(path.read_bytes())
    assert not source.body or ast.get_docstring(source)
