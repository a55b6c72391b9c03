"""One session for people, with its context as a plot, and for programs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from acp_proxy import table
from acp_proxy.figures import aligned, clean, cost_text, counted, cut, decimals_of, tokens_text
from acp_proxy.report.columns import columns
from acp_proxy.report.context_plot import context_plot
from acp_proxy.report.formats import as_json_text, described
from acp_proxy.report.session import SessionReport
from acp_proxy.report.tables import notes

_PLAIN_WIDTH = 80
MOST_TURNS = 40  # that are listed unless all are wanted


def as_json(found: SessionReport) -> str:
    """`{"session": a row of a report by session, "turns": [rows of a report by turn, with "compacted"]}`."""
    return as_json_text(
        {
            "session": described(found.line),
            "turns": [
                {**described(line), "compacted": point.compacted}
                for line, point in zip(found.turns.lines, found.context, strict=True)
            ],
        }
    )


def plain(found: SessionReport, *, every: bool) -> str:
    plot = context_plot(found.context, _PLAIN_WIDTH, lambda _, text: text)
    return _joined(_head(found), [line.rstrip() for line in plot], table.plain(*_turns(found, every)))


def coloured(found: SessionReport, width: int, environ: Mapping[str, str], *, every: bool) -> str:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    head = "".join(f"{cut(line, width)}\n" for line in _head(found).splitlines())
    plot = context_plot(found.context, width, table.painter(environ))
    turns = table.coloured(*_turns(found, every), None, width, environ)
    return _joined(head, plot, turns)


def _joined(head: str, plot: list[str], turns: str) -> str:
    shown = "\n".join(["context", *plot, "", ""]) if plot else ""
    return f"{head}\n{shown}{turns}"


def _head(found: SessionReport) -> str:
    info, line, zone = found.info, found.line, found.turns.zone
    began, ended = zone.local(info.started_at), zone.local(info.ended_at)
    until = f"{ended:%H:%M}" if ended.date() == began.date() else f"{ended:%Y-%m-%d %H:%M}"
    used, size = info.context_used, info.context_size
    facts = (
        ("session", clean(info.title or info.session)),
        ("id", clean(info.session) if info.title else ""),
        ("key", line.key),
        ("agent", clean(" ".join(part for part in (info.origin.agent, info.origin.agent_version) if part))),
        ("model", clean(", ".join(found.models))),
        ("project", clean(info.origin.project or "")),
        ("when", f"{began:%Y-%m-%d %H:%M} to {until}"),
        ("context", f"{tokens_text(used)} of {tokens_text(size)}" if used is not None and size else ""),
        ("tokens", f"{tokens_text(line.usage.total)} in {counted(line.turns, 'turn')}"),
        ("cost", cost_text(line.costs, decimals_of(line.costs), at_least=line.cost_at_least > 0)),
    )
    return aligned([fact for fact in facts if fact[1]], [False, False])


def _turns(found: SessionReport, every: bool) -> tuple[list[table.Column], list[str]]:
    """Columns and notes; without `every` of the latest turns. The agent is the same in all of them."""
    report = found.turns
    if not every:
        report = replace(report, lines=tuple(report.lines)[-MOST_TURNS:])
    earlier = len(found.context) - len(report.lines)
    shown = [column for column in columns(report) if column.title != "agent"]
    left_out = [f"{counted(earlier, 'earlier row')} not listed: --all does"] if earlier else []
    return shown, [*left_out, *notes(found.turns.total)]
