"""A report for programs: JSON as docs/commands.md describes it, exact, never rounded. As CSV it is in `spreadsheet`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, Report
from acp_proxy.text.times import milliseconds, rfc3339_or_none

# orjson writes these as they are, and a terminal would obey some of them.
_CONTROLS = "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]"  # a pattern that is made when it is needed


def as_json(report: Report) -> Iterator[str]:
    """Piece by piece: a report by turn has as many rows as the ledger."""
    since, until = report.query.since, report.query.until
    whole: dict[str, Any] = {
        "by": report.by,
        "since": rfc3339_or_none(since),
        "until": rfc3339_or_none(until),
        "timezone": report.zone.name,
        "rows": [],
        **({} if report.omitted is None else {"omitted": report.omitted}),
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

    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a figure beyond 64 bits: another program has written those that it is the sum of
        import json

        text = json.dumps(value, indent=2, ensure_ascii=False)
    return without_controls(text) + "\n"


def without_controls(json: str) -> str:
    """The same JSON, with escapes for what controls a terminal or turns the direction of writing."""
    if json.isascii() and "\x7f" not in json:
        return json
    return re.sub(_CONTROLS, lambda found: f"\\u{ord(found[0]):04x}", json)


def described(line: Line) -> dict[str, Any]:
    """As in the JSON of a report: its key, its figures, and what it is about."""
    return {"key": line.key, **figures(line), **details(line)}


def figures(line: Line) -> dict[str, Any]:
    """The sums of a line: tokens as numbers, costs as exact decimal text by currency. `not_billed` only if any is."""
    return {
        "turns": line.turns,
        "tokens": _tokens(line.usage),
        "cost": {cost.currency: cost.text for cost in line.costs},
        **not_billed(line),
        "unpriced_turns": line.unpriced,
        "partial_turns": line.partial,
        "estimated_turns": line.estimated,
        "turns_without_usage": line.without_usage,
    }


def not_billed(line: Line) -> dict[str, dict[str, str]]:
    """What of a line's cost is a list price under a plan; nothing if there is none."""
    listed = {cost.currency: cost.text for cost in line.not_billed}
    return {"not_billed": listed} if listed else {}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "cached_read": usage.cached_read,
        "cached_write": usage.cached_write,
        "output": usage.output,
        "thought": usage.thought,
        "total": usage.total,
    }


def details(line: Line) -> dict[str, Any]:
    """The fields of a turn or a session other than its figures."""
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
        **({} if origin.billing is None else {"billing": origin.billing}),
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
        "user": session.origin.user,
        "team": session.origin.team,
    }
