"""What a reader copies out of the documentation is understood: commands are parsed, TOML is a valid configuration."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy import config
from acp_proxy.cli.commands import parser
from acp_proxy.hub.settings import load as hub_settings
from acp_proxy.startup import start
from acp_proxy.system.errors import UsageError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "deploy/README.md", *sorted((ROOT / "docs").glob("*.md"))]
MEANT = {"EDITOR": "zed", "KEY": "day", "COMMAND": "report", "ID": "last", "N": "1"}  # where any word will not do
NO_COMMAND = {"acp-proxy ended during"}  # but what it says


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_command_is_one_that_acp_proxy_understands(page: Path) -> None:
    for command in commands(page.read_text(encoding="utf-8")):
        try:
            understood(command)
        except (Exception, SystemExit) as error:
            pytest.fail(f"{command}: {error}")


def test_there_are_commands_to_look_at() -> None:
    assert len({command for page in PAGES for command in commands(page.read_text(encoding="utf-8"))}) > 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_block_of_toml_is_a_configuration(tmp_path: Path, page: Path) -> None:
    for number, text in enumerate(blocks(page.read_text(encoding="utf-8"), "toml")):
        if "project" in tomllib.loads(text):  # of a package
            continue
        if "database" in tomllib.loads(text):  # of a hub, whose own tests read it
            continue
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        if text.startswith("# hub.toml"):
            hub_settings(file, {"OIDC_SECRET": "secret"})
            continue
        config.load({"config": str(file)}, {"HOME": str(tmp_path)}, admin_file=tmp_path / "none")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_block_of_json_is_json(page: Path) -> None:
    for text in blocks(page.read_text(encoding="utf-8"), "json"):
        json.loads(text if text.startswith("{") else f"{{{text}}}")  # the latter is a part of a file


def commands(text: str) -> Iterator[str]:
    """As they are typed, without what a shell does with them: in blocks at the start of a line, or within backticks."""
    shells = "\n".join(block for language in ("sh", "console", "text") for block in blocks(text, language))
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^ *(?:\$ )?(acp-proxy [^\n]*)", shells, re.MULTILINE) + re.findall(
        r"`(acp-proxy [^`]+)`", prose
    )
    for line in found:
        command = re.split(r" #| [|>;&] |   ", line)[0].strip()
        if command not in NO_COMMAND:
            yield command


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)


def understood(command: str) -> None:
    """Raises what the command line raises for a mistake; one that is only named, without its arguments, is none."""
    words = [MEANT.get(word, word) for word in shlex.split(re.sub(r"\[.*?\]", "", command))[1:]]
    if {"--help", "--version", "help", "…"}.intersection(words):
        return
    try:
        if start.parse(words) is None:
            parser().parse_args(words)
    except UsageError as error:
        if (
            not re.match(f"no agent given|{' '.join(words)}: expected (--[a-z]+|[A-Z]+)[ ,;]", str(error))
            or len(words) > 2
        ):
            raise
