"""Agents that an editor may not have yet: what each is called, and how it is started (docs/editors.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from msgspec import Struct


class Known(Struct, frozen=True):
    """An agent, by the commands that start it."""

    name: str  # as `--agent` takes it
    title: str
    command: tuple[str, ...]  # what is written for an agent that is added
    installed: tuple[str, ...]  # starts it where it is installed
    fetched: tuple[str, ...]  # starts it where only a runtime is installed, or else as `installed`
    listed: tuple[str, ...]  # its ids in the ACP registry
    also: frozenset[str] = frozenset()  # other names of the program or package

    def starts(self, command: Sequence[str]) -> bool:
        """Whether a command is this agent, whatever stands before and after it."""
        words = (word for part in command for word in part.split())
        names = {PurePath(word).name.partition("@")[0] for word in words if not word.startswith("-")}
        return not names.isdisjoint({self.installed[0], *self.also})


KNOWN: Mapping[str, Known] = {
    agent.name: agent
    for agent in (
        Known(
            "claude",
            "Claude Code",
            ("npx", "-y", "@agentclientprotocol/claude-agent-acp"),
            ("claude-agent-acp",),
            ("npx", "-y", "@agentclientprotocol/claude-agent-acp"),
            ("claude-acp", "claude-code-acp"),
            frozenset({"claude-code-acp"}),
        ),
        Known(
            "codex",
            "Codex",
            ("npx", "-y", "@agentclientprotocol/codex-acp"),
            ("codex-acp",),
            ("npx", "-y", "@agentclientprotocol/codex-acp"),
            ("codex-acp",),
        ),
        Known(
            "gemini",
            "Gemini CLI",
            ("gemini", "--acp"),
            ("gemini", "--acp"),
            ("npx", "-y", "@google/gemini-cli", "--acp"),
            ("gemini",),
            frozenset({"gemini-cli"}),
        ),
        Known("goose", "goose", ("goose", "acp"), ("goose", "acp"), ("goose", "acp"), ("goose",)),
        Known(
            "opencode",
            "OpenCode",
            ("opencode", "acp"),
            ("opencode", "acp"),
            ("npx", "-y", "opencode-ai", "acp"),
            ("opencode",),
            frozenset({"opencode-ai"}),
        ),
        Known(
            "qwen",
            "Qwen Code",
            ("qwen", "--acp"),
            ("qwen", "--acp"),
            ("npx", "-y", "@qwen-code/qwen-code", "--acp"),
            ("qwen-code",),
            frozenset({"qwen-code"}),
        ),
    )
}
