"""Kilo's book: OpenCode's, in a directory of its own. Seen in 7.7.7.

The copies in a fork have no cost here; their originals do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from acp_proxy.books import opencode

read = opencode.read


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Its databases: one, or one per release channel."""
    return opencode.databases("kilo", "KILO_DB", home, environ)
