"""The platform's directories for a user's configuration and state, such as the ledger. Creates nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

SYNCHRONOUS = "?synchronous="
"""The option after the path in the URL of a ledger's file, with one of `HOW_SYNCHRONOUS`; by default normal."""
HOW_SYNCHRONOUS = ("full", "normal")


def config_directory(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home(environ) / "Library" / "Application Support" / "acp-proxy"
    else:  # noqa: RET505  what a type checker for macOS leaves out
        return xdg(environ, "XDG_CONFIG_HOME", ".config") / "acp-proxy"


def state_directory(environ: Mapping[str, str]) -> Path:
    return xdg(environ, "XDG_STATE_HOME", ".local/state") / "acp-proxy"


def default_ledger(environ: Mapping[str, str]) -> Path:
    """The file of the ledger if none is configured."""
    return state_directory(environ) / "ledger.db"


def home(environ: Mapping[str, str]) -> Path:
    """The home directory; `/` for a user without one, such as a container's arbitrary uid; writing there fails."""
    if given := environ.get("HOME"):
        return Path(given)
    try:
        return Path("~").expanduser()
    except RuntimeError:
        return Path("/")


def xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """The directory in a variable of the XDG Base Directory Specification, else `default` in the home directory."""
    value = environ.get(variable, "")
    return Path(value) if value.startswith("/") else home(environ) / default  # relative ones are invalid by XDG's rules
