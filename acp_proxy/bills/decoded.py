"""A file of JSON as a Struct, or one line that says which file is not what was expected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeVar

from msgspec import DecodeError

from acp_proxy.bills import EPOCH, BillError, File
from acp_proxy.system.decoding import json_decoder

T = TypeVar("T")


def decoded(file: File, kind: type[T], expected: str) -> T:
    """Raises BillError."""
    try:
        return json_decoder(kind).decode(file.content)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_that(file, expected, str(error)) from error


def not_that(file: File, expected: str, why: str) -> BillError:
    return BillError(f"{file.name}: expected {expected}: {why}")


def seconds(moment: datetime) -> int:
    """Unix time of a moment, which is one of UTC where it names no zone."""
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def day_of(moment: datetime) -> int:
    """The day of UTC, since 1970."""
    if moment.tzinfo not in (None, UTC):
        moment = moment.astimezone(UTC)
    return moment.toordinal() - EPOCH
