"""Editors whose agents are set up in code, or by a command: the lines to paste. Pure; no code is edited.

Sources of each format are named in docs/editors.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from acp_proxy.setup.agents import PROXY, RUN
from acp_proxy.setup.known import KNOWN, Known

_HANDED_ON = """\
local env = {} -- Avante gives an agent little of its environment: this is what acp-proxy goes by
for name, value in pairs(vim.fn.environ()) do
  if name == "HOME" or name == "TZ" or name:match("^XDG_") or name:match("^PG") or name:match("^ACP_PROXY_") then
    env[name] = value
  end
end
"""


class Pasted(Struct, frozen=True):
    """An editor, what its own names for agents are, and how it is told what starts them."""

    name: str
    title: str
    language: str
    comment: str
    says: str
    own: Mapping[str, str]
    lines: Callable[[Sequence[tuple[str, Known]]], str]

    def answer(self, wanted: Sequence[str]) -> str:
        """For these of the agents that it knows, as text of its own language."""
        return f"{self.comment} {self.says}\n{self.lines([(self.own[name], KNOWN[name]) for name in wanted])}"


def _codecompanion(agents: Sequence[tuple[str, Known]]) -> str:
    adapters = "".join(
        f"    {own} = function()\n"
        f'      return require("codecompanion.adapters").extend("{own}", {{\n'
        f"        commands = {{ default = {_lua((PROXY, *RUN, *agent.installed))} }},\n"
        "      })\n"
        "    end,\n"
        for own, agent in agents
    )
    return f'require("codecompanion").setup({{\n  adapters = {{ acp = {{\n{adapters}  }} }},\n}})\n'


def _avante(agents: Sequence[tuple[str, Known]]) -> str:
    return _HANDED_ON + _providers("avante", agents, "      env = env,\n")


def _agentic(agents: Sequence[tuple[str, Known]]) -> str:
    return _providers("agentic", agents)


def _providers(module: str, agents: Sequence[tuple[str, Known]], more: str = "") -> str:
    providers = "".join(
        f'    ["{own}"] = {{\n      command = "{PROXY}",\n      args = {_lua((*RUN, *agent.installed))},\n'
        f"{more}    }},\n"
        for own, agent in agents
    )
    return f'require("{module}").setup({{\n  acp_providers = {{\n{providers}  }},\n}})\n'


def _agent_shell(agents: Sequence[tuple[str, Known]]) -> str:
    return "".join(f"(setq {own} '({_words((PROXY, *RUN, *agent.installed))}))\n" for own, agent in agents)


def _toad(agents: Sequence[tuple[str, Known]]) -> str:
    return "".join(
        f'toad acp --title {shlex.quote(own)} "{shlex.join((PROXY, *RUN, *agent.installed))}" .\n'
        for own, agent in agents
    )


def _lua(words: Sequence[str]) -> str:
    return f"{{ {', '.join(map(json.dumps, words))} }}"


def _words(words: Sequence[str]) -> str:
    return " ".join(map(json.dumps, words))


PASTED: Mapping[str, Pasted] = {
    editor.name: editor
    for editor in (
        Pasted(
            "codecompanion",
            "CodeCompanion",
            "Lua",
            "--",
            "CodeCompanion is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:",
            {
                "claude": "claude_code",
                "codex": "codex",
                "gemini": "gemini_cli",
                "goose": "goose",
                "opencode": "opencode",
            },
            _codecompanion,
        ),
        Pasted(
            "avante",
            "Avante",
            "Lua",
            "--",
            "Avante is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:",
            {
                "claude": "claude-code",
                "codex": "codex",
                "gemini": "gemini-cli",
                "goose": "goose",
                "opencode": "opencode",
            },
            _avante,
        ),
        Pasted(
            "agentic",
            "agentic.nvim",
            "Lua",
            "--",
            "agentic.nvim is set up in Lua, which acp-proxy does not edit. Merge this into your configuration:",
            {
                "claude": "claude-agent-acp",
                "codex": "codex-acp",
                "gemini": "gemini-acp",
                "goose": "goose-acp",
                "opencode": "opencode-acp",
            },
            _agentic,
        ),
        Pasted(
            "agent-shell",
            "agent-shell",
            "Emacs Lisp",
            ";;",
            "agent-shell is set up in Emacs Lisp, which acp-proxy does not edit. Put this into your init file:",
            {
                "claude": "agent-shell-anthropic-claude-acp-command",
                "codex": "agent-shell-openai-codex-acp-command",
                "gemini": "agent-shell-google-gemini-acp-command",
                "goose": "agent-shell-goose-acp-command",
                "opencode": "agent-shell-opencode-acp-command",
                "qwen": "agent-shell-qwen-acp-command",
            },
            _agent_shell,
        ),
        Pasted(
            "toad",
            "Toad",
            "a command",
            "#",
            "Toad takes agents that it does not bring itself on the command line. Start it so:",
            {name: agent.title for name, agent in KNOWN.items()},
            _toad,
        ),
    )
}
