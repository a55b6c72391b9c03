"""Readers of single fields: a malformed field counts as absent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_MOST = 10**12  # no honest count is larger, and sums of millions of such fit a ledger's column
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_LONGEST = 300  # characters of a name: databases index no text of any length


def text(value: Any) -> str | None:
    """A string that is not empty."""
    return value if isinstance(value, str) and value else None


def session_id(value: Any) -> str | None:
    """Any string, also an empty one: an agent that calls its session so is metered like others."""
    return value if isinstance(value, str) else None


def label(value: Any) -> str | None:
    """A string that is not empty, as it is booked: the beginning of one that is too long."""
    found = text(value)
    if found is None or (len(found) <= _LONGEST and found.isprintable()):
        return found
    return storable(found[:_LONGEST])


def storable(text: str) -> str:
    """With U+FFFD for what no ledger takes: NUL, and half a surrogate pair, as of a title that was cut in an emoji."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def number(value: Any) -> int | Decimal | None:
    """A number, also one that is written in quotes: the official SDK for Python reads both."""
    if isinstance(value, str):
        plain = value.strip()
        return Decimal(plain) if _NUMBER.fullmatch(plain) else None
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def count(value: Any) -> int | None:
    """A number of tokens. `300.0` is one, too: an integer by JSON Schema's word, and what some languages write."""
    found = number(value)
    if isinstance(found, Decimal):
        return int(found) if found.is_finite() and 0 <= found <= _MOST and found == int(found) else None
    return found if found is not None and 0 <= found <= _MOST else None


def mapping(value: Any) -> dict[str, Any]:
    """An object, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def first_object(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The first of these fields that is an object."""
    return next((value for name in names if isinstance(value := fields.get(name), dict)), {})
