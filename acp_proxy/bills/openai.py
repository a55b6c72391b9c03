"""Pages of OpenAI's `organization/usage/completions` and `organization/costs`.

Input has cached tokens and those written to the cache inside. Costs name a model only in their line item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from msgspec import Struct

from acp_proxy.bills import Bill, Count, File, Part
from acp_proxy.bills.buckets import Bucket, Page, Pages
from acp_proxy.bills.decoded import decoded, one_line
from acp_proxy.bills.folding import Fold

_EXPECTED = "a page of OpenAI's organization/usage/completions or organization/costs"
_PARTS: Mapping[str, Part] = {
    "input": "input",
    "cached input": "cached_read",
    "cache write": "cached_write",
    "cache writes": "cached_write",
    "output": "output",
}


class _Amount(Struct, frozen=True, gc=False):
    value: Decimal | None = None
    currency: str | None = None


class _Result(Struct, frozen=True, gc=False):
    """Of either; `amount` is what tells money from tokens."""

    input_tokens: Count | None = None
    input_cached_tokens: Count | None = None
    input_cache_write_tokens: Count | None = None
    output_tokens: Count | None = None
    amount: _Amount | None = None
    line_item: str | None = None
    model: str | None = None
    api_key_id: str | None = None
    user_id: str | None = None


class _Bucket(Struct, frozen=True, gc=False):
    start_time: int
    end_time: int
    results: list[_Result]


class _Answer(Struct, frozen=True, gc=False):
    data: list[_Bucket]
    has_more: bool
    next_page: str | None = None


def read(files: Iterable[File]) -> Bill:
    """Raises BillError."""
    pages, fold = Pages(), Fold()
    for file in files:
        with one_line(file, _EXPECTED):
            _read(file, pages, fold)
    pages.check()
    return Bill("openai", fold.lines(), pages.days("usage"), pages.days("cost"))


def _read(file: File, pages: Pages, fold: Fold) -> None:
    answer = decoded(file, _Answer, _EXPECTED)
    first = next((row for bucket in answer.data for row in bucket.results), None)
    page = Page(
        file.name,
        None if first is None else "usage" if first.amount is None else "cost",
        tuple(
            (Bucket(each.start_time, each.end_time, file.name), (len(each.results), sum(map(hash, each.results))))
            for each in answer.data
        ),
        answer.next_page or "unknown" if answer.has_more else None,
    )
    for position in pages.new(page):
        day = page.buckets[position][0].day
        for row in answer.data[position].results:
            _add(fold, day, row)


def _add(fold: Fold, day: int, row: _Result) -> None:
    if row.amount is None:
        read, write = row.input_cached_tokens or 0, row.input_cache_write_tokens or 0
        tokens = (max(0, (row.input_tokens or 0) - read - write), read, write, 0, row.output_tokens or 0)
        fold.add(day, row.model, key=row.api_key_id, user=row.user_id, tokens=tokens)
        return
    model, part, item = _line_item(row.line_item)
    fold.add(
        day,
        row.model or model,
        key=row.api_key_id,
        user=row.user_id,
        item=item,
        part=part,
        amount=row.amount.value,
        currency=row.amount.currency or "USD",
    )


def _line_item(text: str | None) -> tuple[str | None, Part | None, str | None]:
    """Model, kind of tokens, and what else it is: `gpt-5.6-sol, cached input`, or `web search tool calls`."""
    model, comma, what = (text or "").rpartition(", ")
    if comma and what in _PARTS:
        return model, _PARTS[what], None
    return None, None, text or None
