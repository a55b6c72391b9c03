"""What a shell needs to complete acp-proxy's command line: scripts that `scripts/build-completion` makes."""

from __future__ import annotations

from pathlib import Path

SHELLS = ("bash", "zsh", "fish")


def script_of(shell: str) -> str:
    """`shell` is one of `SHELLS`."""
    return Path(__file__).with_name(f"acp-proxy.{shell}").read_text(encoding="utf-8")
