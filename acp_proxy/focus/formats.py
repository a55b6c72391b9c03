"""Rows of FOCUS as CSV and as JSON, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from acp_proxy.focus.columns import FIRST, Version, columns_of
from acp_proxy.focus.costs import COSTS
from acp_proxy.focus.rows import Row
from acp_proxy.report.formats import json_in_pieces, without_controls
from acp_proxy.report.spreadsheet import csv_in_pieces, spreadsheet_text


def as_csv(found: Iterable[Row], version: Version = FIRST) -> Iterator[str]:
    """Piece by piece. Nothing known is an empty cell."""
    columns = columns_of(version)
    return csv_in_pieces(columns, ([_cell(name, row[name]) for name in columns] for row in found))


def as_json(found: Iterable[Row], version: Version = FIRST) -> Iterator[str]:
    """Piece by piece. Costs are decimal strings: a number would be a float in whatever reads it."""
    return json_in_pieces({"focus": version, "rows": []}, "rows", found)


def _cell(column: str, value: object) -> object:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return without_controls(orjson.dumps(value).decode())
        case str() if column not in COSTS:  # an amount below zero is no formula
            return spreadsheet_text(value)
    return value
