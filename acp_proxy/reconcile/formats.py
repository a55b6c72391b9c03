"""A reconciliation as a table for people, as JSON and as CSV. What is for programs is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acp_proxy.bills import date_of
from acp_proxy.core.money import Money, amount_text, rounded
from acp_proxy.reconcile import Line, Reconciliation
from acp_proxy.reconcile.cells import Side
from acp_proxy.reconcile.difference import Cause, Difference, in_steps
from acp_proxy.reconcile.said import Finding
from acp_proxy.report.formats import as_json_text
from acp_proxy.report.spreadsheet import csv_in_pieces, spreadsheet_text
from acp_proxy.text import table
from acp_proxy.text.figures import clean, cost_text, decimals_of, percent_text, tokens_text
from acp_proxy.text.table import Column
from acp_proxy.text.times import rfc3339

_MILLION = 10**6
_DECIMALS = 4
_SHOWN = 10 ** (9 - _DECIMALS)
_CAUSES: Mapping[Cause, str] = {
    "unseen": "not in the ledger",
    "tokens": "other tokens",
    "price": "another price",
    "booked": "booked otherwise",
    "not_tokens": "beside tokens",
    "unpriced": "without a known price",
}


def as_text(found: Reconciliation, width: int | None, environ: Mapping[str, str]) -> str:
    """For a pipe, or a terminal of `width` columns. Entries for the configuration come last, as they are pasted."""
    columns = _columns(found)
    notes = [_headline(found), *_parts(found.difference), *(f"- {clean(each.says)}" for each in found.findings)]
    shown = table.plain(columns, notes) if width is None else table.coloured(columns, notes, None, width, environ)
    entries = [each.toml for each in found.findings if each.toml]
    return shown + "".join(f"\n{entry}" for entry in entries)


def as_json(found: Reconciliation) -> str:
    return as_json_text(
        {
            "provider": found.provider,
            "by": found.by,
            "since": rfc3339(found.since),
            "until": rfc3339(found.until),
            "timezone": "UTC",
            "rows": [{"key": line.key, **_figures(line)} for line in found.lines],
            "total": _figures(found.total),
            "difference": _difference(found.difference),
            "findings": [_finding(each) for each in found.findings],
        }
    )


def as_csv(found: Reconciliation) -> Iterator[str]:
    """Its rows. US dollars are always there, other currencies come last."""
    total = (*found.total.bill.costs, *found.total.ledger.costs)
    others = sorted({cost.currency for cost in total} - {"USD"})
    header = [
        "key",
        *(f"{side}_{name}" for side in ("bill", "ledger") for name in (*_tokens(Side()), "cost_USD")),
        "captured_tokens",
        "captured_cost_USD",
        *(f"{side}_cost_{clean(currency)}" for currency in others for side in ("bill", "ledger")),
    ]
    return csv_in_pieces(header, (_cells(line, others) for line in found.lines))


def _cells(line: Line, others: Sequence[str]) -> list[object]:
    sides = (line.bill, line.ledger)
    figures = [[*_tokens(side).values(), _cost(side, "USD")] for side in sides]
    captured = (_part(line.ledger.tokens, line.bill.tokens), _captured_cost(line).get("USD"))
    more = [_cost(side, currency) for currency in others for side in sides]
    return [spreadsheet_text(line.key), *figures[0], *figures[1], *captured, *more]


def _columns(found: Reconciliation) -> list[Column]:
    lines, total = found.lines, found.total
    decimals = decimals_of(cost for line in lines for cost in (*line.bill.costs, *line.ledger.costs))

    def money(side: Side) -> str:
        return cost_text(side.costs, decimals)

    columns = [Column(found.by, [clean(line.key) for line in lines], "total", right=False, name=found.by != "day")]
    for title, cell, spare in (
        ("tokens billed", lambda line: tokens_text(line.bill.tokens), 0),
        ("in ledger", lambda line: tokens_text(line.ledger.tokens), 2),
        ("seen", lambda line: percent_text(line.ledger.tokens, line.bill.tokens), 0),
        ("cost billed", lambda line: money(line.bill), 0),
        ("in ledger", lambda line: money(line.ledger), 1),
        ("seen", _percent_of_cost, 0),
    ):
        columns.append(Column(title, [cell(line) for line in lines], cell(total), spare=spare))
    return columns


def _headline(found: Reconciliation) -> str:
    total, first, last = found.total, found.since, found.until
    days = f"{rfc3339(first)[:10]} to {rfc3339(last - 1)[:10]} (UTC)"
    tokens, cost = percent_text(total.ledger.tokens, total.bill.tokens), _percent_of_cost(total)
    seen = [f"{part} of {what}" for part, what in ((tokens, "the tokens"), (cost, "the cost")) if part != "-"]
    return f"{found.provider}, {days}: the ledger has {' and '.join(seen) if seen else 'nothing to compare with'}"


def _parts(of: Difference | None) -> list[str]:
    """What bill and ledger differ by, in amounts that add up as they stand there."""
    if of is None or not of.parts:
        return []
    shown = in_steps(of.whole.nano, [amount.nano for _, amount in of.parts], _SHOWN)
    whole = amount_text(Money(sum(shown), of.whole.currency), _DECIMALS)
    parts = [
        f"{amount_text(Money(nano, of.whole.currency), _DECIMALS)} {_CAUSES[cause]}"
        for (cause, _), nano in zip(of.parts, shown, strict=True)
        if nano
    ]
    return [f"billed less ledger: {whole}" + (f" = {' + '.join(parts)}" if parts else "")]


def _percent_of_cost(line: Line) -> str:
    """Of the currency in which most was billed."""
    pair = max(_pairs(line), key=lambda pair: pair[0].nano, default=None)
    return "-" if pair is None else percent_text(pair[1], pair[0].nano)


def _pairs(line: Line) -> list[tuple[Money, int]]:
    """What was billed in each currency, and what of it the ledger has, in nano-units."""
    ours = {cost.currency: cost.nano for cost in line.ledger.costs}
    return [(cost, ours.get(cost.currency, 0)) for cost in line.bill.costs]


def _figures(line: Line) -> dict[str, Any]:
    return {
        **{name: {"tokens": _tokens(side), "cost": _costs(side.costs)} for name, side in _sides(line)},
        "captured": {"tokens": _part(line.ledger.tokens, line.bill.tokens), "cost": _captured_cost(line)},
    }


def _sides(line: Line) -> tuple[tuple[str, Side], ...]:
    return (("bill", line.bill), ("ledger", line.ledger))


def _tokens(side: Side) -> dict[str, int]:
    usage = side.usage
    return {
        "input": usage.input,
        "cached_read": usage.cached_read,
        "cached_write": usage.cached_write,
        "cached_write_1h": side.cached_write_1h,
        "output": usage.output,
        "total": side.tokens,
    }


def _costs(costs: Sequence[Money]) -> dict[str, str]:
    return {cost.currency: cost.text for cost in costs}


def _cost(side: Side, currency: str) -> str | None:
    return _costs(side.costs).get(currency)


def _captured_cost(line: Line) -> dict[str, str | None]:
    return {cost.currency: _part(ours, cost.nano) for cost, ours in _pairs(line)}


def _part(ledger: int, bill: int) -> str | None:
    """The ledger's part as decimal text with six places; None of nothing."""
    if bill <= 0:
        return None
    return Money(rounded(max(0, ledger) * _MILLION, bill) * 1000, "").text


def _difference(of: Difference | None) -> dict[str, Any] | None:
    if of is None:
        return None
    parts = {cause: amount.text for cause, amount in of.parts}
    return {"currency": of.whole.currency, "cost": of.whole.text, "parts": parts}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "model": finding.model,
        "days": [date_of(day) for day in finding.days],
        "tokens": finding.tokens,
        "cost": _costs(finding.costs),
        "says": finding.says,
        "toml": finding.toml,
    }
