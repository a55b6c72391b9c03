"""The cost of tokens: exact integer arithmetic over the rates of one catalog row.

Never a float, never a guess: unknown is None, and `detail` names assumptions. The caller finds the row
(`core/models.py`, `acp_proxy.catalog`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Literal, Protocol

from msgspec import Struct

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

CacheWrite = Literal["5m", "1h"]

_PLACES = 18  # decimals of a price per million tokens that are kept, so that a token costs whole 10**-24 units
_PER_NANO = 10 ** (_PLACES + 6 - 9)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Priced(Struct, frozen=True):
    """`cost` is None when the model or one of its rates is unknown."""

    cost: Money | None
    row: str | None = None  # catalog row, e.g. "anthropic/claude-opus-5-5"
    estimated: bool = False
    detail: str = ""
    configured: bool = False  # by a price in the user's configuration, which wins over the agent's own cost


class Pricer(Protocol):
    """The meter's interface to the catalog. A model is as the agent named it, None if it did not."""

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        """The cost of `usage` at `at` (Unix ns). `context` is the largest context of a single request, in tokens."""

    def window(self, model: str | None) -> int | None:
        """The model's context window in tokens."""

    def is_alias(self, model: str | None) -> bool:
        """Whether the id names no fixed model (`default`, `auto`, bare `sonnet` ...)."""

    def concrete(self, model: str | None) -> str | None:
        """The fixed model that an id names; None where that is not known."""


class Rates(Struct, frozen=True):
    """Prices per token in 10**-24 units, None where unknown. Thinking costs what output costs."""

    input: int | None = None
    output: int | None = None
    cached_read: int | None = None
    cached_write: int | None = None  # kept for five minutes, or the only kind there is
    cached_write_1h: int | None = None

    @classmethod
    def of(
        cls,
        input: str | None = None,
        output: str | None = None,
        cached_read: str | None = None,
        cached_write: str | None = None,
        cached_write_1h: str | None = None,
    ) -> Rates:
        """From units per million tokens as decimal text. ValueError for what is not such a number, or negative."""
        return cls(*map(_per_token, (input, output, cached_read, cached_write, cached_write_1h)))

    @property
    def texts(self) -> dict[str, str | None]:
        """Units per million tokens as exact decimal text, by the keys of `[prices]`."""
        return {name: _per_million(getattr(self, name)) for name in self.__struct_fields__}

    def times(self, factor: int) -> Rates:
        return Rates(*(None if rate is None else rate * factor for rate in self._all))

    @property
    def _all(self) -> tuple[int | None, ...]:
        return (self.input, self.output, self.cached_read, self.cached_write, self.cached_write_1h)


class Tier(Struct, frozen=True):
    above: int  # tokens of one request's prompt
    rates: Rates


class Step(Struct, frozen=True):
    """The prices from `since` (Unix ns) on. None: since ever, or it is not known since when."""

    since: int | None
    rates: Rates
    tiers: tuple[Tier, ...] = ()  # by `above`, ascending


class Peak(Struct, frozen=True):
    """Hours at which everything costs a multiple: from `since` on, on weekdays that are no holidays, in UTC."""

    since: int
    hours: tuple[tuple[int, int], ...]  # half-open
    factor: int
    holidays: frozenset[date] = frozenset()

    def covers(self, at: int) -> bool:
        moment = _moment(at)
        if at < self.since or moment.weekday() >= 5 or moment.date() in self.holidays:
            return False
        return any(start <= moment.hour < end for start, end in self.hours)


class PriceRow(Struct, frozen=True):
    """The data of the catalog, or of the user's configuration, for one model."""

    steps: tuple[Step, ...]  # by `since`, ascending, at least one
    window: int | None = None  # tokens
    peak: Peak | None = None
    source: str = ""


class Quote(Struct, frozen=True):
    """The rates that hold for one request or turn, and what had to be assumed."""

    rates: Rates
    since: int | None
    estimated: bool = False
    notes: tuple[str, ...] = ()


def quote(row: PriceRow, at: int, context: int | None, prompt: int) -> Quote:
    """The row's rates at `at` (Unix ns), for a largest request of `context` tokens out of `prompt` in all.

    Long-context tiers are per request. Without `context` the base price is certain as long as everything together is
    below the first tier, else it is an estimate. Before a row's first known price that price is taken, as an estimate.
    """
    estimated, notes = False, []
    for step in reversed(row.steps):
        if step.since is None or step.since <= at:
            break
    else:
        step = row.steps[0]
        estimated = True
        notes.append(f"no price is known before {_moment(step.since or 0).date()}: as from then on")
    rates = step.rates
    if context is not None:
        for tier in step.tiers:
            if context > tier.above:
                rates, notes = tier.rates, [f"price above {tier.above:,} tokens of context"]
    elif step.tiers and prompt > step.tiers[0].above:
        estimated = True
        notes.append("context unknown: base price")
    if row.peak and row.peak.covers(at):
        rates = rates.times(row.peak.factor)
        notes.append("peak hours")
    return Quote(rates, step.since, estimated, tuple(notes))


def cost(rates: Rates, usage: Usage, written_for: CacheWrite = "5m", cached_write_1h: int = 0) -> Priced:
    """The exact sum in US dollars, rounded half-even to a nano-unit once. `cached_write_1h` tokens come on top.

    Where a row has no price for cache reads or writes, its provider bills them as input, or a configuration does not
    say: they are priced as input, and the result is an estimate.
    """
    write = rates.cached_write
    notes = []
    if rates.cached_write_1h is not None and usage.cached_write:
        write = rates.cached_write_1h if written_for == "1h" else write
        notes.append(f"cache writes at the {'1-hour' if written_for == '1h' else '5-minute'} price")
    total, estimated = 0, False
    as_input = (rates.input, "input")
    as_write = as_input if write is None else (write, "other writes")
    for name, tokens, rate, (otherwise, kind) in (
        ("input", usage.input, rates.input, (None, "")),
        ("output", usage.completion, rates.output, (None, "")),
        ("cached_read", usage.cached_read, rates.cached_read, as_input),
        ("cached_write", usage.cached_write, write, as_input),
        ("cached_write_1h", cached_write_1h, rates.cached_write_1h, as_write),
    ):
        if not tokens:
            continue
        if rate is None:
            if otherwise is None:
                return Priced(None, detail=f"no price for {name}")
            estimated = True
            notes.append(f"no price for {name}: as {kind}")
            rate = otherwise
        total += tokens * rate
    money = _money(total, "USD")
    return Priced(money, estimated=estimated, detail="; ".join(notes if money else ("cost out of range",)))


def _money(total: int, currency: str) -> Money | None:
    nano, rest = divmod(total, _PER_NANO)
    if 2 * rest > _PER_NANO or (2 * rest == _PER_NANO and nano % 2):
        nano += 1
    return Money(nano, currency) if nano < 2**63 else None  # what a ledger's column holds


def _per_token(per_million: str | None) -> int | None:
    if per_million is None:
        return None
    try:
        price = Decimal(per_million)
        if price.adjusted() > _PLACES:
            raise ValueError("too large")
        rate = int(price.scaleb(_PLACES))
        exact = Decimal(rate).scaleb(-_PLACES) == price
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(f"not a price per million tokens: {per_million!r}") from error
    if rate < 0 or not exact:
        raise ValueError(f"not a price per million tokens: {per_million!r}")
    return rate


def _per_million(rate: int | None) -> str | None:
    if rate is None:
        return None
    units, rest = divmod(rate, 10**_PLACES)
    fraction = f"{rest:0{_PLACES}d}".rstrip("0")
    return f"{units}.{fraction}" if fraction else str(units)


def _moment(at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at // 1_000_000_000)
