"""`acp-proxy setup` in a home directory: what it adds, what it refuses, and that it loses nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_proxy.setup import NAMES
from acp_proxy.setup.changes import Machine as Home
from acp_proxy.setup.changes import SetupError, set_up
from acp_proxy.setup.editors import EDITORS
from acp_proxy.setup.originals import Original
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from tests.setup.machine import Machine

SETTINGS = '{"agent_servers": {"Mine": {"command": "agent", "args": []}}}\n'
OFFER = "`acp-proxy setup zed --agent claude` adds an agent (claude, codex, gemini, goose, opencode, qwen)"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_twice_is_the_same_as_once(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    machine.setup("zed")
    once = path.read_bytes()
    assert machine.setup("zed") == "Mine is behind acp-proxy already.\n"
    assert path.read_bytes() == once


def test_one_that_a_shell_puts_behind_acp_proxy_is_left_to_who_wrote_it(machine: Machine) -> None:
    settings = '{"agent_servers": {"Mine": {"command": "sh", "args": ["-c", "exec acp-proxy run -- agent"]}}}\n'
    path = machine.write("zed", settings)
    assert machine.setup("zed") == "Mine is behind acp-proxy already.\n"
    said = "Mine is behind acp-proxy within a line for a shell, which is yours to change"
    assert machine.setup("zed", "mine", undo=True) == f"{path}: {said}.\n"
    assert path.read_text() == settings


def test_a_dry_run_shows_the_change_and_writes_nothing(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    before = machine.everything()
    shown = machine.setup("zed", dry_run=True)
    assert machine.everything() == before
    assert machine.kept == []
    assert shown.splitlines()[-2:] == [
        f"-{SETTINGS.rstrip()}",
        '+{"agent_servers": {"Mine": {"command": "acp-proxy", "args": ["run", "--", "agent"]}}}',
    ]
    assert machine.setup("zed").startswith(shown)


def test_a_dry_run_of_an_undo_writes_nothing_either(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    machine.setup("zed")
    before = machine.everything(), machine.kept
    assert f"+{SETTINGS}" in machine.setup("zed", undo=True, dry_run=True)
    assert (machine.everything(), machine.kept) == before


def test_what_stands_in_settings_controls_no_terminal(machine: Machine) -> None:
    machine.write("zed", f"{SETTINGS.rstrip()} // \x1b[2J\x1b]0;title\x07\r\u202e\tmine\n")
    shown = machine.setup("zed", dry_run=True)
    assert not [sign for sign in ("\x1b", "\x07", "\r", "\u202e") if sign in shown]
    assert "\tmine\n" in shown


def test_the_name_of_a_vault_controls_no_terminal_either(machine: Machine) -> None:
    path = machine.vault("\x1b[2Jmine\n") / ".obsidian/plugins/agent-client/data.json"
    path.write_text('{"claude": {"command": "claude-agent-acp", "args": []}}')
    said = machine.setup("obsidian") + machine.typed("--list").stdout
    said += machine.setup("obsidian", undo=True) + machine.setup("obsidian", undo=True)
    machine.setup("obsidian")
    path.write_text(path.read_text() + "\n")
    said += machine.setup("obsidian", undo=True)
    assert "mine" in said
    assert "\x1b" not in said
    assert "mine\n/" not in said


@pytest.mark.parametrize(
    ("beside", "shown"),
    [
        ('"env": {"KEY": "sk-1", "A": ""}', '"env": {"KEY": "…", "A": ""}'),
        (
            '"env": [{"key": "MODEL", "value": "sk-1"}, {"name": "B", "value": "sk-2"}]',
            '"env": [{"key": "MODEL", "value": "…"}, {"name": "B", "value": "…"}]',
        ),
        ('"apiKey": "sk-1", "auth_token": ["sk-2"]', '"apiKey": "…", "auth_token": ["…"]'),
        (
            '"headers": {"Authorization": "Bearer sk-1"}, "x-api-key": "sk-2"',
            '"headers": {"Authorization": "…"}, "x-api-key": "…"',
        ),
        (
            '"more": ["-v", "--api-key", "sk-1", "run", "--token=sk-2", "--model", "opus"]',
            '"more": ["-v", "--api-key", "…", "run", "…", "--model", "opus"]',
        ),
        (
            '"more": ["env", "OPENAI_API_KEY=sk-1", "agent", "--header", "Authorization: Bearer sk-2", "api-key"]',
            '"more": ["env", "…", "agent", "--header", "…", "api-key"]',
        ),
        (
            '"more": ["--header=Authorization: Bearer sk-1", "--env=API_KEY=sk-2", "--url=//h?token=sk-3", "-a=b:c"]',
            '"more": ["…", "…", "…", "-a=b:c"]',
        ),
        ('"environment": "test", "max": 3', '"environment": "test", "max": 3'),
    ],
)
def test_what_may_be_a_secret_is_kept_and_not_shown(machine: Machine, beside: str, shown: str) -> None:
    settings = f'{{"agent_servers": {{"Mine": {{"command": "agent", "args": [], // "env"\n{beside}}}}}}}\n'
    path = machine.write("zed", settings)
    assert f"\n {shown}}}}}}}\n" in machine.setup("zed")
    assert beside in path.read_text()
    assert f"\n {shown}}}}}}}\n" in machine.setup("zed", undo=True)
    assert path.read_text() == settings


def test_in_a_terminal_the_change_is_coloured(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    shown = machine.setup("zed", colours=True, dry_run=True)
    assert f"\x1b[31m-{SETTINGS.rstrip()}\x1b[0m\n" in shown
    assert '\x1b[32m+{"agent_servers"' in shown


def test_a_mode_is_kept_and_nothing_is_left_beside_the_file(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    path.chmod(0o640)
    machine.setup("zed")
    assert path.stat().st_mode & 0o777 == 0o640
    machine.setup("zed", undo=True)
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [path]


def test_what_is_kept_is_for_nobody_else(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    machine.setup("zed")
    assert machine.kept
    assert {path.stat().st_mode & 0o777 for path in machine.kept} == {0o600}
    assert machine.kept[0].parent.stat().st_mode & 0o777 == 0o700


@AS_ROOT
def test_an_owner_is_kept(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    os.chown(path, 12345, 23456)
    machine.setup("zed")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_link_stays_and_what_it_leads_to_changes(machine: Machine) -> None:
    link = machine.settings_of("zed")
    real = machine.home / "dotfiles/zed.json"
    real.parent.mkdir()
    real.write_text(SETTINGS)
    link.symlink_to("../../dotfiles/zed.json")
    machine.setup("zed")
    assert link.readlink() == Path("../../dotfiles/zed.json")
    assert '"acp-proxy"' in real.read_text()
    machine.setup("zed", undo=True)
    assert link.is_symlink()
    assert real.read_text() == SETTINGS


def test_settings_with_another_hard_link_are_left_alone(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    other = machine.home / "dotfiles.json"
    other.hardlink_to(path)
    line = (
        "~/.config/zed/settings.json: has another hard link, which would keep the old text; "
        "replace one of them by a copy or a symbolic link, nothing was done"
    )
    assert machine.refusal("zed") == machine.refusal("zed", "claude") == line
    other.unlink()
    machine.setup("zed")
    other.hardlink_to(path)
    assert machine.refusal("zed", undo=True) == line
    assert other.samefile(path)
    other.unlink()
    machine.setup("zed", undo=True)
    assert path.read_text() == SETTINGS


@pytest.mark.parametrize("text", ["// mine", "// mine\n", "/* theme */\r\n// mine\r\n"])
def test_comments_alone_are_kept_before_the_agent_that_is_added(machine: Machine, text: str) -> None:
    path = machine.write("zed", text)
    machine.setup("zed", "gemini")
    comments, _, settings = path.read_bytes().decode().partition("{")
    assert comments.rstrip("\n") == text.rstrip("\n")
    assert list(json.loads("{" + settings)["agent_servers"]) == ["Gemini CLI (acp-proxy)"]
    machine.setup("zed", undo=True)
    assert path.read_bytes() == text.encode()


def test_where_there_is_no_file_an_agent_makes_one_and_an_undo_takes_it_away(machine: Machine) -> None:
    said = machine.setup("jetbrains", "gemini")
    path = machine.home / ".jetbrains/acp.json"
    assert json.loads(path.read_text()) == {
        "agent_servers": {"Gemini CLI (acp-proxy)": {"command": "acp-proxy", "args": ["run", "--", "gemini", "--acp"]}}
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert said.endswith("Gemini CLI (acp-proxy) was added. `acp-proxy setup jetbrains --undo` takes it back.\n")
    assert machine.setup("jetbrains", undo=True).endswith(f"{path} is gone, as it was before.\n")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{}",
        "{\n}\n",
        "\ufeff",
        "// mine\n{ /* nothing yet */ }\n",
        "// mine\n",
        "// mine",
    ],
)
def test_an_agent_is_added_to_settings_without_any(machine: Machine, text: str) -> None:
    path = machine.write("zed", text)
    machine.setup("zed", "claude")
    assert '"args": ["run", "--", "npx", "-y", "@agentclientprotocol/claude-agent-acp"]' in path.read_text()
    assert path.read_text().startswith(text.rstrip(" }*/\n"))
    assert machine.setup("zed", "claude") == "Claude Code (acp-proxy) is behind acp-proxy already.\n"
    machine.setup("zed", undo=True)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "entry",
    [
        '"Claude": {"command": "claude-agent-acp", "args": []}',
        '"CLAUDE": {"command": "anything", "args": []}',
        '"Work": {"command": "npx", "args": ["-y", "@agentclientprotocol/claude-agent-acp@0.100.0"]}',
        '"Work": {"command": "/usr/local/bin/claude-code-acp"}',
    ],
)
def test_an_agent_that_the_editor_has_is_wrapped_rather_than_added(machine: Machine, entry: str) -> None:
    path = machine.write("zed", f'{{"agent_servers": {{"Other": {{"command": "other"}}, {entry}}}}}')
    machine.setup("zed", "claude")
    servers = json.loads(path.read_text())["agent_servers"]
    assert len(servers) == 2
    assert servers.pop("Other") == {"command": "other"}
    (ours,) = servers.values()
    assert (ours["command"], ours["args"][:2]) == ("acp-proxy", ["run", "--"])


def test_an_agent_that_the_editor_starts_by_itself_gets_one_beside_it(machine: Machine) -> None:
    path = machine.write("zed", '{"agent_servers": {"claude": {"env": {}}}}')
    machine.setup("zed", "claude")
    assert list(json.loads(path.read_text())["agent_servers"]) == ["claude", "Claude Code (acp-proxy)"]


def test_acpx_and_obsidian_get_agents_under_the_names_that_they_know(machine: Machine) -> None:
    acpx, obsidian = machine.write("acpx", '{"agents": {}}'), machine.write("obsidian", "{}")
    command = ["acp-proxy", "run", "--", "goose", "acp"]
    machine.setup("acpx", "goose")
    assert json.loads(acpx.read_text()) == {"agents": {"goose": {"argv": command}}}
    machine.setup("obsidian", "gemini")
    machine.setup("obsidian", "goose")
    assert json.loads(obsidian.read_text()) == {
        "gemini": {"command": "acp-proxy", "args": ["run", "--", "gemini", "--acp"]},
        "customAgents": [{"id": "goose", "displayName": "goose", "command": "acp-proxy", "args": command[1:]}],
    }


def test_an_agent_is_added_behind_those_of_a_list(machine: Machine) -> None:
    mine = '{"id": "mine", "displayName": "Mine", "command": "agent", "args": []}'
    path = machine.write("obsidian", f'{{"customAgents": [{mine}]}}\n')
    machine.setup("obsidian", "goose")
    first, added = json.loads(path.read_text())["customAgents"]
    assert first == json.loads(mine)
    assert (added["command"], added["args"][:3]) == ("acp-proxy", ["run", "--", "goose"])
    assert path.read_text().startswith(f'{{"customAgents": [{mine},')
    machine.setup("obsidian", undo=True)
    assert path.read_text() == f'{{"customAgents": [{mine}]}}\n'


def test_agents_that_stay_outside_are_named(machine: Machine) -> None:
    machine.write("zed", SETTINGS.replace("}}}", '}, "claude-acp": {"type": "registry"}, "gemini": {}}}'))
    claude = "claude-acp (`npx` is not on the PATH)"
    outside = f"Not behind it: {claude}, gemini (the settings do not say what starts it); {OFFER}.\n"
    assert machine.setup("zed", dry_run=True).endswith(outside)
    assert machine.setup("zed").endswith(outside)
    assert machine.setup("zed") == f"Mine is behind acp-proxy already.\n{outside}"


def test_what_adds_an_agent_names_one_that_the_editor_starts_itself_and_has_no_other_of(machine: Machine) -> None:
    machine.write("zed", '{"agent_servers": {"claude-acp": {"type": "registry"}, "codex-acp": {"type": "registry"}}}')
    assert "setup zed --agent claude` adds an agent" in machine.refusal("zed")
    machine.setup("zed", "claude")
    assert "setup zed --agent codex` adds an agent" in machine.setup("zed")
    machine.setup("zed", "codex")
    assert "setup zed --agent claude` adds an agent" in machine.setup("zed")


def test_one_agent_can_be_taken_back_and_then_the_rest(machine: Machine) -> None:
    two = '{"agent_servers": {"A": {"command": "a", "args": []}, "B": {"command": "b", "args": ["x"]}}}'
    path = machine.write("zed", two)
    machine.setup("zed")
    assert machine.setup("zed", "a", undo=True).endswith("A is no longer behind acp-proxy.\n")
    assert path.read_text() == two.replace('"b", "args": [', '"acp-proxy", "args": ["run", "--", "b", ')
    assert machine.setup("zed", "a", undo=True) == f"{path}: a is not behind acp-proxy.\n"
    machine.setup("zed", undo=True)
    assert path.read_text() == two


def test_what_the_user_changed_since_outlives_an_undo(machine: Machine) -> None:
    path = machine.write("zed", '{"agent_servers": {"Mine": {"command": "agent", "args": ["--acp"]}}}\n')
    machine.setup("zed")
    path.write_text(path.read_text().replace("}}}", '}}, "theme": "One"}'))
    answer = machine.setup("zed", undo=True)
    assert answer.endswith(f"{path} was changed since: only what starts the agents was put back.\n")
    assert path.read_text() == '{"agent_servers": {"Mine": {"command": "agent", "args": ["--acp"]}}, "theme": "One"}\n'


def test_an_undo_after_a_change_and_a_second_setup_gives_back_the_change(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    machine.setup("zed")
    path.write_text(path.read_text().replace("}}}", '}, "New": {"command": "new", "args": []}}}'))
    machine.setup("zed")
    machine.setup("zed", undo=True)
    assert path.read_text() == SETTINGS.replace("}}}", '}, "New": {"command": "new", "args": []}}}')


BY_HAND = '"Hand": {"command": "acp-proxy", "args": ["run", "--team", "core", "--", "hand"]}'


def test_an_agent_put_behind_acp_proxy_by_hand_outlives_setup_and_undo(machine: Machine) -> None:
    text = SETTINGS.replace("}}}", f"}}, {BY_HAND}}}}}")
    path = machine.write("zed", text)
    assert "Mine is behind acp-proxy now." in machine.setup("zed")
    assert BY_HAND in path.read_text()
    machine.setup("zed", undo=True)
    assert path.read_text() == text
    assert machine.setup("zed", undo=True) == (
        f"{path}: no setup of it is remembered, Hand is behind acp-proxy as before; "
        "`acp-proxy setup zed --undo --agent NAME` takes one out.\n"
    )
    assert path.read_text() == text


def test_an_undo_of_changed_settings_takes_back_only_what_setup_did(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS.replace("}}}", f"}}, {BY_HAND}}}}}"))
    machine.setup("zed")
    path.write_text(path.read_text().replace("}}}", '}, "New": {"command": "new", "args": []}}}'))
    machine.setup("zed")
    path.write_text(path.read_text().replace("}}}", '}}, "theme": "One"}'))
    machine.setup("zed", undo=True)
    servers = json.loads(path.read_text())["agent_servers"]
    assert {name: entry["command"] for name, entry in servers.items()} == {
        "Mine": "agent",
        "Hand": "acp-proxy",
        "New": "new",
    }


def test_an_agent_that_setup_added_outlives_the_undo_of_changed_settings_and_that_is_said(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    machine.setup("zed", "claude")
    path.write_text(f"{path.read_text()}// mine\n")
    assert machine.setup("zed", undo=True).endswith(
        "only what starts the agents was put back.\n"
        "Still there, as you may have come to use it, without acp-proxy: Claude Code (acp-proxy).\n"
    )
    added = json.loads(path.read_text().removesuffix("// mine\n"))["agent_servers"]["Claude Code (acp-proxy)"]
    assert added["command"] == "npx"


def test_one_agent_can_be_taken_out_whoever_put_it_behind_acp_proxy(machine: Machine) -> None:
    path = machine.write("zed", f'{{"agent_servers": {{{BY_HAND}}}}}')
    assert machine.setup("zed", "hand", undo=True).endswith("Hand is no longer behind acp-proxy.\n")
    assert path.read_text() == '{"agent_servers": {"Hand": {"command": "hand", "args": []}}}'


def test_settings_that_are_gone_since_are_gone_after_an_undo_too(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    machine.setup("zed")
    path.unlink()
    machine.setup("zed", "claude")
    machine.setup("zed", undo=True)
    assert not path.exists()


def test_a_file_that_cannot_be_changed_after_others_were_is_told_with_them(machine: Machine) -> None:
    for name in ("Notes", "Work"):
        plugin = machine.vault(name) / ".obsidian/plugins/agent-client/data.json"
        plugin.write_text('{"customAgents": [{"id": "mine", "displayName": "Mine", "command": "agent", "args": []}]}')
    first, second = EDITORS["obsidian"].files(machine.environ)
    in_the_way = Original(machine.home / ".local/state/acp-proxy/setup", second)._sums_made
    in_the_way.mkdir(parents=True)
    with pytest.raises(SetupError, match=f"/setup: cannot be written: .*; done already: {first}$"):
        machine.setup("obsidian")
    assert ("acp-proxy" in first.read_text(), "acp-proxy" in second.read_text()) == (True, False)


def test_without_a_setup_there_is_nothing_to_undo(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    assert machine.setup("zed", undo=True) == f"{path}: no agent is behind acp-proxy.\n"
    assert path.read_text() == SETTINGS


def test_where_acp_proxy_is_not_found_that_is_said(machine: Machine) -> None:
    (machine.home / "bin/acp-proxy").unlink()
    machine.write("zed", SETTINGS)
    assert machine.setup("zed").endswith("`acp-proxy` is not on the PATH: Zed will not find it until it is.\n")


def test_every_vault_is_set_up_and_taken_back(machine: Machine) -> None:
    paths = [machine.vault(name) / ".obsidian/plugins/agent-client/data.json" for name in ("Home", "Work")]
    text = '{"claude": {"command": "claude-agent-acp", "args": []}}'
    for path in paths:
        path.write_text(text)
    (machine.home / "Plain/.obsidian").mkdir(parents=True)
    answer = machine.setup("obsidian")
    assert answer.count("claude is behind acp-proxy now.") == 2
    assert answer.endswith("it would write back what it remembers.\n")
    assert all('"acp-proxy"' in path.read_text() for path in paths)
    machine.setup("obsidian", undo=True)
    assert [path.read_text() for path in paths] == [text, text]


def test_a_vault_that_cannot_be_set_up_keeps_the_others_as_they_are(machine: Machine) -> None:
    machine.write("obsidian", '{"claude": {"command": "claude-agent-acp", "args": []}}')
    (machine.vault("Work") / ".obsidian/plugins/agent-client/data.json").write_text("{")
    assert machine.refusal("obsidian").startswith("~/Work/.obsidian/plugins/agent-client/data.json: not valid JSON")


def test_a_vault_that_cannot_be_come_to_hides_no_other(machine: Machine) -> None:
    path = machine.write("obsidian", '{"claude": {"command": "claude-agent-acp", "args": []}}')
    known = machine.home / ".config/obsidian/obsidian.json"
    vaults = json.loads(known.read_text())["vaults"]
    vaults["far"] = {"path": f"/{'x' * 300}"}  # as one in a directory that may not be entered, also for root
    known.write_text(json.dumps({"vaults": vaults}))
    assert "claude" in machine.typed("--list").stdout
    machine.setup("obsidian")
    assert '"command": "acp-proxy"' in path.read_text()


@pytest.mark.parametrize("known", ["", "{", "[]", '{"vaults": []}', '{"vaults": {"a": 1, "b": {"path": 2}}}'])
def test_without_a_vault_there_is_one_line(machine: Machine, known: str) -> None:
    (machine.home / ".config/obsidian").mkdir(parents=True)
    (machine.home / ".config/obsidian/obsidian.json").write_text(known)
    assert machine.refusal("obsidian") == "Obsidian: no vault has the plugin Agent Client, nothing was done"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ('{"agent_servers": {', "not valid JSON, line 1: expected text in double quotes, nothing was done"),
        (SETTINGS + "}", "not valid JSON, line 2: expected the end of the file, nothing was done"),
        ("[]", "expected an object, nothing was done"),
        ('{"agent_servers": ["Mine"]}', "expected agent_servers to be an object, nothing was done"),
        (b'{"a": "\xff"}', "expected UTF-8 text, nothing was done"),
        (SETTINGS.encode("utf-16"), "expected UTF-8 text, nothing was done"),
        (b"\x00" * 100, "not valid JSON, line 1: expected a value, nothing was done"),
        (b'{"a": "%s"}' % (b"x" * 20_000_000), "too large for settings, nothing was done"),
        ("[" * 100_000, "not valid JSON, line 1: expected no more than 200 levels, nothing was done"),
        ("", f"no agents in it; {OFFER}"),
        ("// none yet\n/* none */\n", f"no agents in it; {OFFER}"),
        ("// one\n/* two", "not valid JSON, line 2: expected a value, nothing was done"),
        ('{"agent_servers": {}}', f"no agents in it; {OFFER}"),
        (
            '{"agent_servers": {"claude": {"env": {}}}}',
            f"does not start claude (the settings do not say what starts it); {OFFER}",
        ),
    ],
)
def test_settings_that_cannot_be_set_up_are_left_as_they_are(
    machine: Machine, settings: str | bytes, line: str
) -> None:
    machine.write("zed", settings)
    assert machine.refusal("zed") == f"~/.config/zed/settings.json: {line}"
    assert machine.kept == []


def test_a_file_that_is_not_there_is_named(machine: Machine) -> None:
    assert machine.refusal("zed") == f"~/.config/zed/settings.json: not found; {OFFER}"
    assert machine.refusal("zed", undo=True) == "~/.config/zed/settings.json: not found, there is nothing to undo"


def test_a_file_that_nobody_may_write_is_left_alone_by_root_too(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    path.chmod(0o444)
    assert machine.refusal("zed") == "~/.config/zed/settings.json: is read-only, nothing was done"
    path.chmod(0o644)
    machine.setup("zed")
    path.chmod(0o444)
    assert machine.refusal("zed", undo=True) == "~/.config/zed/settings.json: is read-only, nothing was done"


def test_a_directory_that_nobody_may_write_is_left_alone(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    path.parent.chmod(0o555)
    assert machine.refusal("zed") == "~/.config/zed/settings.json: is in a read-only directory, nothing was done"
    path.parent.chmod(0o755)


def test_a_loop_of_links_is_named(machine: Machine) -> None:
    path = machine.settings_of("zed")
    path.symlink_to(path.name)
    with pytest.raises(SettingsError, match="cannot be read: too many"):
        SettingsFile(path).read()
    assert machine.refusal("zed").startswith("~/.config/zed/settings.json: cannot be read: too many")


def test_what_is_no_file_is_not_waited_for(machine: Machine) -> None:
    os.mkfifo(machine.settings_of("zed"))
    assert machine.refusal("zed") == "~/.config/zed/settings.json: is not a file"
    machine.settings_of("acpx").mkdir()
    assert machine.refusal("acpx") == "~/.acpx/config.json: is not a file"


def test_where_nothing_can_be_kept_nothing_is_changed(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    (machine.home / ".local").write_text("in the way")
    assert machine.refusal("zed").startswith("~/.local/state/acp-proxy/setup: cannot be written: ")


def test_a_kept_original_that_cannot_be_read_is_not_taken_for_none(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    kept = Original(machine.home / ".local/state/acp-proxy/setup", path)._bytes
    kept.parent.mkdir(parents=True)
    kept.symlink_to(kept.name)  # as one that is root's own, also for root
    for undo in (False, True):
        line = machine.refusal("zed", undo=undo)
        assert line.startswith(f"~/.local/state/acp-proxy/setup/{kept.name}: cannot be read: too many")


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("theirs")
    meanwhile = "was changed by another program meanwhile, nothing was done"
    with pytest.raises(SettingsError, match=meanwhile):
        SettingsFile(path).replace(b"as it was read", b"ours")
    with pytest.raises(SettingsError, match=meanwhile):
        SettingsFile(path).remove(b"as it was read")
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_settings_that_are_written_between_the_look_and_the_change_are_left_alone(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    original = Original(machine.home / ".local/state/acp-proxy/setup", path)
    change = set_up(EDITORS["zed"], SettingsFile(path), original, None, Home(str(machine.home)))
    path.write_text("theirs")
    with pytest.raises(SettingsError, match="was changed by another program meanwhile, nothing was done"):
        change.make()
    assert path.read_text() == "theirs"
    assert list(path.parent.iterdir()) == [path]
    assert machine.kept == []


def test_a_second_setup_that_cannot_write_leaves_the_undo_of_the_first(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    machine.setup("zed")
    once = path.read_bytes()
    original = Original(machine.home / ".local/state/acp-proxy/setup", path)
    change = set_up(EDITORS["zed"], SettingsFile(path), original, "claude", Home(str(machine.home)))
    path.write_text("theirs")
    with pytest.raises(SettingsError, match="was changed by another program meanwhile"):
        change.make()
    path.write_bytes(once)
    machine.setup("zed", undo=True)
    assert path.read_text() == SETTINGS


def test_what_stands_where_a_directory_should_is_named(machine: Machine) -> None:
    (machine.home / ".config").write_text("in the way")
    expected = "~/.config/zed/settings.json: cannot be read: not a directory, nothing was done"
    assert machine.refusal("zed") == expected


def test_an_unknown_agent_is_one_line_with_those_that_are_known(machine: Machine) -> None:
    machine.write("zed", SETTINGS)
    expected = "--agent: Zed has no 'clod'; expected one of Mine, claude, codex, gemini, goose, opencode, qwen"
    assert machine.refusal("zed", "clod") == expected


def test_the_installed_command_answers_and_ends_as_it_should(machine: Machine) -> None:
    path = machine.write("zed", SETTINGS)
    done = machine.typed("zed")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Mine is behind acp-proxy now. `acp-proxy setup zed --undo` takes it back.\n")
    assert machine.typed("zed", "--undo").returncode == 0
    assert path.read_text() == SETTINGS
    assert machine.typed("--list").stdout.startswith("editor ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            [],
            f"setup: expected an editor, one of {', '.join(NAMES)}, or --list",
        ),
        (["zed"], "~/.config/zed/settings.json: not valid JSON, line 1: expected a value, nothing was done"),
        (
            ["zed", "--undo", "--dry-run"],
            "expected --undo or --dry-run, not both; see acp-proxy setup --help",
        ),
        (["--list", "--undo"], "expected --list or --undo, not both; see acp-proxy setup --help"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(machine: Machine, arguments: list[str], line: str) -> None:
    machine.write("zed", "broken")
    done = machine.typed(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.replace(str(machine.home), "~") == f"acp-proxy: {line}\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("nvim", "setup nvim: acp-proxy setup codecompanion, avante or agentic, whichever plugin you use"),
        ("Emacs", "setup Emacs: acp-proxy setup agent-shell"),
        ("pycharm", "setup pycharm: acp-proxy setup jetbrains"),
        ("cursor", "`acp.agents` of your settings"),
        ("claude", "claude is an agent; expected an editor: acp-proxy setup EDITOR --agent claude"),
        ("ed", "setup: expected zed, vscode, jetbrains, codecompanion"),
    ],
)
def test_another_name_is_answered_in_one_line_with_what_fits(machine: Machine, typed: str, said: str) -> None:
    done = machine.typed(typed)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line
    assert "docs/editors.md" in line or "EDITOR" in line
