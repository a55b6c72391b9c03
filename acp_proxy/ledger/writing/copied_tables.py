"""Which tables a copy of a ledger carries beside its rows, and how two states of one thing become one.

What is only ever appended is copied as it is. Of what changes the later state stands, and of peaks the higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from acp_proxy.ledger import captures, plans
from acp_proxy.ledger.statements import Read, Write, insert
from acp_proxy.ledger.sums import peaks

_APPENDED = ("announced", "surcharge", "work", "plan_change", "correction")
_LATER = {
    "plan_window": plans.LATER,
    "capture": captures.LATER,
    "capture_detail": captures.LATER_DETAIL,
}
COPIED = (*_APPENDED, *_LATER, "peak", "granted")  # the last needs a role that not everyone has

# The others, for `tests/ledger/writing/test_copied_tables.py`.
OF_ROWS = ("turn", "line", "session", "series", "total", "session_key", "kept_sum", "account", "unsummed")
"""Made by appending the rows."""
OF_THE_MOMENT = (
    *("open_turn", "hold", "settings"),  # turns that run, and what machines say each day
    *("notice", "delivery", "delivery_count", "exporter", "unexported", "exported"),  # what a server sends
    "bill_source",  # and fetches
    *("decision", "overshoot", "tally", "label", "label_count", "relayed"),  # what relays count for metrics
    *("writer", "restored", "acp_proxy_schema"),  # of the server
)


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
        """Add what is not there yet, or is an earlier state there; how many those were."""

        if table == "peak":
            higher: int = self._write(partial(peaks.merge, rows=rows))
            return higher
        ending = f" ON CONFLICT {_LATER.get(table, 'DO NOTHING')} RETURNING 1"
        return len(self._write(lambda run: insert(run, table, rows, ending)))
