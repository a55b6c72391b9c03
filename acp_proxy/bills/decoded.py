"""A file of JSON as a Struct, or one line that says which file is not what was expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from typing import TypeVar

from msgspec import DecodeError

from acp_proxy.bills import DAYS, EPOCH, BillError, File
from acp_proxy.system.decoding import json_decoder

T = TypeVar("T")


def decoded(file: File, kind: type[T], expected: str) -> T:
    """Raises BillError."""
    try:
        return json_decoder(kind).decode(file.content)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_that(file, expected, str(error)) from error


@contextmanager
def one_line(file: File, expected: str) -> Iterator[None]:
    """Around what is made of a file's values: what they cannot be is a BillError, too."""
    try:
        yield
    except BillError:
        raise
    except (ValueError, ArithmeticError) as error:
        raise not_that(file, expected, str(error)) from error
    except TypeError as error:  # a signalling NaN has no hash
        raise not_that(file, expected, "an amount is no number") from error


def not_that(file: File, expected: str, why: str) -> BillError:
    return BillError(f"{file.name}: expected {expected}: {why}")


def seconds(moment: datetime) -> int:
    """Unix time of a moment, which is one of UTC where it names no zone."""
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def day_of(moment: datetime) -> int:
    """The day of UTC, since 1970. Raises ValueError for one that a ledger cannot have."""
    if moment.tzinfo not in (None, UTC):
        with suppress(OverflowError):  # the first or the last day of all
            moment = moment.astimezone(UTC)
    return day_since_1970(moment)


def day_since_1970(day: date) -> int:
    """Raises ValueError as `day_of`."""
    since = day.toordinal() - EPOCH
    if since not in DAYS:
        raise ValueError(f"expected a day of the years from 1970 to 2261, not {day:%Y-%m-%d}")
    return since
