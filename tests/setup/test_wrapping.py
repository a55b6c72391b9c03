"""Agents in settings of any layout: behind acp-proxy and out again, and nothing else changes."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acp_proxy.setup.adding import added
from acp_proxy.setup.agents import PROXY, RUN, CannotEditError, Shape, agents, is_wrapped
from acp_proxy.setup.editors import EDITORS
from acp_proxy.setup.jsonc import parse
from acp_proxy.setup.wrapping import unwrapped, wrapped
from tests.setup.layouts import LAYOUTS, SCALARS, VALUES, WORDS, comments, laid_out, plain

ZED = EDITORS["zed"].shape
ACPX = EDITORS["acpx"].shape
OBSIDIAN = EDITORS["obsidian"].shape
HOME = "/home/alice"

KEYS = ["agent_servers", "agents", "claude", "customAgents", "id", "command", "args", "argv"]
COMMANDS = WORDS.filter(lambda word: word.strip() and not word.startswith("~/") and PROXY not in word)
STARTS = st.fixed_dictionaries(
    {"command": COMMANDS},
    optional={
        "args": st.lists(WORDS.filter(lambda word: word != PROXY), max_size=4),
        "env": VALUES,
        "default_mode": VALUES,
    },
)
AGENTS = st.dictionaries(WORDS, STARTS | st.fixed_dictionaries({"env": VALUES}), max_size=4)
OTHERS = st.dictionaries(WORDS.filter(lambda key: key != "agent_servers"), VALUES, max_size=3)


def behind(text: str, shape: Shape = ZED) -> str:
    return wrapped(text, shape, [agent.name for agent in agents(text, shape)], HOME)


def out(text: str, shape: Shape = ZED) -> str:
    return unwrapped(text, shape, [agent.name for agent in agents(text, shape)])


def with_claude(text: str, shape: Shape) -> str:
    return added(text, shape, "claude", "Claude Code", ["agent"])


@given(AGENTS, OTHERS, LAYOUTS)
def test_a_wrapped_agent_is_run_by_acp_proxy_and_all_else_is_as_it_was(
    servers: dict[str, dict[str, object]], others: dict[str, object], layout: Random
) -> None:
    settings = {**others, "agent_servers": servers}
    after = plain(parse(behind(laid_out(settings, layout))))
    expected = {
        name: {**entry, "command": PROXY, "args": [*RUN, entry["command"], *_args(entry)]}
        if "command" in entry
        else entry
        for name, entry in servers.items()
    }
    assert after == {**others, "agent_servers": expected}


@given(AGENTS, LAYOUTS)
def test_twice_is_the_same_as_once(servers: dict[str, object], layout: Random) -> None:
    once = behind(laid_out({"agent_servers": servers}, layout))
    assert behind(once) == once


@given(AGENTS, OTHERS, LAYOUTS)
def test_taken_out_again_everything_is_as_it_was(
    servers: dict[str, dict[str, object]], others: dict[str, object], layout: Random
) -> None:
    text = laid_out({**others, "agent_servers": servers}, layout)
    again = out(behind(text))
    if all("args" in entry or "command" not in entry for entry in servers.values()):
        assert again == text
    else:
        with_args = {
            name: {**entry, "args": _args(entry)} if "command" in entry else entry for name, entry in servers.items()
        }
        assert plain(parse(again)) == {**others, "agent_servers": with_args}


@given(AGENTS, LAYOUTS)
def test_agents_that_were_put_behind_acp_proxy_by_hand_are_taken_out_of_any_layout(
    servers: dict[str, dict[str, object]], layout: Random
) -> None:
    by_hand = {
        name: {**entry, "command": PROXY, "args": [*RUN, entry["command"], *_args(entry)]}
        if "command" in entry
        else entry
        for name, entry in servers.items()
    }
    bare = {name: {**entry, "args": _args(entry)} if "command" in entry else entry for name, entry in servers.items()}
    assert plain(parse(out(laid_out({"agent_servers": by_hand}, layout)))) == {"agent_servers": bare}


@given(AGENTS, st.integers(1, 4))
def test_only_lines_of_command_and_args_change(servers: dict[str, object], indent: int) -> None:
    text = json.dumps({"theme": "One", "agent_servers": servers}, indent=indent)
    after = behind(text).split("\n")
    lines = iter(after)
    kept = [line for line in text.split("\n") if not re.match(r'\s*"command":', line)]
    assert all(line in lines for line in kept if not line.rstrip(",").endswith(("[]", "[")))


@given(AGENTS, OTHERS, LAYOUTS)
def test_an_agent_can_be_added_to_settings_of_any_layout(
    servers: dict[str, object], others: dict[str, object], layout: Random
) -> None:
    assume("New" not in servers)
    settings = {**others, "agent_servers": servers} if layout.random() < 0.7 else others
    text = laid_out(settings, layout)
    after = added(text, ZED, "New", "New", ["my-agent", "--acp"])
    new = {"type": "custom", "command": PROXY, "args": [*RUN, "my-agent", "--acp"]}
    there = servers if "agent_servers" in settings else {}
    assert plain(parse(after)) == {**settings, "agent_servers": {**there, "New": new}}
    assert comments(after) == comments(text)


@given(st.lists(COMMANDS, min_size=1, max_size=4), LAYOUTS)
def test_an_argv_is_run_by_acp_proxy_and_taken_out_again(argv: list[str], layout: Random) -> None:
    assume(PROXY not in argv)
    text = laid_out({"agents": {"mine": {"argv": argv}}}, layout)
    after = behind(text, ACPX)
    assert plain(parse(after)) == {"agents": {"mine": {"argv": [PROXY, *RUN, *argv]}}}
    assert out(after, ACPX) == text


@given(COMMANDS, LAYOUTS)
def test_a_line_for_a_shell_stays_one(command: str, layout: Random) -> None:
    assume("--" not in command)
    text = laid_out({"agents": {"mine": {"command": command}}}, layout)
    after = behind(text, ACPX)
    assert plain(parse(after)) == {"agents": {"mine": {"command": f"acp-proxy run -- {command}"}}}
    assert out(after, ACPX) == text


@given(st.lists(STARTS, max_size=3), STARTS, OTHERS, LAYOUTS)
def test_obsidian_s_own_agents_and_those_of_the_user_are_found(
    customs: list[dict[str, object]], claude: dict[str, object], others: dict[str, object], layout: Random
) -> None:
    assume(not {"claude", "codex", "gemini", "customAgents"} & others.keys())
    listed = [{"id": f"agent-{number}", **custom} for number, custom in enumerate(customs)]
    text = laid_out({**others, "claude": claude, "customAgents": listed}, layout)
    assert [agent.name for agent in agents(text, OBSIDIAN)] == ["claude", *(f"agent-{n}" for n in range(len(customs)))]
    assert all(agent.wrapped for agent in agents(behind(text, OBSIDIAN), OBSIDIAN))


@pytest.mark.parametrize(
    ("shape", "entry"),
    [
        (ZED, '{"command": "npx", "args": ["-y", "agent", "--", "--acp"]}'),
        (ACPX, '{"argv": ["npx", "agent", "--", "--acp"]}'),
        (ACPX, '{"command": "env A=1 -- agent"}'),
        (ZED, '{"command": "acp-proxy", "args": ["run", "--"]}'),
        (ACPX, '{"argv": ["acp-proxy", "run"]}'),
        (ACPX, '{"argv": []}'),
    ],
)
def test_what_is_not_started_by_acp_proxy_is_not_taken_out(shape: Shape, entry: str) -> None:
    text = f'{{"{shape.at[0]}": {{"mine": {entry}}}}}'
    assert out(text, shape) == text


def test_each_of_several_lines_for_a_shell_is_taken_out_by_itself() -> None:
    text = '{"agents": {"a": {"command": "x -- y"}, /* b -- c */ "b": {"command": "z"}}}'
    assert out(behind(text, ACPX), ACPX) == text


def test_only_the_named_agents_change() -> None:
    text = '{"agent_servers": {"a": {"command": "x", "args": []}, "b": {"command": "y", "args": []}}}'
    after = wrapped(text, ZED, ["b"], HOME)
    assert after == text.replace('"y", "args": []', '"acp-proxy", "args": ["run", "--", "y"]')


def test_a_home_directory_that_the_editor_would_fill_in_is_filled_in() -> None:
    text = '{"agent_servers": {"a": {"command": "~/bin/agent", "args": ["~/x"]}}}'
    after = behind(text)
    assert (
        after
        == '{"agent_servers": {"a": {"command": "acp-proxy", "args": ["run", "--", "/home/alice/bin/agent", "~/x"]}}}'
    )


def test_a_home_directory_is_written_in_its_own_letters() -> None:
    text = '{"agent_servers": {"a": {"command": "~/agent", "args": []}}}'
    assert '"/home/jürgen/agent"' in wrapped(text, ZED, ["a"], "/home/jürgen")


def test_a_command_is_copied_as_it_is_spelt() -> None:
    text = r'{"agent_servers": {"a": {"command": "\u0061gent\ud800", "args": []}}}'
    assert r'["run", "--", "\u0061gent\ud800"]' in behind(text)
    assert out(behind(text)) == text


@pytest.mark.parametrize(
    "command",
    [
        ["acp-proxy", "run", "--", "agent"],
        ["/home/alice/My Tools/acp-proxy", "--", "agent"],
        ["uvx", "acp-proxy", "run", "--", "agent"],
        ["acp-proxy run --budget 5 -- agent --acp"],
        ["/opt/acp-proxy run -- agent"],
        ["env", "HOME=/tmp", "/opt/acp-proxy", "run", "--", "agent"],
        ["env HOME=/tmp /opt/acp-proxy run -- agent"],
        ["python3", "-m", "acp_proxy", "run", "--", "agent"],
        ["sh", "-c", "ulimit -v 4000000; exec acp-proxy run -- agent"],
    ],
)
def test_an_agent_that_is_behind_acp_proxy_already_is_known_as_such(command: list[str]) -> None:
    assert is_wrapped(command)


@pytest.mark.parametrize(
    "command",
    [
        ["agent"],
        ["agent", "--name", "acp-proxy"],
        ["agent --name acp-proxy"],
        ["node", "/src/acp-proxy"],
        ["acp-proxy-like"],
        ["agent -- acp-proxy"],
        ["agent", "--", "acp-proxy"],
        [" "],
        [" -- acp-proxy"],
    ],
)
def test_an_agent_that_only_names_acp_proxy_is_not(command: list[str]) -> None:
    assert not is_wrapped(command)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"agent_servers": []}', "expected agent_servers to be an object"),
        ('{"agent_servers": "none"}', "expected agent_servers to be an object"),
        ("[]", "expected an object"),
        ('"settings"', "expected an object"),
        ('{"agent_servers": {', "not valid JSON, line 1: expected text in double quotes"),
    ],
)
def test_settings_of_another_shape_are_refused(text: str, expected: str) -> None:
    for edit in (behind, out, lambda text: added(text, ZED, "New", "New", ["agent"])):
        with pytest.raises(CannotEditError, match=re.escape(expected)):
            edit(text)


@given(
    st.recursive(
        SCALARS | st.sampled_from(["agent", "", " ", " -- "]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        max_leaves=20,
    ),
    st.sampled_from([editor.shape for editor in EDITORS.values()]),
)
def test_settings_that_make_no_sense_are_refused_or_stay_readable(settings: object, shape: Shape) -> None:
    text = json.dumps(settings)
    for edit in (behind, out, with_claude):
        try:
            after = edit(text, shape)
        except CannotEditError as error:
            assert "\n" not in str(error)  # noqa: PT017 - or it was edited
        else:
            assert isinstance(plain(parse(after)), dict)


@pytest.mark.parametrize("args", ["null", '"--acp"', "[1]", '["--acp", null]', '["--acp", []]', "{}"])
def test_an_agent_whose_arguments_are_no_words_is_left_alone(args: str) -> None:
    text = f'{{"agent_servers": {{"odd": {{"command": "agent", "args": {args}}}}}}}'
    assert behind(text) == text
    assert [agent.command for agent in agents(text, ZED)] == [None]


@pytest.mark.parametrize("command", ["null", "5", "[]", '" "'])
def test_an_agent_whose_command_is_no_text_is_left_alone(command: str) -> None:
    text = f'{{"agent_servers": {{"odd": {{"command": {command}, "args": []}}}}}}'
    assert behind(text) == text
    assert [agent.command for agent in agents(text, ZED)] == [None]


def test_an_agent_that_is_there_is_not_added_again() -> None:
    with pytest.raises(CannotEditError, match="claude is there, but does not say what starts it"):
        added('{"agents": {"claude": {}}}', ACPX, "claude", "Claude Code", ["agent"])


def _args(entry: dict[str, object]) -> list[object]:
    args = entry.get("args", [])
    assert isinstance(args, list)
    return args
