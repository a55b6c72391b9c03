"""Tables that a copy needs in addition to rows: grants, announcements, surcharges of turns, and their tool calls.

Only ever appended, so that it can be copied from one ledger to another as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acp_proxy.ledger.statements import Read, Write, insert

COPIED = ("granted", "announced", "surcharge", "work")


class CopiedTables:
    """The tables of one ledger. All methods raise LedgerError."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    def all(self) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
        """Tables with all that is in them."""
        for table in COPIED:
            yield table, self._read(f"SELECT * FROM {table}", ())

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> int:
        """Add what is not there yet; how many those were."""
        return len(self._write(lambda run: insert(run, table, rows, " ON CONFLICT DO NOTHING RETURNING 1")))
