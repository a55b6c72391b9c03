"""The entry for a team's own registry of agents: as the public registry's schema and rules have it, and it starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import copytree
from xml.etree import ElementTree

import pytest
from jsonschema import Draft7Validator

from acp_proxy import __version__

DEPLOY = Path(__file__).parents[2] / "deploy"
PROJECT = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENTRIES = sorted((DEPLOY / "registry").glob("*/agent.json"))
# agent.schema.json of github.com/agentclientprotocol/registry (Apache-2.0), as it was in September 2026.
SCHEMA = json.loads((Path(__file__).parent / "data/agent.schema.json").read_text(encoding="utf-8"))


def test_an_entry_is_what_the_published_schema_asks_for() -> None:
    assert ENTRIES
    check = Draft7Validator(SCHEMA, format_checker=Draft7Validator.FORMAT_CHECKER)
    assert [error.message for path in ENTRIES for error in check.iter_errors(json.loads(path.read_text()))] == []


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.parent.name)
def test_an_entry_is_named_as_its_directory_and_says_what_the_package_says(path: Path) -> None:
    entry = json.loads(path.read_text(encoding="utf-8"))
    assert entry["id"] == path.parent.name
    assert entry["version"] == __version__
    assert entry["repository"] == PROJECT["urls"]["Source"]
    assert entry["website"] == PROJECT["urls"]["Documentation"]
    assert entry["license"] == PROJECT["license"]
    assert entry["distribution"]["uvx"]["package"] == f"acp-proxy=={__version__}"
    assert re.search(r"@\d+\.\d+\.\d+$", entry["distribution"]["uvx"]["args"][-1])  # of the agent


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.parent.name)
def test_what_an_entry_starts_relays_the_agent(tmp_path: Path, path: Path) -> None:
    """In place of npx stands a program that notes its arguments, and then answers as an agent."""
    args = json.loads(path.read_text(encoding="utf-8"))["distribution"]["uvx"]["args"]
    npx = tmp_path / "npx"
    npx.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/asked"\nexec "{sys.executable}" -m acp_proxy.demo_agent\n')
    npx.chmod(0o755)
    done = subprocess.run(
        [Path(sys.executable).parent / "acp-proxy", *args],
        env={"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"},
        input='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n',
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["protocolVersion"] == 1
    assert (tmp_path / "asked").read_text().split() == args[args.index("npx") + 1 :]


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.parent.name)
def test_an_icon_is_of_16_pixels_and_has_the_colour_of_the_text_around_it(path: Path) -> None:
    text = (path.parent / "icon.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)  # noqa: S314 (a file of our own)
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = {each.get(name) for each in root.iter() for name in ("fill", "stroke")} - {None}
    assert colours == {"currentColor", "none"}
    assert [word for word in ("<!--", "<style", "style=", "href") if word in text] == []


@pytest.mark.needs("jq")
def test_the_commands_of_the_readme_make_a_registry(tmp_path: Path) -> None:
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n((?:(?!```).*\n)*.*registry\.json\n(?:.*\n)*?)```$", readme, re.MULTILINE)
    copytree(DEPLOY / "registry", tmp_path / "deploy/registry")
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", "-euc", commands], cwd=tmp_path, env=environ, check=True, timeout=60)
    made = json.loads((tmp_path / "site/registry.json").read_text(encoding="utf-8"))
    assert [agent["id"] for agent in made["agents"]] == [path.parent.name for path in ENTRIES]
    for agent in made["agents"]:
        Draft7Validator(SCHEMA).validate(agent)
        address, _, icon = agent["icon"].rpartition("/")
        assert address == "https://agents.example.org"
        assert (tmp_path / "site" / icon).is_file()
