"""A bill as CSV: of a provider's console, in columns of FOCUS, or any other whose columns are named by options.

Days are those of UTC; a time with an offset is counted on the day of UTC that it is in.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from acp_proxy.bills import Bill, BillError, File, date_of
from acp_proxy.bills.decoded import day_of
from acp_proxy.bills.folding import Fold

# What a column holds, and by which headers it is known; the first that is there counts.
HEADERS: Mapping[str, tuple[str, ...]] = {
    "day": (
        "day",
        "date",
        "usage_date_utc",
        "usage_date",
        "chargeperiodstart",
        "start_time",
        "starting_at",
        "timestamp",
    ),
    "model": ("model", "model_version", "model_id", "model_name", "skuid"),
    "key": ("api_key", "api_key_id", "key", "key_alias"),
    "user": ("user", "user_id", "user_email", "email"),
    "input": (
        "uncached_input_tokens",
        "usage_input_tokens_no_cache",
        "input",
        "input_tokens",
        "input_no_cache",
        "x_tokensinput",
    ),
    "prompt": ("prompt", "prompt_tokens"),
    "cached_read": (
        "cached_read",
        "cache_read_input_tokens",
        "usage_input_tokens_cache_read",
        "cached_input_tokens",
        "input_cache_read",
        "x_tokenscachedread",
    ),
    "cached_write": (
        "cached_write",
        "cache_creation_input_tokens",
        "usage_input_tokens_cache_write_5m",
        "input_cache_write_5m",
        "x_tokenscachedwrite",
    ),
    "cached_write_1h": ("cached_write_1h", "usage_input_tokens_cache_write_1h", "input_cache_write_1h"),
    "output": ("output", "output_tokens", "completion_tokens", "usage_output_tokens", "x_tokensoutput"),
    "amount": ("amount", "cost", "cost_usd", "spend", "billedcost", "amount_usd"),
    "currency": ("currency", "billingcurrency"),
}
FIELDS = tuple(HEADERS)
_TOKENS = ("input", "prompt", "cached_read", "cached_write", "cached_write_1h", "output")


def read(files: Iterable[File], columns: Mapping[str, str]) -> Bill:
    """`columns` are names of columns by `FIELDS`, before those that are known. Raises BillError."""
    fold, known = Fold(), set[bytes]()
    days: dict[str, dict[int, str]] = {"tokens": {}, "amounts": {}}
    for file in files:
        if file.content in known:
            continue
        known.add(file.content)
        places, rows = _table(file, columns)
        found = _add_rows(file, places, rows, fold)
        for kind, has in (("tokens", _TOKENS), ("amounts", ("amount",))):
            if not any(name in places for name in has):
                continue
            for day in found:
                other = days[kind].setdefault(day, file.name)
                if other is not file.name:
                    one, two = sorted((other, file.name))
                    at = date_of(day)
                    raise BillError(f"{one} and {two} both have {kind} of {at}: expected each day once")
    return Bill("csv", fold.lines(), _between(days["tokens"]), _between(days["amounts"]))


def _between(days: Iterable[int]) -> frozenset[int]:
    """A day without a row is one on which nothing was billed."""
    found = sorted(days)
    return frozenset(range(found[0], found[-1] + 1)) if found else frozenset()


def _table(file: File, columns: Mapping[str, str]) -> tuple[Mapping[str, int], Iterator[list[str]]]:
    """Where each field stands, and the rows."""
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BillError(f"{file.name}: expected CSV in UTF-8: {error.reason}") from error
    rows = csv.reader(io.StringIO(text, newline=""))
    header = [_plain(title) for title in next(rows, [])]
    places = {}
    for name, titles in HEADERS.items():
        wanted = (_plain(columns[name]),) if name in columns else titles
        place = next((header.index(title) for title in wanted if title in header), None)
        if place is None and name in columns:
            raise BillError(f"{file.name}: expected a column {columns[name]!r}, not {', '.join(header) or 'nothing'}")
        if place is not None:
            places[name] = place
    if "day" not in places or not any(name in places for name in (*_TOKENS, "amount")):
        raise BillError(
            f"{file.name}: expected a column of days, and one of tokens or amounts, "
            f"not {', '.join(header)[:200] or 'nothing'}; --column FIELD=NAME names one"
        )
    return places, rows


def _plain(title: str) -> str:
    return re.sub(r"[\s-]+", "_", title.strip().lower())


def _add_rows(file: File, places: Mapping[str, int], rows: Iterator[list[str]], fold: Fold) -> set[int]:
    """The days that they are of."""
    days, number = set[int](), 1
    cell = {name: _getter(places.get(name)) for name in FIELDS}
    try:
        for row in rows:
            number += 1
            if not any(row):
                continue
            tokens = _partition([_count(cell[name](row), name) for name in _TOKENS])
            amount, currency = _amount(cell["amount"](row))
            day = _day(cell["day"](row))
            fold.add(
                day,
                cell["model"](row).strip(),
                key=cell["key"](row).strip(),
                user=cell["user"](row).strip(),
                tokens=tokens,
                amount=amount,
                currency=cell["currency"](row).strip() or currency,
            )
            days.add(day)
    except (ValueError, csv.Error) as error:
        raise BillError(f"{file.name}: row {number}: {error}") from error
    return days


def _getter(place: int | None) -> Callable[[Sequence[str]], str]:
    if place is None:
        return lambda _: ""
    return lambda row: row[place] if place < len(row) else ""


@lru_cache(maxsize=4096)
def _day(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"expected a date such as 2026-11-01, not {text[:40]!r}") from None
    return day_of(moment)


def _count(text: str, name: str) -> int:
    if text.isdigit() and text.isascii() and len(text) < 17:
        return int(text)
    if not text.strip():
        return 0
    plain = text.strip().replace(",", "").removesuffix(".0")
    if not (plain.isdigit() and plain.isascii() and len(plain) < 17):
        raise ValueError(f"{name}: expected a number of tokens, not {text[:40]!r}")
    return int(plain)


def _partition(counts: Sequence[int]) -> tuple[int, int, int, int, int]:
    uncached, prompt, read, write, write_1h, output = counts
    if prompt:
        uncached = max(0, prompt - read - write - write_1h)
    return uncached, read, write, write_1h, output


def _amount(text: str) -> tuple[Decimal | None, str]:
    plain = text.strip()
    if not plain:
        return None, "USD"
    sign = {"$": "USD", "€": "EUR", "£": "GBP"}.get(plain[:1])
    try:
        return Decimal(plain[1:] if sign else plain), sign or "USD"
    except InvalidOperation:
        raise ValueError(f"amount: expected a decimal number, not {text[:40]!r}") from None
