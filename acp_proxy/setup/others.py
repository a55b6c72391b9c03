"""Names of editors that `setup` does not know, with the command that fits them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from acp_proxy.setup import NAMES
from acp_proxy.setup.known import KNOWN

_BY_HAND = "put `acp-proxy run --` before the command that starts an ACP agent"
_NEOVIM = "acp-proxy setup codecompanion, avante or agentic, whichever plugin you use"
_JETBRAINS = "acp-proxy setup jetbrains, which all of its IDEs read"
_LIKE_VSCODE = f"the extension ACP Client starts agents as `acp.agents` of your settings says: {_BY_HAND} there"

_FITTING: Mapping[str, str] = {
    **dict.fromkeys(("nvim", "neovim", "vim"), _NEOVIM),
    **dict.fromkeys(("code", "vs-code", "visual-studio-code"), "acp-proxy setup vscode"),
    **dict.fromkeys(("cursor", "windsurf", "vscodium", "code-insiders"), _LIKE_VSCODE),
    "emacs": "acp-proxy setup agent-shell",
    **dict.fromkeys(
        (
            *("intellij", "idea", "pycharm", "webstorm", "goland", "clion", "rider", "phpstorm", "rubymine"),
            *("rustrover", "datagrip", "android-studio"),
        ),
        _JETBRAINS,
    ),
    **dict.fromkeys(("jupyter", "jupyterlab"), "a script of the agent's name starts it behind acp-proxy"),
    "marimo": f"{_BY_HAND}, within the command of stdio-to-ws",
    **dict.fromkeys(
        ("sublime", "sublime-text", "qtcreator", "pulsar"), f"{_BY_HAND}, in the settings of its ACP plugin"
    ),
}
_WHERE = "docs/editors.md"


def fitting(typed: str) -> str:
    """One line: what to do for this editor, or which names there are."""
    name = typed.casefold()
    if name in KNOWN:
        return f"setup: {name} is an agent; expected an editor: acp-proxy setup EDITOR --agent {name}"
    if name in _FITTING:
        return f"setup {typed}: {_FITTING[name]} ({_WHERE})"
    return f"setup: expected {', '.join(NAMES)}, not {typed!r}; for any other: {_BY_HAND} ({_WHERE})"
