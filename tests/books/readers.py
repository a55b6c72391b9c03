"""The readers of books that are lines, and what their agents write into no book."""

from __future__ import annotations

from typing import NamedTuple

from acp_proxy.books import claude, codex, copilot, gemini, kimi, pi, qwen
from tests.books.recorded import Files, Read


class Reader(NamedTuple):
    files: Files
    read: Read
    missing: frozenset[str]  # `what` of calls that the model server served, and that stand in no book


READERS = {
    "claude": Reader(
        claude.files,
        claude.read,
        frozenset({"title", "suggestion", "review", "compaction", "broken off", "cut short by 2.1.83"}),
    ),
    "codex": Reader(codex.files, codex.read, frozenset({"title", "cut short"})),
    "copilot": Reader(copilot.files, copilot.read, frozenset({"cut short"})),
    "gemini": Reader(gemini.files, gemini.read, frozenset({"router", "cut short", "deleted"})),
    "kimi": Reader(kimi.files, kimi.read, frozenset({"cut short"})),
    "pi": Reader(pi.files, pi.read, frozenset()),
    "qwen": Reader(qwen.files, qwen.read, frozenset({"suggestion", "cut short"})),
}
