"""A finding, and figures as it says them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from acp_proxy.bills import date_of
from acp_proxy.core.money import Money
from acp_proxy.text.figures import cost_text, counted

_MOST = 4  # stretches of days that are named one by one


class Finding(Struct, frozen=True):
    """One cause of a difference; `tokens` and `costs` are how much it is about, 0 and nothing where not known."""

    kind: str
    says: str  # one line for people
    model: str | None = None
    days: tuple[int, ...] = ()  # since 1970
    tokens: int = 0
    costs: tuple[Money, ...] = ()
    toml: str | None = None  # for the configuration


def money_text(tokens: int, costs: Sequence[Money]) -> str:
    """`12,000 tokens, $1.25`."""
    known = [cost for cost in costs if cost.nano]
    parts = [counted(tokens, "token")] if tokens else []
    return ", ".join([*parts, *([cost_text(known, column=False)] if known else [])]) or "no tokens"


def days_text(days: Iterable[int]) -> str:
    """`2026-11-03, 2026-11-05 to 2026-11-09`."""
    stretches: list[list[int]] = []
    for day in sorted(days):
        if stretches and stretches[-1][1] == day - 1:
            stretches[-1][1] = day
        else:
            stretches.append([day, day])
    named = [date_of(first) if first == last else f"{date_of(first)} to {date_of(last)}" for first, last in stretches]
    more = len(named) - _MOST
    return ", ".join(named[:_MOST] + ([f"{more} more"] if more > 0 else []))
