"""Agents of the ACP registry in Zed's settings: behind acp-proxy where they stand, and given back."""

from __future__ import annotations

import json

import pytest

from acp_proxy.setup.registry import Started, of_zed
from tests.setup.machine import Machine

CLAUDE = ["run", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp"]
REGISTRY = {
    "version": "1.0.0",
    "agents": [
        {
            "id": "auggie",
            "name": "Auggie CLI",
            "version": "0.15.0",
            "distribution": {
                "npx": {
                    "package": "@augmentcode/auggie@0.15.0",
                    "args": ["--acp"],
                    "env": {"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
                }
            },
        },
        {
            "id": "factory-droid",
            "name": "Factory Droid",
            "version": "1.0.0",
            "distribution": {
                "binary": {
                    "linux-x86_64": {"archive": "droid.tar.gz", "cmd": "./droid", "args": ["exec", "acp"]},
                    "windows-x86_64": {"archive": "droid.zip", "cmd": "droid.exe", "args": ["exec", "acp"]},
                }
            },
        },
        {"id": "minion", "distribution": {"uvx": {"package": "minion-code==0.1.4", "args": ["acp"]}}},
        {"id": "next-year", "distribution": {"docker": {"image": "agent"}}},
        {"id": 7},
    ],
}


def _install(machine: Machine, *programs: str) -> None:
    for program in programs:
        (machine.home / "bin" / program).touch(mode=0o755)


def _write_registry(machine: Machine, text: str) -> None:
    path = machine.home / ".local/share/zed/external_agents/registry/registry.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_an_agent_of_the_registry_keeps_its_name_and_all_that_the_user_set(machine: Machine) -> None:
    _install(machine, "npx")
    before = """{
  "agent_servers": {
    "claude-acp": {
      "type": "registry", // from the registry
      "env": { "CLAUDE_CONFIG_DIR": "~/work" },
      "default_mode": "plan",
    },
  },
}
"""
    path = machine.write("zed", before)
    answer = machine.setup("zed")
    assert "claude-acp is behind acp-proxy now." in answer
    assert path.read_text() == before.replace(
        '"registry", //',
        '"custom",\n      "command": "acp-proxy",\n'
        '      "args": ["run", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp"], //',
    )
    assert machine.setup("zed") == "claude-acp is behind acp-proxy already.\n"
    machine.setup("zed", undo=True)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("entry", "env"),
    [
        ('{"type": "registry"}', {"AUGMENT_DISABLE_AUTO_UPDATE": "1"}),
        ('{"type": "registry", "env": {}}', {"AUGMENT_DISABLE_AUTO_UPDATE": "1"}),
        ('{"type": "registry", "env": {"A": "b"}}', {"AUGMENT_DISABLE_AUTO_UPDATE": "1", "A": "b"}),
        (
            '{"type": "registry", "env": {"AUGMENT_DISABLE_AUTO_UPDATE": "0"}}',
            {"AUGMENT_DISABLE_AUTO_UPDATE": "0"},
        ),
    ],
)
def test_arguments_and_environment_come_from_the_registry_and_the_users_win(
    machine: Machine, entry: str, env: dict[str, str]
) -> None:
    _install(machine, "npx")
    _write_registry(machine, json.dumps(REGISTRY))
    path = machine.write("zed", f'{{"agent_servers": {{"auggie": {entry}}}}}')
    machine.setup("zed")
    assert json.loads(path.read_text())["agent_servers"]["auggie"] == {
        "type": "custom",
        "command": "acp-proxy",
        "args": ["run", "--", "npx", "-y", "@augmentcode/auggie", "--acp"],
        "env": env,
    }


def test_what_the_copy_of_the_registry_says_starts_an_agent(machine: Machine) -> None:
    _install(machine, "droid", "uvx")
    _write_registry(machine, json.dumps(REGISTRY))
    started = of_zed(machine.environ)
    assert started["factory-droid"] == Started(("droid", "exec", "acp"))
    assert started["minion"] == Started(("uvx", "minion-code", "acp"))
    assert started["auggie"].lacks == "npx"
    assert "next-year" not in started


@pytest.mark.parametrize("text", ["", "{", "[]", '{"agents": 3}', '{"agents": [{"id": "claude-acp"}]}'])
def test_a_copy_that_cannot_be_read_leaves_what_is_known(machine: Machine, text: str) -> None:
    _install(machine, "npx")
    _write_registry(machine, text)
    assert of_zed(machine.environ)["claude-acp"] == Started(("npx", "-y", "@agentclientprotocol/claude-agent-acp"))


def test_a_program_that_is_installed_stands_in_for_npx(machine: Machine) -> None:
    _install(machine, "gemini")
    assert of_zed(machine.environ)["gemini"] == Started(("gemini", "--acp"))


def test_an_agent_is_found_by_what_it_is_called_and_by_its_id(machine: Machine) -> None:
    _install(machine, "npx")
    before = '{"agent_servers": {"claude-acp": {"type": "registry"}, "codex-acp": {"type": "registry"}}}'
    path = machine.write("zed", before)
    machine.setup("zed", "claude")
    servers = json.loads(path.read_text())["agent_servers"]
    assert servers == {
        "claude-acp": {"type": "custom", "command": "acp-proxy", "args": CLAUDE},
        "codex-acp": {"type": "registry"},
    }
    machine.setup("zed", "codex-acp")
    machine.setup("zed", "claude-acp", undo=True)
    servers = json.loads(path.read_text())["agent_servers"]
    assert servers["claude-acp"] == {"type": "registry"}
    assert servers["codex-acp"]["command"] == "acp-proxy"
    machine.setup("zed", undo=True)
    assert path.read_text() == before


def test_an_undo_after_a_change_gives_an_agent_back_to_the_registry(machine: Machine) -> None:
    _install(machine, "npx")
    before = '{\n  "agent_servers": {\n    "claude-acp": {\n      "type": "registry",\n      "env": {"A": "b"}\n}}}'
    path = machine.write("zed", before)
    machine.setup("zed")
    path.write_text(path.read_text().replace('"A": "b"', '"A": "c"'))
    machine.setup("zed", undo=True)
    assert path.read_text() == before.replace('"A": "b"', '"A": "c"')


def test_what_the_user_wrote_between_the_lines_of_setup_is_not_taken_out(machine: Machine) -> None:
    _install(machine, "npx")
    path = machine.write("zed", '{"agent_servers": {"claude-acp": {"type": "registry"}}}')
    machine.setup("zed")
    path.write_text(path.read_text().replace('"command"', '"default_mode": "plan", "command"'))
    machine.setup("zed", undo=True)
    assert json.loads(path.read_text())["agent_servers"]["claude-acp"] == {
        "type": "custom",
        "default_mode": "plan",
        "command": "npx",
        "args": ["-y", "@agentclientprotocol/claude-agent-acp"],
    }


def test_an_agent_that_is_of_the_registry_and_has_a_command_is_the_users_to_decide(machine: Machine) -> None:
    _install(machine, "npx")
    machine.write("zed", '{"agent_servers": {"claude-acp": {"type": "registry", "command": "claude"}}}')
    assert "claude-acp comes from the registry and has a command; expected one of the two" in machine.refusal("zed")


def test_a_registry_agent_that_nothing_here_starts_is_named_with_what_is_missing(machine: Machine) -> None:
    _write_registry(machine, json.dumps(REGISTRY))
    machine.write(
        "zed", '{"agent_servers": {"factory-droid": {"type": "registry"}, "next-year": {"type": "registry"}}}'
    )
    refused = machine.refusal("zed")
    assert "does not start factory-droid (`droid` is not on the PATH), next-year (the settings do not" in refused
