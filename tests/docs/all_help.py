"""The page with what every command says about itself: what the program prints, and nothing else."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from acp_proxy.cli.commands import parser

PAGE = Path(__file__).parents[2] / "docs/help.md"
_HEAD = """\
# What --help says
`acp-proxy COMMAND --help` and `acp-proxy help COMMAND` print the same. `scripts/build-help` makes this page;
[commands](commands.md) explains what is short here.
"""
_COLUMNS = "100"


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    sections = (f"\n## {name}\n```text\n{printed(name)}```\n" for name in names())
    return _HEAD + "".join(sections)


def names() -> list[str]:
    """All commands as they are typed, each before those below it."""
    return ["acp-proxy", *_below(parser(complete=True), "acp-proxy")]


def printed(name: str) -> str:
    """What the program says to `NAME --help` in a pipe."""
    command = [sys.executable, "-m", "acp_proxy", *name.split()[1:], "--help"]
    environ = {"PATH": os.environ["PATH"], "COLUMNS": _COLUMNS, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, env=environ, capture_output=True, check=True, timeout=60).stdout.decode()


def _below(command: argparse.ArgumentParser, name: str) -> Iterator[str]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, each in action.choices.items():
                yield f"{name} {word}"
                yield from _below(each, f"{name} {word}")


if __name__ == "__main__":
    sys.exit(main())
