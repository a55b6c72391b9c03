"""The documentation and the program name the same commands, options and configuration keys."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy import config
from acp_proxy.cli.commands import parser
from acp_proxy.config.schema import KEYS, check_of, pattern_of
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.report import BY

ROOT = Path(__file__).parent.parent
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def test_every_command_has_a_section() -> None:
    assert sorted(sections()) == sorted(commands())


@pytest.mark.parametrize("command", re.findall(r"^## ([a-z]+)$", COMMANDS, re.MULTILINE))
def test_the_section_of_a_command_has_its_options_and_no_others(command: str) -> None:
    known = options(commands()[command])
    common = {"--config", "--ledger", "--help"}
    assert options_in(sections()[command]) - common == known - common


def test_options_of_every_command_stand_before_the_commands() -> None:
    head = COMMANDS.partition("\n## ")[0]
    assert options_in(head) == {"--config", "--ledger", "--version", "--help"}


def test_the_keys_of_report_are_listed() -> None:
    row = next(line for line in COMMANDS.splitlines() if line.startswith("| `--by KEY`"))
    assert tuple(re.findall(r"`(\w+)`", row)) == BY


def test_the_table_of_keys_is_the_configuration() -> None:
    table = re.findall(r"^\| `([^`]+)` \|", CONFIGURATION, re.MULTILINE)
    assert [re.sub(r'"[A-Z]+"', "*", key) for key in table] == sorted(KEYS, key=list(KEYS).index)


def test_the_example_of_the_whole_file_has_every_key_and_is_valid() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", CONFIGURATION, re.DOTALL)
    found = list(leaves(tomllib.loads(example)))
    assert {".".join(pattern_of(key)) for key, _ in found} == set(KEYS)
    for key, value in found:
        check = check_of(key)
        assert check
        check(value)


def test_every_table_of_the_ledger_is_explained() -> None:
    steps = "".join(part for step in MIGRATIONS for part in step if isinstance(part, str))
    page = (ROOT / "docs/ledger.md").read_text(encoding="utf-8")
    explained = page.partition("\n## What is in which table\n")[2].partition("\n## ")[0]
    tables = re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", steps)
    assert "restored" in tables
    assert [name for name in tables if f"`{name}`" not in explained] == []


def test_defaults_stand_in_the_table(tmp_path: Path) -> None:
    defaults = config.load({}, {"HOME": "/home/alice"}, admin_file=tmp_path / "none")
    for key, value in (
        ("identity.organisation", defaults.identity.organisation),
        ("run.summary", defaults.run.summary),
        ("run.estimate", defaults.run.estimate),
        ("log.level", defaults.log.level),
        ("ledger.url", defaults.ledger.url.replace("/home/alice", "~")),
        ("ledger.on_unavailable", defaults.ledger.on_unavailable),
        ("ledger.admission_timeout", f"{defaults.ledger.admission_timeout * 1000:.0f}ms"),
        ("ledger.titles", defaults.ledger.titles),
        ("pricing.cache_write", defaults.pricing.cache_write),
        ("share_titles", defaults.share_titles),
    ):
        row = next(line for line in CONFIGURATION.splitlines() if line.startswith(f"| `{key}`"))
        assert row.split(" | ")[2] == f"`{json.dumps(value).strip(chr(34))}`"


def sections() -> dict[str, str]:
    """The parts of docs/commands.md by their commands."""
    _, *parts, _ = re.split(r"^## ", COMMANDS, flags=re.MULTILINE)  # the last is about exit statuses
    return {part.partition("\n")[0]: part for part in parts}


def commands() -> dict[str, argparse.ArgumentParser]:
    return subcommands(parser(complete=True))


def subcommands(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options(command: argparse.ArgumentParser) -> set[str]:
    """The long options of a command and of those below it."""
    own = {option for action in command._actions for option in action.option_strings if option.startswith("--")}
    return own.union(*(options(below) for below in subcommands(command).values()))


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def leaves(table: dict[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, name))
        elif isinstance(value, list) and value and isinstance(value[0], dict):  # an array of tables
            yield from (leaf for each in value for leaf in leaves(each, (*above, name)))
        else:
            yield (*above, name), value
