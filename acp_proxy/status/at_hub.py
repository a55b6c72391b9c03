"""What a developer has asked a hub for, and what it has lent to this machine: as text, and as in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acp_proxy.budget import with_unit
from acp_proxy.core.budget import Limit
from acp_proxy.core.budget.requests import MoreRequest
from acp_proxy.core.money import exact_text
from acp_proxy.core.windows import DAY
from acp_proxy.policy.borrowed import Borrowed
from acp_proxy.text.figures import clean, counted
from acp_proxy.text.times import Zone, rfc3339, rfc3339_or_none


def news(requests: Sequence[MoreRequest], now: int) -> list[MoreRequest]:
    """Those that wait, and those that were decided on within a day; the latest first."""
    return [each for each in requests if each.state == "pending" or now - (each.decided_at or 0) < DAY]


def in_short(requests: Iterable[MoreRequest]) -> Iterator[str]:
    """For one line: `1 request waits`, `$2.00 more of daily granted`, `no more of daily: denied`."""
    found = list(requests)
    if waiting := sum(each.state == "pending" for each in found):
        yield f"{counted(waiting, 'request')} for more {'waits' if waiting == 1 else 'wait'}"
    for each in found:
        if each.state == "approved":
            yield f"{_amount(each)} more of {clean(each.wish.budget)} granted"
        elif each.state == "denied":
            yield f"no more of {clean(each.wish.budget)}: denied"


def in_lines(requests: Iterable[MoreRequest], lent: Sequence[Borrowed], zone: Zone) -> Iterator[str]:
    """A line for each request, and one for what is lent."""
    for each in requests:
        wish = each.wish
        asked = with_unit(wish.amount, Limit(wish.amount, wish.unit))
        said = f"asked for {asked} more of {wish.budget}, {_moment(each.at, zone)}: {each.state}"
        if each.state == "approved":
            said += f" by {each.decided_by}, {_amount(each)} until {_moment(each.until, zone)}"
        elif each.state == "denied":
            said += f" by {each.decided_by}: {each.note}" if each.note else f" by {each.decided_by}"
        yield clean(said)
    if lent:
        until = _moment(min(each.until for each in lent), zone)
        yield clean(f"lent to this machine until {until}: {', '.join(map(_lent, lent))}")


def lent_in_short(lent: Iterable[Borrowed]) -> str:
    return clean(", ".join(map(_lent, lent)))


def described(request: MoreRequest) -> dict[str, object]:
    wish = request.wish
    return {
        "id": wish.id,
        "budget": wish.budget,
        "amount": exact_text(wish.amount, wish.unit),
        "unit": wish.unit,
        "asked_at": rfc3339(request.at),
        "state": request.state,
        "by": request.decided_by,
        "granted": None if request.amount is None else exact_text(request.amount, wish.unit),
        "expires_at": rfc3339_or_none(request.until),
        "note": request.note,
    }


def described_loan(lent: Borrowed) -> dict[str, object]:
    return {
        "budget": lent.budget,
        "layer": lent.layer,
        "amount": exact_text(lent.amount, lent.unit),
        "unit": lent.unit,
        "until": rfc3339(lent.until),
    }


def _amount(request: MoreRequest) -> str:
    amount = request.amount or request.wish.amount
    return with_unit(amount, Limit(amount, request.wish.unit))


def _lent(lent: Borrowed) -> str:
    return f"{with_unit(lent.amount, Limit(lent.amount, lent.unit))} of {lent.budget}"


def _moment(at: int | None, zone: Zone) -> str:
    return "-" if at is None else f"{zone.local(at):%Y-%m-%d %H:%M}"
