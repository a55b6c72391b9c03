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
from operator import itemgetter

from acp_proxy.bills import Bill, BillError, File, date_of
from acp_proxy.bills.decoded import day_of
from acp_proxy.bills.folding import Fold, Tokens, nano_of, put

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
_GROUPS = ("day", "model", "key", "user", "currency")
_TOKENS = ("input", "prompt", "cached_read", "cached_write", "cached_write_1h", "output")
_CACHES = frozenset({"cached_read", "cached_write", "cached_write_1h"})
_MOST = 10**16  # that a cell may hold, and one more


def read(files: Iterable[File], columns: Mapping[str, str]) -> Bill:
    """`columns` are names of columns by `FIELDS`, before those that are known. Raises BillError."""
    fold, known = Fold(), set[bytes]()
    days: dict[str, dict[int, str]] = {"tokens": {}, "amounts": {}}
    tells_caches = True
    for file in files:
        if file.content in known:
            continue
        known.add(file.content)
        places, rows = _table(file, columns)
        tells_caches &= "prompt" not in places or not _CACHES.isdisjoint(places)
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
    return Bill("csv", fold.lines(), _between(days["tokens"]), _between(days["amounts"]), tells_caches)


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
    width = max(places.values()) + 1
    at = {name: places.get(name, width) for name in FIELDS}  # beyond them a row is given a cell without content
    tokens_of = _counter(places)
    amount, groups = at["amount"], itemgetter(*[at[name] for name in _GROUPS])
    known: dict[tuple[tuple[str, ...], str | None], list[int]] = {}
    try:
        for row in rows:
            number += 1
            if not any(row):
                continue
            if len(row) > width:
                row[width] = ""
            else:
                row += [""] * (width + 1 - len(row))
            nano, currency = _amount(row[amount])
            group = (groups(row), currency)
            sums = known.get(group)
            if sums is None:
                day, sums = _sums_of(fold, *group)
                known[group] = sums
                days.add(day)
            put(sums, tokens_of(row), nano)
    except (ValueError, csv.Error) as error:
        raise BillError(f"{file.name}: row {number}: {error}") from error
    return days


def _sums_of(fold: Fold, group: tuple[str, ...], sign: str | None) -> tuple[int, list[int]]:
    """And the day; looked up once for all rows with the same cells. `sign` is the currency by the amount alone."""
    day, model, key, user, currency = map(str.strip, group)
    number = _day(day)
    return number, fold.sums(number, model, key, user, currency=None if sign is None else currency or sign)


def _day(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"expected a date such as 2026-11-01, not {text[:40]!r}") from None
    return day_of(moment)


def _count(text: str, name: str) -> int:
    if not text.strip():
        return 0
    plain = text.strip().replace(",", "").removesuffix(".0")
    if not (plain.isdigit() and plain.isascii() and len(plain) < 17):
        raise ValueError(f"{name}: expected a number of tokens, not {text[:40]!r}")
    return int(plain)


def _counter(places: Mapping[str, int]) -> Callable[[Sequence[str]], Tokens]:
    """Of a row, whose cells are nearly always digits alone: these are looked at together."""
    names = [name for name in _TOKENS if name in places]
    at = [places[name] for name in names]
    order = itemgetter(*[names.index(name) if name in names else -1 for name in _TOKENS])

    def tokens_of(row: Sequence[str]) -> Tokens:
        cells = [row[place] for place in at]
        digits = "".join(cells)
        if digits.isdigit() and digits.isascii() and all(cells):
            counts = list(map(int, cells))
            if max(counts) >= _MOST:
                counts = list(map(_count, cells, names))
        else:
            counts = list(map(_count, cells, names))
        counts.append(0)
        uncached, prompt, read, write, write_1h, output = order(counts)
        if prompt:
            uncached = max(0, prompt - read - write - write_1h)
        return uncached, read, write, write_1h, output

    return tokens_of


def _amount(text: str) -> tuple[int | None, str | None]:
    """In nano-units, and the currency where the cell names one; None and None without an amount."""
    whole, _, rest = text.partition(".")
    if whole.isdigit() and (rest.isdigit() or not rest) and text.isascii() and len(whole) < 10 > len(rest):
        return int(whole + rest.ljust(9, "0")), "USD"  # as nearly all are, in a third of the time
    plain = text.strip()
    if not plain:
        return None, None
    sign = {"$": "USD", "€": "EUR", "£": "GBP"}.get(plain[:1])
    try:
        return nano_of(Decimal(plain[1:] if sign else plain)), sign or "USD"
    except InvalidOperation:
        raise ValueError(f"amount: expected a decimal number, not {text[:40]!r}") from None
