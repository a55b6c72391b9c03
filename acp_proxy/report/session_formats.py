"""One session for people, with its context as a plot, and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import tee
from typing import Any

from msgspec.structs import replace

from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, turn_line
from acp_proxy.report.context import context_of, points
from acp_proxy.report.context_plot import context_plot
from acp_proxy.report.formats import described, json_in_pieces
from acp_proxy.report.session import SessionReport
from acp_proxy.report.tables import list_price, notes, parts_of
from acp_proxy.text import table
from acp_proxy.text.figures import aligned, clean, cost_text, counted, cut, decimals_of, tokens_text

_PLAIN_WIDTH = 80
MOST_TURNS = 40  # that are listed unless all are wanted


def as_json(line: Line, rows: Iterable[Row]) -> Iterator[str]:
    """`{"session": a row of a report by session, "turns": [rows of a report by turn, with "compacted"]}`."""
    return json_in_pieces({"session": described(line), "turns": []}, "turns", _described(rows))


def _described(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    rows, again = tee(rows)  # each is told of as soon as it was looked at
    for row, point in zip(rows, points(context_of(one.entry) for one in again), strict=True):
        yield {**described(turn_line(row)), "compacted": point.compacted}


def plain(found: SessionReport, *, every: bool) -> Iterator[str]:
    plot = context_plot(found.context, _PLAIN_WIDTH, lambda _, text: text)
    yield _above(_head(found), [line.rstrip() for line in plot])
    parts, notes = _turns(found, every)
    yield from table.plain_parts(next(parts), parts, notes)


def coloured(found: SessionReport, width: int, environ: Mapping[str, str], *, every: bool) -> Iterator[str]:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    head = "".join(f"{cut(line, width)}\n" for line in _head(found).splitlines())
    yield _above(head, context_plot(found.context, width, table.painter(environ)))
    parts, notes = _turns(found, every)
    yield from table.coloured_parts(next(parts), parts, notes, width, environ)


def _above(head: str, plot: list[str]) -> str:
    shown = "\n".join(["context", *plot, "", ""]) if plot else ""
    return f"{head}\n{shown}"


def _head(found: SessionReport) -> str:
    info, line, zone = found.info, found.line, found.turns.zone
    began, ended = zone.local(info.started_at), zone.local(info.ended_at)
    until = f"{ended:%H:%M}" if ended.date() == began.date() else f"{ended:%Y-%m-%d %H:%M}"
    used, size = info.context_used, info.context_size
    facts = (
        ("session", clean(info.title or "") or _untitled(info, began)),
        ("id", clean(info.session)),
        ("key", line.key),
        ("agent", clean(" ".join(part for part in (info.origin.agent, info.origin.agent_version) if part))),
        ("model", clean(", ".join(found.models))),
        ("project", clean(info.origin.project or "")),
        ("user", clean(", ".join(name for name in (info.origin.user, info.origin.team) if name))),
        ("when", f"{began:%Y-%m-%d %H:%M} to {until}"),
        ("context", f"{tokens_text(used)} of {tokens_text(size)}" if used is not None and size else ""),
        ("tokens", f"{tokens_text(line.usage.total)} in {counted(line.turns, 'turn')}"),
        ("cost", cost_text(line.costs, decimals_of(line.costs), at_least=line.cost_at_least > 0) + list_price(line)),
    )
    return aligned([fact for fact in facts if fact[1]], [False, False])


def _untitled(info: SessionInfo, began: datetime) -> str:
    """The text for a session without a title."""
    parts = (info.origin.agent, info.origin.project, f"{began:%Y-%m-%d %H:%M}")
    return clean(" · ".join(part for part in parts if part))


def _turns(found: SessionReport, every: bool) -> tuple[Iterator[table.Part], list[str]]:
    """Columns and notes; without `every` of the latest turns. The agent is the same in all of them."""
    report = found.turns
    if not every:
        report = replace(report, lines=tuple(report.lines)[-MOST_TURNS:])
    earlier = found.rows - len(report.lines)
    left_out = [f"{counted(earlier, 'earlier row')} not shown (--all)"] if earlier else []
    return parts_of(report, but="agent"), notes(found.turns.total, left_out)
