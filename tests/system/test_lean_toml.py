"""TOML without patterns that most files do not need."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FILE = """
a = [0x1F, 1_000, -2.5e3]
day = 2026-11-28
at = 2026-11-28T12:00:00.5Z
alarm = 07:32:00
[table]
"b.c" = { key = "text", yes = true }
"""
CODE = """
import re, sys
sys.path.insert(0, sys.argv[1])
from acp_proxy.system.lean_toml import toml
print(toml().loads('text = "x"'), "string" in sys.modules, sys.modules["re"] is re)
print(toml().loads(sys.argv[2]))
try:
    toml().loads("a = 1\\nb = ")
except toml().TOMLDecodeError as error:
    print(error)
import string, tomllib
print(string.Template("$x").substitute(x=1), tomllib is toml())
"""


def test_a_file_is_read_as_ever_and_who_imports_the_rest_gets_it() -> None:
    command = [sys.executable, "-I", "-S", "-c", CODE, str(ROOT), FILE]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    as_ever = str(tomllib.loads(FILE))
    assert told.splitlines() == ["{'text': 'x'} False True", as_ever, "Invalid value (at end of document)", "1 True"]
