"""Pages of Anthropic's Admin API: `usage_report/messages`, `cost_report`, and `analytics/usage` and `analytics/cost`.

Amounts are cents. The two older ones have buckets with their rows inside, the newer ones rows with their bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct, field

from acp_proxy.bills import Bill, Count, File, Part
from acp_proxy.bills.buckets import Bucket, Kind, Page, Pages
from acp_proxy.bills.decoded import decoded, not_that, one_line, seconds
from acp_proxy.bills.folding import Fold

_EXPECTED = "a page of Anthropic's usage_report/messages, cost_report, analytics/usage or analytics/cost"
_PARTS: Mapping[str, Part] = {
    "uncached_input_tokens": "input",
    "cache_read_input_tokens": "cached_read",
    "cache_creation.ephemeral_5m_input_tokens": "cached_write",
    "cache_creation.ephemeral_1h_input_tokens": "cached_write_1h",
    "output_tokens": "output",
}


class _Creation(Struct, frozen=True, gc=False):
    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class _Actor(Struct, frozen=True, gc=False):
    email: str | None = field(name="email_address", default=None)
    name: str | None = None
    user_id: str | None = None
    id: str | None = None


class _Row(Struct, frozen=True, gc=False):
    """Of any of the four; `amount` is what tells money from tokens."""

    uncached_input_tokens: Count | None = None
    cache_creation: _Creation | None = None
    cache_read_input_tokens: Count | None = None
    output_tokens: Count | None = None
    amount: Decimal | None = None
    currency: str = "USD"
    cost_type: str | None = None
    token_type: str | None = None
    description: str | None = None
    model: str | None = None
    api_key_id: str | None = None
    account_id: str | None = None
    actor: _Actor | None = None


class _Item(Struct, frozen=True, gc=False):
    """A bucket with `results`, or a row of `group` and `usage` or `cost`."""

    starting_at: datetime
    ending_at: datetime
    results: list[_Row] | None = None
    group: _Row | None = None
    usage: _Row | None = None
    cost: _Row | None = None

    @property
    def pairs(self) -> list[tuple[_Row, _Row]]:
        """Of each row who and what it is about, and its figures."""
        if self.results is not None:
            return [(row, row) for row in self.results]
        about = self.group or _Row()
        return [(about, row) for row in (self.usage, self.cost) if row is not None]


class _Answer(Struct, frozen=True, gc=False):
    data: list[_Item]
    has_more: bool
    next_page: str | None = None


def read(files: Iterable[File]) -> Bill:
    """Raises BillError."""
    pages, fold = Pages(), Fold()
    for file in files:
        with one_line(file, _EXPECTED):
            _read(file, pages, fold)
    pages.check()
    return Bill("anthropic", fold.lines(), pages.days("usage"), pages.days("cost"))


def _read(file: File, pages: Pages, fold: Fold) -> None:
    answer = decoded(file, _Answer, _EXPECTED)
    if any((item.results, item.usage, item.cost) == (None, None, None) for item in answer.data):
        raise not_that(file, _EXPECTED, "an item has neither `results` nor `usage` nor `cost`")
    page = Page(
        file.name,
        _kind(answer.data),
        tuple((_bucket(item, file), _mark(item)) for item in answer.data),
        answer.next_page or "unknown" if answer.has_more else None,
        split=any(item.results is None for item in answer.data),
    )
    for position in pages.new(page):
        day = page.buckets[position][0].day
        for about, row in answer.data[position].pairs:
            _add(fold, day, about, row)


def _kind(items: list[_Item]) -> Kind | None:
    rows = [row for item in items for _, row in item.pairs[:1]]
    return None if not rows else "usage" if rows[0].amount is None else "cost"


def _bucket(item: _Item, file: File) -> Bucket:
    return Bucket(seconds(item.starting_at), seconds(item.ending_at), file.name)


def _mark(item: _Item) -> object:
    """Equal for the same rows in any order."""
    pairs = item.pairs
    return len(pairs), sum(map(hash, pairs))


def _add(fold: Fold, day: int, about: _Row, row: _Row) -> None:
    actor = about.actor
    user = (actor.email or actor.name or actor.user_id or actor.id) if actor else about.account_id
    if row.amount is None:
        made = row.cache_creation or _Creation()
        tokens = (
            row.uncached_input_tokens or 0,
            row.cache_read_input_tokens or 0,
            made.ephemeral_5m_input_tokens or 0,
            made.ephemeral_1h_input_tokens or 0,
            row.output_tokens or 0,
        )
        fold.add(day, about.model, key=about.api_key_id, user=user, tokens=tokens)
        return
    other = about.cost_type if about.cost_type not in (None, "tokens") else None
    item = other or (None if about.model else about.description)
    fold.add(
        day,
        about.model,
        key=about.api_key_id,
        user=user,
        item=item,
        part=_PARTS.get(about.token_type or ""),
        amount=row.amount,
        currency=row.currency,
        cents=True,
    )
