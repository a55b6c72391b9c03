"""What is known of a turn beside its usage: an editor's span that it belongs to, and its tool calls as kinds and times.

Only turns that have any of it have a row here; appended in the transaction of the turn's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from acp_proxy.core.entry import ToolCall, ToolSum, Work
from acp_proxy.ledger import Row
from acp_proxy.ledger.statements import Read, Statement, insertions
from acp_proxy.system.decoding import json_decoder

TABLES = (
    """
    CREATE TABLE work (
        org_id TEXT NOT NULL,
        turn TEXT NOT NULL,
        parent TEXT,
        calls TEXT NOT NULL,
        sums TEXT NOT NULL,
        busy INTEGER NOT NULL,
        waited INTEGER NOT NULL,
        PRIMARY KEY (org_id, turn)
    ) STRICT, WITHOUT ROWID
    """,
)
_AT_ONCE = 400  # turns of one statement


def works(rows: Iterable[Row]) -> list[Statement]:
    """Of new rows."""
    found = [
        (
            row.origin.organisation,
            row.entry.id,
            row.entry.work.parent,
            msgspec.json.encode(row.entry.work.calls).decode(),
            msgspec.json.encode(row.entry.work.sums).decode(),
            row.entry.work.busy,
            row.entry.work.waited,
        )
        for row in rows
        if row.entry.work is not None
    ]
    return insertions("work", found, " ON CONFLICT DO NOTHING")


def read_work(read: Read, organisation: str, turns: Sequence[str]) -> dict[str, Work]:
    """By turn. What another program wrote there is not known."""
    found: dict[str, Work] = {}
    for start in range(0, len(turns), _AT_ONCE):
        some = turns[start : start + _AT_ONCE]
        columns, marks = "turn, parent, calls, sums, busy, waited", ", ".join("?" * len(some))
        sql = f"SELECT {columns} FROM work WHERE org_id = ? AND turn IN ({marks})"
        for turn, parent, calls, sums, busy, waited in read(sql, (organisation, *some)):
            try:
                found[turn] = Work(parent, _calls(calls), _sums(sums), busy, waited)
            except msgspec.MsgspecError:
                continue
    return found


def _calls(text: str) -> tuple[ToolCall, ...]:
    return json_decoder(tuple[ToolCall, ...]).decode(text)


def _sums(text: str) -> tuple[ToolSum, ...]:
    return json_decoder(tuple[ToolSum, ...]).decode(text)
