"""By which names agents are relayed whose books are read under another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# With or without the scope of a package.
_RELAYED_AS: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("claude-agent-acp", "claude-code-acp"),
    "codex": ("codex-acp",),
    "gemini-cli": ("gemini",),
    "qwen-code": ("qwen",),
    "copilot": ("copilot", "github-copilot"),
    "kimi": ("kimi",),
    "kilo": ("kilo",),
    "opencode": ("opencode",),
    "pi": ("pi-acp",),
}


def family(agent: str) -> str:
    """The name under which `import` knows an agent that is relayed under another; any other name as it is."""
    name = agent.rpartition("/")[2].casefold()
    return next(_families(name), agent)


def _families(name: str) -> Iterator[str]:
    for known, others in _RELAYED_AS.items():
        if name == known or any(name.startswith(other) for other in others):
            yield known
