"""A report for programs: JSON as docs/commands.md describes it, and the same as CSV. Exact, never rounded."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.core.usage import Usage
from acp_proxy.figures import clean
from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, Report
from acp_proxy.times import milliseconds, rfc3339

# orjson writes these as they are, and a terminal would obey some of them.
_CONTROLS = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_CSV = (
    "key",
    "turns",
    "input",
    "cached_read",
    "cached_write",
    "output",
    "thought",
    "total",
    "cost_USD",
    "unpriced_turns",
    "partial_turns",
    "estimated_turns",
    "turns_without_usage",
)
_CSV_DETAILS: Mapping[str, tuple[str, ...]] = {
    "session": (
        "session",
        "agent",
        "title",
        "project",
        "started_at",
        "ended_at",
        "context_used",
        "context_size",
    ),
    "turn": (
        "session",
        "agent",
        "agent_version",
        "client",
        "user",
        "team",
        "project",
        "model",
        "kind",
        "started_at",
        "ended_at",
        "stop_reason",
        "message_id",
        "usage_source",
        "cost_source",
        "context_used",
        "context_size",
    ),
}
Cells = tuple[object, ...]

_AT_ONCE = 100  # rows in a piece of CSV
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last are wide, for East Asian locales
_PACKAGE = re.compile(r"@[\w.-]+/[\w.-]+")  # from npm: many agents are called so


def as_json(report: Report) -> Iterator[str]:
    """Piece by piece: a report by turn has as many rows as the ledger."""
    since, until = report.query.since, report.query.until
    whole: dict[str, Any] = {
        "by": report.by,
        "since": None if since is None else rfc3339(since),
        "until": None if until is None else rfc3339(until),
        "timezone": report.zone.name,
        "rows": [],
        "total": figures(report.total),
    }
    return json_in_pieces(whole, "rows", map(described, report.lines))


def json_in_pieces(whole: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The JSON of `whole` with rows in its empty list `name`, of which there may be any number."""
    before, opened, after = as_json_text(whole).partition(f'"{name}": []')
    count = 0
    for count, row in enumerate(rows, 1):
        text = as_json_text(row).rstrip("\n")
        yield ("," if count > 1 else before + opened[:-1]) + f"\n{text}".replace("\n", "\n    ")
    yield f"\n  ]{after}" if count else before + opened + after


def as_json_text(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Indented, in UTF-8 but for characters that control a terminal."""
    import orjson  # with `dataclasses` and `inspect`, 10 ms: a table does not wait for it

    return without_controls(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()) + "\n"


def without_controls(json: str) -> str:
    """The same JSON, with escapes for what controls a terminal or turns the direction of writing."""
    if json.isascii() and "\x7f" not in json:
        return json
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def as_csv(report: Report) -> Iterator[str]:
    """A header and a line for each row. What is known of a report's kind is in the header whatever its rows are.

    `cost_USD` is always there, other currencies come last, so that every other column keeps its place.
    """
    others = sorted({*report.currencies} - {"USD"})
    header = [*_CSV, *_CSV_DETAILS.get(report.by, ()), *(f"cost_{clean(currency)}" for currency in others)]
    return csv_in_pieces(
        header,
        (
            (*_figure_cells(line), *_detail_cells(line), *(_cost(line, currency) for currency in others))
            for line in report.lines
        ),
    )


def csv_in_pieces(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The CSV of rows, of which there may be any number. None is an empty cell."""
    import csv

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for number, row in enumerate(rows, 1):
        writer.writerow(row)
        if not number % _AT_ONCE:
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    yield file.getvalue()


@lru_cache(maxsize=1024)  # the same few names in row after row
def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet would take for a formula is quoted: titles and model names are not ours."""
    plain = clean(text)
    return f"'{plain}" if plain.startswith(_FORMULA) and not _PACKAGE.fullmatch(plain) else plain


def described(line: Line) -> dict[str, Any]:
    """As in the JSON of a report: its key, its figures, and what it is about."""
    return {"key": line.key, **figures(line), **_details(line)}


def figures(line: Line) -> dict[str, Any]:
    return {
        "turns": line.turns,
        "tokens": _tokens(line.usage),
        "cost": {cost.currency: cost.text for cost in line.costs},
        "unpriced_turns": line.unpriced,
        "partial_turns": line.partial,
        "estimated_turns": line.estimated,
        "turns_without_usage": line.without_usage,
    }


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "cached_read": usage.cached_read,
        "cached_write": usage.cached_write,
        "output": usage.output,
        "thought": usage.thought,
        "total": usage.total,
    }


def _details(line: Line) -> dict[str, Any]:
    match line.about:
        case Row() as row:
            return _turn_details(row)
        case SessionInfo() as session:
            return _session_details(session)
    return {}


def _turn_details(row: Row) -> dict[str, Any]:
    origin, entry = row.origin, row.entry
    return {
        "session": entry.session,
        "agent": origin.agent,
        "agent_version": origin.agent_version,
        "client": origin.client,
        "user": origin.user,
        "team": origin.team,
        "project": origin.project,
        "model": entry.model,
        "kind": entry.kind,
        "started_at": milliseconds(entry.started_at),
        "ended_at": milliseconds(entry.ended_at),
        "stop_reason": entry.stop_reason,
        "message_id": entry.message_id,
        "usage_source": entry.usage_source,
        "cost_source": entry.cost_source,
        "context_used": entry.context_used,
        "context_size": entry.context_size,
    }


def _session_details(session: SessionInfo) -> dict[str, Any]:
    return {
        "session": session.session,
        "agent": session.origin.agent,
        "title": session.title,
        "project": session.origin.project,
        "started_at": milliseconds(session.started_at),
        "ended_at": milliseconds(session.ended_at),
        "context_used": session.context_used,
        "context_size": session.context_size,
    }


def _figure_cells(line: Line) -> Cells:
    usage = line.usage
    return (
        spreadsheet_text(line.key),
        line.turns,
        usage.input,
        usage.cached_read,
        usage.cached_write,
        usage.output,
        usage.thought,
        usage.total,
        _cost(line, "USD"),
        line.unpriced,
        line.partial,
        line.estimated,
        line.without_usage,
    )


def _cost(line: Line, currency: str) -> str | None:
    for cost in line.costs:
        if cost.currency == currency:
            return cost.text
    return None


def _detail_cells(line: Line) -> Cells:
    if isinstance(line.about, Row):
        return _turn_cells(line.about)
    return tuple(spreadsheet_text(value) if isinstance(value, str) else value for value in _details(line).values())


def _turn_cells(row: Row) -> Cells:
    """As `_turn_details`, of which a report has a million."""
    entry = row.entry
    return (
        spreadsheet_text(entry.session),
        *_origin_cells(row.origin),
        entry.model and spreadsheet_text(entry.model),
        entry.kind,
        milliseconds(entry.started_at),
        milliseconds(entry.ended_at),
        entry.stop_reason and spreadsheet_text(entry.stop_reason),
        entry.message_id and spreadsheet_text(entry.message_id),
        entry.usage_source,
        entry.cost_source,
        entry.context_used,
        entry.context_size,
    )


@lru_cache(maxsize=1024)
def _origin_cells(origin: Origin) -> Cells:
    cells = (origin.agent, origin.agent_version, origin.client, origin.user, origin.team, origin.project)
    return tuple(cell and spreadsheet_text(cell) for cell in cells)
