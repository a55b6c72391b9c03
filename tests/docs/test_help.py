"""The page of all commands' help is what the program prints, and commands end with the statuses told of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import all_help

COMMANDS = (all_help.PAGE.parent / "commands.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(r"^## (acp-proxy[^\n]*)\n```text\n(.*?)^```$", all_help.PAGE.read_text("utf-8"), re.M | re.S)
)
BUDGET = '[[budget]]\nname = "none"\nwindow = "day"\nlimit = {turns = 0}\n[[notify]]\nurl = "http://127.0.0.1:1/"\n'
ENDS = [
    ("run -- sh -c 'exit 7'", "the agent's"),
    ("run -- no-such-agent", "127"),
    ("run -- /", "126"),
    ("run", "2"),
    ("report", "0"),
    ("report --by nonsense", "2"),
    ("session last", "2"),
    ("session", "2"),
    ("status", "0"),
    ("status --format {nonsense}", "2"),
    ("budget list", "0"),
    ("budget check", "3"),
    ("budget grant nonsense --amount 1 --for 1h --reason test", "2"),
    ("export --focus", "0"),
    ("export", "2"),
    ("reconcile csv /dev/null", "2"),
    ("metrics", "0"),
    ("metrics --textfile /no/such/directory/file", "2"),
    ("notify test", "1"),
    ("notify test nonsense", "2"),
    ("setup --list", "0"),
    ("setup zed --undo", "2"),
    ("setup nonsense", "2"),
    ("prices show nonsense", "1"),
    ("prices", "2"),
    ("ledger copy", "2"),
    ("hub audit verify", "0"),
    ("hub audit verify --digest 00", "1"),
    ("hub token revoke nonsense", "2"),
    ("login https://127.0.0.1:1", "2"),
    ("logout https://hub.example.com", "2"),
    ("whoami", "2"),
    ("demo --nonsense", "2"),
    ("completion bash", "0"),
    ("completion nonsense", "2"),
    ("doctor", "0"),
    ("doctor --config nonsense", "1"),
    ("doctor --nonsense", "2"),
    ("serve --port nonsense", "2"),
]


def test_every_command_is_on_the_page_in_its_order() -> None:
    assert list(SECTIONS) == all_help.names()


@pytest.mark.parametrize("name", all_help.names())
def test_the_page_says_what_the_program_prints(name: str) -> None:
    assert (
        SECTIONS[name].split() == all_help.printed(name).split()
    )  # releases of Python differ in where they break lines


@pytest.mark.parametrize(("typed", "status"), ENDS)
def test_a_command_ends_as_the_table_says(tmp_path: Path, typed: str, status: str) -> None:
    config = tmp_path / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(BUDGET, encoding="utf-8")
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m acp_proxy {typed}', sys.executable],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (7 if status == "the agent's" else int(status)), done.stderr
    assert status in told(typed.split()[0])


def test_the_table_tells_no_failure_that_is_not_seen() -> None:
    seen = {(typed.split()[0], status) for typed, status in ENDS} | {("run", "128 + N"), ("demo", "1")}
    commands = re.findall(r"^\| `(\w+)` \|", TABLE, re.MULTILINE)
    assert {(command, status) for command in commands for status in told(command) - {"0"}} <= seen


TABLE = COMMANDS.partition("## Exit status")[2].partition("\n## ")[0]


def told(command: str) -> set[str]:
    """The statuses that the table has for a command."""
    (row,) = re.findall(rf"^\| `{command}` \| (.*) \|$", TABLE, re.MULTILINE)
    return {part.split(": ")[0] for part in row.split("; ")}
