"""Spend in a period: totals, lines by a key, cards, values of a chart. Keys and figures are as in reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from acp_proxy.core.money import decimal_text
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import Sums
from acp_proxy.ledger.sums.buckets import QUARTER_HOUR
from acp_proxy.report import DIMENSIONS, Line, currencies_of, folded, line_of, name_of, ordered
from acp_proxy.report.formats import figures, not_billed
from acp_proxy.serve.periods import Interval, Step, Steps, bounds_of, days, steps_of
from acp_proxy.serve.sums import KeptSums, Where
from acp_proxy.text.times import SECOND, Zone, begin_of, day_after, rfc3339_or_none

BY = DIMENSIONS  # the first one is what is shown unless something else is asked for
MOST_LINES = 200  # of a table
MOST_SERIES = 8  # of a chart
OTHER = "other"

_SOURCES = ("usage_source", "cost_source")
_KNOWN = ("exact", "partial", "estimated", "unpriced", "none")  # how well a row's tokens and their cost are known
_SOMETIMES = ("team", "user", "kind", "billing")  # worth looking at where there is more than one
_CARDS = ("today", "week", "month")

_Summed = Callable[[int | None, int | None, Sequence[str]], Sequence[Sums]]  # since, until, by


class Totals(Struct):
    """The sums of a period's rows, and how many rows are exact, partial, estimated and so on."""

    line: Line = field(default_factory=lambda: Line("total"))
    sources: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KNOWN, 0))
    first: int | None = None  # the earliest start

    def add(self, groups: Iterable[Sums]) -> None:
        """Groups by `_SOURCES`, and by what else comes after these."""
        for sums in groups:
            self.line = self.line.plus(line_of("total", sums))
            self.sources[_source(*sums.key[: len(_SOURCES)])] += sums.rows - sums.unpriced
            self.sources["unpriced"] += sums.unpriced
            self.first = sums.started_at if self.first is None else min(self.first, sums.started_at)


def spend(kept: KeptSums, period: str, by: str, zone: Zone, now: int, where: Where = ()) -> dict[str, Any]:
    """The answer to one question, as docs/serve.md describes it, from rows that are as `where` says."""
    version = kept.version()
    summed = partial(kept.of, where=where)
    all_time = summed(None, None, (*_SOURCES, *_SOMETIMES))  # for the total and for `also_by`: each row changes it
    ever = Totals()
    ever.add(all_time)
    steps = steps_of(period, zone, now, ever.first)
    pieces = [pieces_of(step, steps.step, zone, now) for step in steps.bounds]
    since, until = bounds_of(period, zone, now)
    if since is None:
        pieces[0][0] = (None, pieces[0][0][1])  # a chart goes back only so far
    cards = {card: _totals(summed, _days(begin_of(card, zone, now), zone, now)) for card in _CARDS}
    total = ever if period == "all" else cards.get(period) or _totals(summed, chain.from_iterable(pieces))
    lines_by_step = _lines_by_hour(summed, by, steps) if steps.step == "hour" else by_step(summed, by, pieces)
    currencies = currencies_of(total.line.costs, lambda: summed(since, until, ("currency",)))
    lines = ordered(by, folded(line for lines in lines_by_step for line in lines), currencies)
    prompt = total.line.usage.prompt
    return {
        "timezone": zone.name,
        "range": period,
        "by": by,
        "also_by": _also_by(all_time),
        "since": rfc3339_or_none(since),
        "until": rfc3339_or_none(until),
        "total": _figures(total.line, currencies),
        "rows": _rows(lines, currencies),
        "sources": total.sources,
        "cache_hit_ratio": f"{total.line.usage.cached_read / prompt:.4f}" if prompt else None,
        "cards": {card: _card(found.line, currencies) for card, found in cards.items()},
        "over_time": _over_time(steps, lines_by_step, currencies),
        "version": version,
    }


def _also_by(groups: Iterable[Sums]) -> list[str]:
    keys = [sums.key[len(_SOURCES) :] for sums in groups]
    return [name for name, values in zip(_SOMETIMES, zip(*keys, strict=True), strict=False) if len(set(values)) > 1]


def _source(usage_source: object, cost_source: object) -> str:
    if "estimated" in (usage_source, cost_source):  # a killed turn may have a cost, what it held, and no usage
        return "estimated"
    if usage_source == "none":
        return "none"
    return "partial" if usage_source == "partial" else "exact"


def _days(since: int, zone: Zone, now: int) -> list[Interval]:
    """Day by day, for but today are known from before; so is what comes later, in days of UTC that have no rows yet."""
    starts = days(since, zone, now)
    later = -(-day_after(starts[-1], zone) // DAY) * DAY
    return [*zip(starts, (*starts[1:], later), strict=True), (later, None)]


def pieces_of(step: Interval, kind: Step, zone: Zone, now: int) -> list[Interval]:
    """A step as intervals of which as few as possible change; the running one is made of days."""
    since, until = step
    if kind == "hour" or since is None or until is not None:
        return [step]
    return _days(since, zone, now)


def _totals(summed: _Summed, intervals: Iterable[Interval]) -> Totals:
    found = Totals()
    for since, until in intervals:
        found.add(summed(since, until, _SOURCES))
    return found


def _lines_by_hour(summed: _Summed, by: str, steps: Steps) -> list[list[Line]]:
    """All hours of a day are asked for at once, in the quarters that a ledger counts by."""
    first = steps.starts[0]
    found: list[list[Line]] = [[] for _ in steps.starts]
    for sums in summed(first, steps.end, (by, "quarter_hour")):
        hour = (int(sums.key[1] or 0) * QUARTER_HOUR - first) // HOUR
        found[max(0, min(hour, len(found) - 1))].append(line_of(name_of(by, sums.key[0]), sums))
    return [list(folded(lines)) for lines in found]


def by_step(summed: _Summed, by: str, pieces: Iterable[Iterable[Interval]]) -> list[list[Line]]:
    """One line a key of each step, which is given as pieces."""
    return [list(folded(line for since, until in step for line in _lines(summed, by, since, until))) for step in pieces]


def _lines(summed: _Summed, by: str, since: int | None, until: int | None) -> Iterator[Line]:
    return (line_of(name_of(by, sums.key[0]), sums) for sums in summed(since, until, (by,)))


def _rows(lines: Sequence[Line], currencies: Sequence[str]) -> list[dict[str, Any]]:
    """As many as a page can show; the rest is one line."""
    shown = [{"key": line.key, **_figures(line, currencies)} for line in lines[:MOST_LINES]]
    rest = lines[MOST_LINES:]
    if rest:
        (together,) = folded(replace(line, key=OTHER) for line in rest)
        shown.append({"key": OTHER, **_figures(together, currencies), "others": len(rest)})
    return shown


def _figures(line: Line, currencies: Sequence[str]) -> dict[str, Any]:
    return {**figures(line), "cost": _cost(line, currencies), "at_least": line.cost_at_least > 0}


def _card(line: Line, currencies: Sequence[str]) -> dict[str, Any]:
    return {
        "cost": _cost(line, currencies),
        **not_billed(line),
        "turns": line.turns,
        "tokens_total": line.usage.total,
        "at_least": line.cost_at_least > 0,
    }


def _cost(line: Line, currencies: Sequence[str]) -> dict[str, str]:
    amounts = {cost.currency: cost.text for cost in line.costs}
    return {currency: amounts[currency] for currency in _in_order(amounts, currencies)}


def _in_order(some: Iterable[str], currencies: Sequence[str]) -> list[str]:
    """As they are shown: those of `currencies` as they stand there, then all others."""
    places = {currency: place for place, currency in enumerate(currencies)}
    return sorted(some, key=lambda currency: (places.get(currency, len(places)), currency))


def _over_time(steps: Steps, lines_by_step: Sequence[Sequence[Line]], currencies: Sequence[str]) -> dict[str, Any]:
    amounts: dict[str, dict[str, list[int | None]]] = {}  # by currency and key, in nano-units
    for number, lines in enumerate(lines_by_step):
        for line in lines:
            for cost in line.costs:
                values = amounts.setdefault(cost.currency, {}).setdefault(line.key, [None] * len(lines_by_step))
                values[number] = cost.nano
    return {
        "step": steps.step,
        "starts": [start // SECOND for start in steps.starts],
        "currencies": {currency: _series(amounts[currency]) for currency in _in_order(amounts, currencies)},
    }


def _series(by_key: Mapping[str, list[int | None]]) -> list[dict[str, Any]]:
    """The largest first; all beyond `MOST_SERIES` as one, that says how many it stands for."""
    keys = sorted(by_key, key=lambda key: (-sum(filter(None, by_key[key])), key))
    shown: list[dict[str, Any]] = [{"key": key, "values": _texts(by_key[key])} for key in keys[:MOST_SERIES]]
    rest = [by_key[key] for key in keys[MOST_SERIES:]]
    if rest:
        together = [
            sum(filter(None, step)) if any(each is not None for each in step) else None
            for step in zip(*rest, strict=True)
        ]
        shown.append({"key": OTHER, "values": _texts(together), "others": len(rest)})
    return shown


def _texts(values: Iterable[int | None]) -> list[str | None]:
    return [None if nano is None else decimal_text(nano) for nano in values]
