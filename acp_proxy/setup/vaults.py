"""Obsidian's vaults, and the settings that the plugin Agent Client keeps in each of them. Writes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from acp_proxy.system.directories import home, xdg


def settings(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The plugin's settings in each vault that has some; where none has, where they would be."""
    files = dict(_places(environ))
    return tuple(file for file, exists in files.items() if exists) or tuple(files)


def _places(environ: Mapping[str, str]) -> Iterable[tuple[Path, bool]]:
    """The path of the plugin's settings in each vault with it, and whether they exist."""
    for vault in _vaults(environ):
        plugin = vault / ".obsidian/plugins/agent-client"
        with suppress(OSError):  # as of a vault that may not be entered: Obsidian does not come to its settings either
            if plugin.is_dir():
                yield plugin / "data.json", (plugin / "data.json").exists()


def _vaults(environ: Mapping[str, str]) -> Iterable[Path]:
    """The vaults that Obsidian remembers, in the order of their paths."""
    try:
        known = json.loads((_directory(environ) / "obsidian.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    match known:
        case {"vaults": dict(vaults)}:
            paths = (vault.get("path") for vault in vaults.values() if isinstance(vault, dict))
            return sorted(Path(path) for path in paths if isinstance(path, str) and path.startswith("/"))
    return []


def _directory(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home(environ) / "Library/Application Support/obsidian"
    else:  # noqa: RET505  what a type checker for macOS leaves out
        return xdg(environ, "XDG_CONFIG_HOME", ".config") / "obsidian"
