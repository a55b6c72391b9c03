"""Tables of configuration files, kept by their text: to import what parses TOML takes 5 ms, and files seldom change.

Keeps none of a file that may hold a secret. Whatever is wrong with a kept table, the file is parsed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import DecodeError, EncodeError, json

from acp_proxy.answers import place, write
from acp_proxy.config.files import Parse, parsed

_SECRETS_OF = ("notify", "postgres")  # tables of webhooks, URLs of databases


def keeping(environ: Mapping[str, str]) -> Parse:
    """As `config.files.parsed`, with what it made of the same text before."""

    def parse(path: Path, text: str) -> dict[str, Any]:
        file = place(str(path), environ, ".table")
        table = _kept(file, text)
        if table is None:
            table = parsed(path, text)
            _keep(file, text, table)
        return table

    return parse


def _kept(file: str, text: str) -> dict[str, Any] | None:
    try:
        match json.decode(Path(file).read_bytes()):
            case [str(kept), dict(table)] if kept == text:
                return table
    except (OSError, DecodeError, UnicodeDecodeError):
        pass
    return None


def _keep(file: str, text: str, table: dict[str, Any]) -> None:
    if any(name in text for name in _SECRETS_OF):
        return
    try:
        kept = json.encode([text, table])
        if json.decode(kept) == [text, table]:  # JSON has no dates, and no number that is none
            write(file, kept.decode())
    except (DecodeError, EncodeError, OverflowError, RecursionError):
        pass
