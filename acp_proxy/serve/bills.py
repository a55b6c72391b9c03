"""Bills that were kept, for the page: how much of each the ledger had, by day, and why the rest differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from acp_proxy.core.money import decimal_text
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.captures import Capture, Detail
from acp_proxy.text.figures import clean
from acp_proxy.text.times import rfc3339

_GONE = 30 * DAY  # since anybody asked the provider


def bills(
    captures: Iterable[Capture], details: Mapping[str, Detail], sources: Iterable[BillSource], now: int
) -> dict[str, Any]:
    """`sources` are providers that are asked, of which some may have no bill yet. `now` is Unix ns."""
    return {
        "bills": [_bill(each, details.get(each.provider, Detail())) for each in captures],
        "sources": [_source(each, now) for each in sources if now - each.tried_at < _GONE],
    }


def _source(of: BillSource, now: int) -> dict[str, Any]:
    return {
        "provider": of.provider,
        "fetched_at": rfc3339(of.fetched_at) if of.fetched_at else None,
        "tried_at": rfc3339(of.tried_at),
        "again_at": rfc3339(of.due_at),
        "trouble": clean(of.trouble) or None,
        "asked": now - of.due_at < DAY,  # otherwise nobody seems to
    }


def _bill(of: Capture, detail: Detail) -> dict[str, Any]:
    return {
        "provider": of.provider,
        "since": _date(of.since),
        "until": _date(of.until - 1),
        "kept_at": rfc3339(of.noted_at),
        "currency": of.currency,
        **_sides(of.billed_tokens, of.seen_tokens, of.billed, of.seen),
        "days": [
            {"day": _date(each.day * DAY), **_sides(each.billed_tokens, each.seen_tokens, each.billed, each.seen)}
            for each in detail.days
        ],
        "causes": [
            {"kind": each.kind, "says": clean(each.says), "tokens": each.tokens, "cost": decimal_text(each.cost)}
            for each in detail.causes
        ],
    }


def _sides(billed_tokens: int, seen_tokens: int, billed: int, seen: int) -> dict[str, Any]:
    return {
        "tokens": {"billed": billed_tokens, "seen": seen_tokens},
        "cost": {"billed": decimal_text(billed), "seen": decimal_text(seen)},
    }


def _date(at: int) -> str:
    return rfc3339(at)[:10]
