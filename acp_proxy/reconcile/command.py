"""`acp-proxy reconcile`: files in, an answer out. The only part that reads files; keys and network it has none of."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from acp_proxy.bills import Bill, BillError, File, read
from acp_proxy.bills.spreadsheet import FIELDS
from acp_proxy.system.errors import UsageError, reason_of


def bill_of(arguments: argparse.Namespace) -> Bill:
    """Raises UsageError."""
    columns = pairs(arguments.column, "--column", "FIELD=NAME, such as amount=Total")
    if columns and arguments.provider != "csv":
        raise UsageError("--column: expected a bill of csv; the other forms have names of their own")
    if wrong := sorted(set(columns) - set(FIELDS)):
        raise UsageError(f"--column: expected one of {', '.join(FIELDS)} before the =, not {wrong[0]!r}")
    try:
        return read(arguments.provider, _files(arguments.files), columns)
    except BillError as error:
        raise UsageError(str(error)) from error


def pairs(given: Iterable[str] | None, option: str, expected: str) -> Mapping[str, str]:
    """Of an option that may be repeated. Raises UsageError."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option}: expected {expected}, not {text!r}")
        found[name] = value
    return found


def _files(names: Iterable[str]) -> Iterator[File]:
    """One at a time. Raises UsageError."""
    for name in names:
        try:
            content = Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise UsageError(f"{name}: expected a file of the bill: {reason}") from error
        yield File(name, content)
