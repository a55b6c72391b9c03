"""Editors set up in code: the lines to paste, and that nothing is written."""

from __future__ import annotations

import re
import shlex

import pytest

from acp_proxy.setup.known import KNOWN
from acp_proxy.setup.pasting import PASTED
from tests.setup.machine import Machine

CODECOMPANION = """\
-- CodeCompanion is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:
require("codecompanion").setup({
  adapters = { acp = {
    gemini_cli = function()
      return require("codecompanion.adapters").extend("gemini_cli", {
        commands = { default = { "acp-proxy", "run", "--", "gemini", "--acp" } },
      })
    end,
  } },
})
"""
AVANTE = """\
-- Avante is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:
local env = {} -- Avante gives an agent little of its environment: this is what acp-proxy goes by
for name, value in pairs(vim.fn.environ()) do
  if name == "HOME" or name == "TZ" or name:match("^XDG_") or name:match("^PG") or name:match("^ACP_PROXY_") then
    env[name] = value
  end
end
require("avante").setup({
  acp_providers = {
    ["gemini-cli"] = {
      command = "acp-proxy",
      args = { "run", "--", "gemini", "--acp" },
      env = env,
    },
  },
})
"""
AGENTIC = """\
-- agentic.nvim is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:
require("agentic").setup({
  acp_providers = {
    ["gemini-acp"] = {
      command = "acp-proxy",
      args = { "run", "--", "gemini", "--acp" },
    },
  },
})
"""
AGENT_SHELL = """\
;; agent-shell is set up in Emacs Lisp, which acp-proxy does not edit. Put this into your init file:
(setq agent-shell-google-gemini-acp-command '("acp-proxy" "run" "--" "gemini" "--acp"))
"""
TOAD = """\
# Toad takes agents that it does not bring itself on the command line. Start it so:
toad acp --title 'Gemini CLI' "acp-proxy run -- gemini --acp" .
"""


@pytest.mark.parametrize(
    ("editor", "text"),
    [
        ("codecompanion", CODECOMPANION),
        ("avante", AVANTE),
        ("agentic", AGENTIC),
        ("agent-shell", AGENT_SHELL),
        ("toad", TOAD),
    ],
)
def test_the_lines_for_an_agent_are_in_the_editor_s_language(machine: Machine, editor: str, text: str) -> None:
    assert machine.setup(editor, "Gemini") == text


@pytest.mark.parametrize("editor", PASTED)
def test_without_a_name_there_are_lines_for_every_agent_that_the_editor_knows(machine: Machine, editor: str) -> None:
    before = machine.everything()
    text = machine.setup(editor)
    starts = re.findall(r"\brun\W+--\W+([\w-]+)", text)
    assert starts == [KNOWN[name].installed[0] for name in PASTED[editor].own]
    assert all(own in text for own in PASTED[editor].own.values())
    assert machine.everything() == before


def test_toad_gets_the_agent_in_one_word(machine: Machine) -> None:
    (line,) = machine.setup("toad", "claude").splitlines()[1:]
    assert shlex.split(line) == ["toad", "acp", "--title", "Claude Code", "acp-proxy run -- claude-agent-acp", "."]


def test_an_agent_that_the_editor_does_not_know_is_one_line(machine: Machine) -> None:
    expected = "--agent: unknown for Avante: 'qwen'; expected one of claude, codex, gemini, goose, opencode"
    assert machine.refusal("avante", "qwen") == expected


def test_an_undo_says_that_nothing_was_changed(machine: Machine) -> None:
    said = "acp-proxy has changed nothing of agent-shell: take out what you put in.\n"
    assert machine.setup("agent-shell", undo=True) == said
