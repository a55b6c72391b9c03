"""The answers of `acp-proxy prices list|show|cost`, as text or JSON: every figure exact, nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.catalog import Catalog, Found
from acp_proxy.config.schema import quoted
from acp_proxy.core import pricing
from acp_proxy.core.models import is_alias, lab_and_model
from acp_proxy.core.money import amount_text
from acp_proxy.core.pricing import Priced, Quote, Rates, Step
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import SECOND
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import table
from acp_proxy.text.figures import aligned, clean
from acp_proxy.text.table import Column

_TITLES = {
    "input": "input",
    "output": "output",
    "cached_read": "cached read",
    "cached_write": "cached write",
    "cached_write_1h": "1 h write",
}
# Of the columns of a list: the model, its context, and these.
_RIGHT = (False, *[True] * (len(_TITLES) + 1))
_SPARE = (0, 2, 0, 0, 1, 3, 4)  # the highest goes first where there is no room


class Tokens(Struct, frozen=True):
    """Tokens of one or more requests. `cached_write_1h` are cache writes for an hour, whatever is configured."""

    usage: Usage
    cached_write_1h: int = 0

    @property
    def prompt(self) -> int:
        return self.usage.prompt + self.cached_write_1h


def list_prices(
    catalog: Catalog,
    at: int,
    search: str = "",
    *,
    as_json: bool = False,
    width: int | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Every model whose name contains `search`, with the prices at `at` (Unix ns), base tier.

    A dot in it is a dash, as in an id of Claude's and its row. For a terminal of `width` columns, which shows fewer
    prices where it is narrow.
    """
    wanted = _dashed(search.strip().lower())
    found = {name: row for name, row in catalog.listed().items() if wanted in _dashed(name)}
    quotes = [_quote(row, at) for row in found.values()]
    if as_json:
        return as_json_text([_answer(*each, quote) for each, quote in zip(found.items(), quotes, strict=True)])
    if not found:
        return f"no model in the catalog has {clean(search)!r} in its name\n"
    header = ["model", "context", *_TITLES.values()]
    rows = [
        [clean(name), _tokens(row.row.window), *_cells(quote.rates)]
        for (name, row), quote in zip(found.items(), quotes, strict=True)
    ]
    own = "".join(f" and prices of {whose}" for whose in _whose(found.values()))
    note = f"US dollars per million tokens; catalog of {catalog.date}{own}"
    if later := sum(quote.estimated for quote in quotes):
        note += f"; for {later} the first price, which is later"
    if width is None:
        return f"{aligned([header, *rows], _RIGHT)}{note}\n"
    cells = zip(header, zip(*rows, strict=True), _RIGHT, _SPARE, strict=True)
    columns = [Column(title, column, right=right, spare=spare) for title, column, right, spare in cells]
    if not table.fits(columns, width):  # not before: a name is what [prices] and [aliases] are written with
        columns[0] = replace(columns[0], name=True)
    return table.coloured(columns, [note], None, width, environ)


def show(catalog: Catalog, model: str, at: int, *, as_json: bool = False) -> str:
    """The model that a reported id resolves to, its window, its prices at `at` (Unix ns), their date and source."""
    found = catalog.find(model)
    if as_json:
        return as_json_text(_answer(model, found, _quote(found, at) if found else None))
    if found is None:
        return _unknown(catalog, model)
    lines = [["", *_TITLES.values()]]
    for step in found.row.steps:
        lines += _step_lines(step, at)
    peak, window = found.row.peak, found.row.window
    hours = ", ".join(f"{start:02}–{end:02}" for start, end in peak.hours) if peak else ""
    return "".join(
        (
            f"{clean(model)} is {found.name}\n" if clean(model) != found.name else f"{found.name}\n",
            f"context {_tokens(window)} tokens\n" if window else "context unknown\n",
            aligned(lines, [False, *[True] * len(_TITLES)]),
            f"times {peak.factor} on weekdays {hours} UTC, not on Chinese public holidays\n" if peak else "",
            "US dollars per million tokens; thinking costs what output costs\n",
            f"from {found.row.source}\n"
            if found.configured
            else f"from {found.row.source}; catalog of {catalog.date}\n",
        )
    )


def cost(
    catalog: Catalog, model: str, tokens: Tokens, at: int, context: int | None = None, *, as_json: bool = False
) -> str:
    """The cost of tokens at `at` (Unix ns). `context` is the largest request's; without it there is one request."""
    found = catalog.find(model)
    if found is None:
        return as_json_text(_answer(model, None, None)) if as_json else _unknown(catalog, model)
    quote = pricing.quote(found.row, at, tokens.prompt if context is None else context, tokens.prompt)
    priced = pricing.cost(quote.rates, tokens.usage, catalog.cache_write, tokens.cached_write_1h)
    if as_json:
        return as_json_text(_answer(model, found, quote, priced))
    lines = [
        [f"{amount:,}", _TITLES[name], "×", rate or "unknown"]
        for (name, rate), amount in zip(_rates_used(catalog, quote).items(), _amounts(tokens), strict=True)
        if amount
    ]
    notes = [*quote.notes, *([priced.detail] if priced.detail else [])]
    return "".join(
        (
            f"{_dollars(priced)}  {found.name}\n",
            aligned(lines, (True, False, False, True)) if lines else "",
            f"US dollars per million tokens; {'; '.join(notes)}\n" if notes else "US dollars per million tokens\n",
        )
    )


def _answer(model: str, found: Found | None, quote: Quote | None, priced: Priced | None = None) -> dict[str, Any]:
    """The JSON object of one model. Unknown: `rates` and `cost` are empty, all but `model` else is null."""
    money = priced.cost if priced else None
    answer: dict[str, Any] = {
        "model": model,
        "resolved": found.name if found else None,
        "context": found.row.window if found else None,
        "rates": quote.rates.texts if quote else {},
        "cost": {money.currency: money.text} if money else {},
        "since": _day(quote.since) if quote else None,
        "source": found.row.source if found else None,
    }
    if quote and priced:
        answer["estimated"] = quote.estimated or priced.estimated
        answer["notes"] = [*quote.notes, *([priced.detail] if priced.detail else [])]
    return answer


def _whose(found: Iterable[Found]) -> list[str]:
    """Of a configuration, and of a hub before it."""
    sources = {each.row.source.partition(",")[0] for each in found if each.configured}
    return [f"the {source.removeprefix('the ')}" for source in sorted(sources, reverse=True)]


def _dashed(name: str) -> str:
    return name.replace(".", "-")


def _quote(found: Found, at: int) -> Quote:
    return pricing.quote(found.row, at, 0, 0)


def _step_lines(step: Step, at: int) -> list[list[str]]:
    day = _day(step.since)
    when = "price" if day is None else f"{'from' if (step.since or 0) > at else 'since'} {day}"
    tiers = [[f"  above {_tokens(tier.above)} a request", *_cells(tier.rates)] for tier in step.tiers]
    return [[when, *_cells(step.rates)], *tiers]


def _rates_used(catalog: Catalog, quote: Quote) -> dict[str, str | None]:
    rates = quote.rates.texts
    one_hour = rates["cached_write_1h"] if catalog.cache_write == "1h" else None
    return rates if one_hour is None else {**rates, "cached_write": one_hour}


def _amounts(tokens: Tokens) -> Sequence[int]:
    usage = tokens.usage
    return (usage.input, usage.completion, usage.cached_read, usage.cached_write, tokens.cached_write_1h)


def _cells(rates: Rates) -> list[str]:
    return [rate or "-" for rate in rates.texts.values()]


def _tokens(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _dollars(priced: Priced) -> str:
    return "cost unknown" if priced.cost is None else amount_text(priced.cost)


def _day(since: int | None) -> str | None:
    return None if since is None else datetime.fromtimestamp(since // SECOND, UTC).date().isoformat()


def _unknown(catalog: Catalog, model: str) -> str:
    name, meant = clean(model), catalog.meant(model)
    said = name if meant == model else f"{name} is {clean(meant)} by [aliases]"
    rows = {lab_and_model(row)[1]: row for row, _ in catalog.rows}
    if is_alias(meant):
        found = ", ".join(_similar(meant, rows))
        hint = f"; such models are {found}" if found else ""
        return f'{said}: no fixed model, so no price; [aliases] {quoted(model)} = "…" names one{hint}\n'
    near = _similar(meant, rows)
    hint = f"; similar: {', '.join(near)}" if near else ""
    return f"{said}: not in the catalog; [prices.{quoted(meant)}] gives it a price{hint}\n"


def _is_resold(row: str) -> bool:
    """Whether the row is of a gateway, not of the lab that makes the model."""
    return lab_and_model(row)[0] is None


def _similar(model: str, rows: Mapping[str, str]) -> list[str]:
    """Names of rows: those that are spelled nearly so, else the newest that have the word in their name."""
    word = lab_and_model(model.lower()[:80])[1]
    near = [rows[other] for other in get_close_matches(word, rows, 3, 0.85)]
    if near:
        return near
    newest = sorted((row for name, row in rows.items() if word and word in name.split("-")), reverse=True)
    return sorted(newest, key=_is_resold)[:3]
