"""A book's lines as records: only lines that may tell of a call are decoded, and no byte makes it raise.

A last line without its end is still being written: it is a record where it is whole already, else nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

from msgspec import DecodeError, Meta, Raw, Struct

from acp_proxy.system.decoding import json_decoder

T = TypeVar("T")

# A sum of some hundred such counts still fits a ledger's column.
Count = Annotated[int, Meta(ge=0, le=2**53)]
Moment = Annotated[datetime, Meta(tz=True)]

UNREADABLE = (
    DecodeError,
    UnicodeDecodeError,
    RecursionError,
)  # the last: a thousand brackets in a field that is skipped
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(2262, 1, 1, tzinfo=UTC)  # what 63 bits of nanoseconds hold


class Damaged(Struct, frozen=True):
    """A line that is no JSON, or JSON of another form than was asked for."""

    line: bytes


def decoded(line: bytes | Raw, kind: type[T]) -> T | None:
    """None where it is not that kind."""
    try:
        return json_decoder(kind).decode(line)
    except UNREADABLE:
        return None


def records(lines: Iterable[bytes], worth: Callable[[bytes], object], kind: type[T]) -> Iterator[T | Damaged]:
    """The records of the lines that are `worth` decoding, and what is damaged, in their order."""
    decode = json_decoder(kind).decode
    last: Damaged | None = None  # is damaged only when something follows it
    for line in lines:
        if last is not None:
            yield last
            last = None
        if not (line.startswith(b"{") and line.endswith(b"}\n")) and not _is_object(line):
            last = Damaged(line) if line.strip() else None
        elif worth(line):
            try:
                record = decode(line)
            except UNREADABLE:
                last = Damaged(line)
            else:
                yield record
    if last is not None and last.line.endswith(b"\n"):
        yield last


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")


def nanoseconds(moment: datetime) -> int | None:
    """Unix time; None for a moment that a ledger cannot keep."""
    if not _EPOCH <= moment < _LAST:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
