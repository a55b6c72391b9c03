"""What tokens of a bill cost at the prices that are known, and which prices fit what was billed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from acp_proxy.catalog import Catalog
from acp_proxy.config.schema import quoted
from acp_proxy.core import pricing
from acp_proxy.core.pricing import CacheWrite, Rates
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY
from acp_proxy.reconcile.cells import Cell, Side

_PARTS = ("input", "output", "cached_read", "cached_write", "cached_write_1h")
_PLACES = 10


class Fit(Struct, frozen=True):
    """`factor`: what was billed, by the known price. `entry` is a `[prices]` that gives what was billed each day."""

    billed: int  # nano-dollars
    listed: int | None  # at known prices; None without any
    factor: Fraction | None
    entry: str | None


def rates_on(catalog: Catalog, model: str, day: int) -> Rates | None:
    found = catalog.find(model)
    return None if found is None else pricing.quote(found.row, day * DAY + DAY // 2, 0, 0).rates


def cost(rates: Rates | None, side: Side, written_for: CacheWrite | None = None) -> int | None:
    """In nano-dollars; with `written_for` as if all that is written to the cache were for so long."""
    if rates is None:
        return None
    usage, hour = side.usage, side.cached_write_1h
    if written_for is not None:
        written = usage.cached_write + hour
        usage = Usage(usage.input, usage.cached_read, written, usage.output)
        hour = 0
    priced = pricing.cost(rates, usage, written_for or "5m", hour).cost
    return None if priced is None else priced.nano


def slack(cell: Cell) -> int:
    """By how much the sum of rounded amounts may differ from the exact one, in nano-units."""
    return cell.amounts * (int(10 ** (9 - cell.decimals)) // 2 + 1) + 1


def dollars(cell: Cell) -> int:
    return sum(cost.nano for cost in cell.bill.costs if cost.currency == "USD")


def fit(catalog: Catalog, model: str, days: Mapping[int, Cell]) -> Fit | None:
    """None where what was billed is what was known, but for rounding."""
    rates = {day: rates_on(catalog, model, day) for day in days}
    listed = {day: cost(rates[day], cell.bill) for day, cell in days.items()}
    known = [each for each in listed.values() if each is not None]
    whole = sum(known) if len(known) == len(days) else None
    billed = sum(map(dollars, days.values()))
    if whole is not None and all(abs(dollars(cell) - (listed[day] or 0)) <= slack(cell) for day, cell in days.items()):
        return None
    factor = Fraction(billed, whole) if whole else None
    last = rates[max(days)]
    texts = _by_parts(days, last) or (_by_factor(days, listed, last, factor) if factor and last else None)
    if texts and not _fits(texts, days):
        texts = None
    return Fit(billed, whole, factor, _toml(model, texts) if texts else None)


def _by_parts(days: Mapping[int, Cell], known: Rates | None) -> dict[str, str] | None:
    """A price for each kind of tokens that the bill has an amount for; of others the known one."""
    if any(sum(cell.parts.values()) != dollars(cell) for cell in days.values()):
        return None
    texts = {name: text for name, text in (known.texts if known else {}).items() if text is not None}
    for part in _PARTS:
        tokens = sum(_tokens(cell.bill, part) for cell in days.values())
        nano = sum(cell.parts.get(part, 0) for cell in days.values())  # type: ignore[call-overload]
        if not tokens or not any(part in cell.parts for cell in days.values()):
            continue
        room = sum(map(slack, days.values()))
        price = Fraction(nano, 1000 * tokens)
        text = next(
            (
                decimal(price, n)
                for n in range(_PLACES)
                if abs(Fraction(decimal(price, n)) - price) * 1000 * tokens <= room
            ),
            None,
        )
        if text is None:
            return None
        texts[part] = text
    return texts


def _by_factor(
    days: Mapping[int, Cell], listed: Mapping[int, int | None], known: Rates, factor: Fraction
) -> dict[str, str] | None:
    """Known prices times one factor, the shortest that gives what was billed on each day."""
    for places in range(_PLACES):
        short = Fraction(decimal(factor, places))
        if all(abs((listed[day] or 0) * short - dollars(cell)) <= slack(cell) for day, cell in days.items()):
            break
    else:
        return None
    times = Decimal(decimal(factor, places))
    return {name: f"{(Decimal(text) * times).normalize():f}" for name, text in known.texts.items() if text is not None}


def _fits(texts: Mapping[str, str], days: Mapping[int, Cell]) -> bool:
    try:
        rates = Rates.of(**texts)
    except ValueError:
        return False
    return all(
        (found := cost(rates, cell.bill)) is not None and abs(found - dollars(cell)) <= slack(cell)
        for cell in days.values()
    )


def _tokens(side: Side, part: str) -> int:
    return side.cached_write_1h if part == "cached_write_1h" else int(getattr(side.usage, part))


def decimal(number: Fraction, places: int) -> str:
    scaled = round(number * 10**places)
    return f"{Decimal(scaled).scaleb(-places).normalize():f}"


def _toml(model: str, texts: Mapping[str, str]) -> str:
    lines = [f'{part} = "{texts[part]}"' for part in _PARTS if part in texts]
    return "\n".join((f"[prices.{quoted(model)}]", *lines)) + "\n"
