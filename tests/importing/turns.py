"""Relayed turns that made the calls in a book, and what became of them."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.entry import IMPORT, UsageLine
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import Query, Row, open_ledger
from harness.rows import ALICE, SECOND, amended, row
from tests.importing.homes import Home


def calls_in(home: Home) -> list[Row]:
    """Those of its books, by time, as an import into another ledger finds them."""
    other = Home(home.path, home.ledger.with_name("other.db"))
    other.imports()
    return sorted(other.rows(), key=lambda each: each.entry.started_at)


def relayed(calls: list[Row], *, name: str = "", **fields: Any) -> Row:
    """The row of a turn that made these calls, of which the last one was told."""
    last, first = calls[-1].entry, calls[0].entry
    origin = replace(ALICE, organisation="default", user="alice", agent=name or calls[0].origin.agent)
    began, ended = first.started_at - SECOND // 50, last.started_at + SECOND // 1000
    told = UsageLine(last.model, last.usage, last.costs[0] if last.costs else None)
    turn = row(told, origin=origin, session=last.session, at=began, took=ended - began, usage_source="partial")
    return amended(turn, **fields)


def used(rows: list[Row]) -> Usage:
    return sum((each.entry.usage for each in rows), NOTHING)


def turns(home: Home) -> list[Row]:
    with closing(open_ledger(home.url, journals=())) as ledger:
        return [found for found in ledger.rows(Query()) if found.origin.client != IMPORT]


def by_session(calls: list[Row]) -> dict[str, list[Row]]:
    """Without forks, whose calls may be older than they are."""
    found = defaultdict(list)
    for call in calls:
        if call.entry.kind == "call":
            found[call.entry.session].append(call)
    return found
