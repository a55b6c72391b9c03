"""The editors that can be set up: where each keeps its agents, and how an agent is written there.

Sources of each format are named in docs/editors.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acp_proxy.config.files import home
from acp_proxy.setup.wrapping import Shape

Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Editor:
    """One whose settings are JSON that can be edited in place."""

    name: str
    title: str
    file: Callable[[Environ], Path]
    shape: Shape


def _zed(environ: Environ) -> Path:
    if sys.platform == "darwin":
        return home(environ) / ".config/zed/settings.json"
    config = environ.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else home(environ) / ".config") / "zed/settings.json"


EDITORS: Mapping[str, Editor] = {
    editor.name: editor
    for editor in (
        Editor("zed", "Zed", _zed, Shape(("agent_servers",), extra={"type": "custom"})),
        Editor(
            "jetbrains",
            "JetBrains IDEs",
            lambda environ: home(environ) / ".jetbrains/acp.json",
            Shape(("agent_servers",)),
        ),
        Editor(
            "acpx", "acpx", lambda environ: home(environ) / ".acpx/config.json", Shape(("agents",), shell_line=True)
        ),
    )
}

AGENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "claude": ("Claude Code", ("npx", "-y", "@agentclientprotocol/claude-agent-acp")),
    "codex": ("Codex", ("npx", "-y", "@agentclientprotocol/codex-acp")),
    "gemini": ("Gemini CLI", ("gemini", "--acp")),
    "goose": ("goose", ("goose", "acp")),
    "opencode": ("OpenCode", ("opencode", "acp")),
    "qwen": ("Qwen Code", ("qwen", "--acp")),
}
"""Agents that an editor may not have yet: what each is called, and how it is started."""
