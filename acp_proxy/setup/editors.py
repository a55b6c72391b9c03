"""The editors whose settings are JSON: where each keeps its agents, and how an agent is written there.

Sources of each format are named in docs/editors.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from acp_proxy.setup import vaults
from acp_proxy.setup.agents import Shape
from acp_proxy.setup.known import Known
from acp_proxy.setup.registry import Started, of_zed
from acp_proxy.system.directories import home, xdg

Environ = Mapping[str, str]


class Editor(Struct, frozen=True):
    """An editor whose settings can be edited."""

    name: str
    title: str
    files: Callable[[Environ], tuple[Path, ...]]
    shape: Shape
    shows_names: bool = True  # the name of an agent is what people read, not what they type
    none: str = ""  # what to do where there are no files
    afterwards: str = ""  # what to do once they are changed
    registry: Callable[[Environ], Mapping[str, Started]] = (
        lambda _: {}
    )  # what starts the agents that it installs itself

    def named(self, agent: Known) -> str:
        """The name of an added agent; the editor's own agent stays next to it."""
        return f"{agent.title} (acp-proxy)" if self.shows_names else agent.name


def _zed(environ: Environ) -> tuple[Path, ...]:
    if sys.platform == "darwin":
        return (home(environ) / ".config/zed/settings.json",)
    else:  # noqa: RET505  what a type checker for macOS leaves out
        return (xdg(environ, "XDG_CONFIG_HOME", ".config") / "zed/settings.json",)


def _vscode(environ: Environ) -> tuple[Path, ...]:
    if sys.platform == "darwin":
        return (home(environ) / "Library/Application Support/Code/User/settings.json",)
    else:  # noqa: RET505  as above
        return (xdg(environ, "XDG_CONFIG_HOME", ".config") / "Code/User/settings.json",)


EDITORS: Mapping[str, Editor] = {
    editor.name: editor
    for editor in (
        Editor(
            "zed",
            "Zed",
            _zed,
            Shape(("agent_servers",), extra={"type": "custom"}, registry=True),
            registry=of_zed,
        ),
        Editor("vscode", "VS Code", _vscode, Shape(("acp.agents",))),
        Editor(
            "jetbrains",
            "JetBrains IDEs",
            lambda environ: (home(environ) / ".jetbrains/acp.json",),
            Shape(("agent_servers",)),
        ),
        Editor(
            "obsidian",
            "Obsidian",
            vaults.settings,
            Shape(only=frozenset({"claude", "codex", "gemini"}), more="customAgents"),
            shows_names=False,
            none="no vault has the plugin Agent Client",
            afterwards="Restart Obsidian before you open the plugin's settings: it would write back what it remembers.",
        ),
        Editor(
            "acpx",
            "acpx",
            lambda environ: (home(environ) / ".acpx/config.json",),
            Shape(("agents",), shell_line=True, argv=True),
            shows_names=False,
        ),
    )
}
