"""What a report shows of each line, as columns of text for people: rounded, and cleaned of control characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from acp_proxy.core.entry import Entry
from acp_proxy.figures import clean, context_level, cost_text, cut, decimals_of, tokens_text
from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, Report
from acp_proxy.table import Column
from acp_proxy.times import Zone

_LONGEST_NAME = 48


def columns(report: Report) -> list[Column]:
    def figures(title: str, figure: Callable[[Line], str], spare: int = 0) -> Column:
        return Column(title, [figure(line) for line in report.lines], figure(report.total), spare=spare)

    per_group = [] if report.by == "turn" else [figures("turns", lambda line: tokens_text(line.turns))]
    return [
        *_names(report),
        *per_group,
        figures("prompt", lambda line: tokens_text(line.usage.prompt), spare=4),
        figures("cached", _cached, spare=6),
        figures("completion", lambda line: tokens_text(line.usage.completion), spare=5),
        figures("total", lambda line: tokens_text(line.usage.total)),
        *_context(report),
        *_costs(report),
    ]


def currencies(lines: Iterable[Line]) -> list[str]:
    """The commonest first."""
    counts = Counter(cost.currency for line in lines for cost in line.costs)
    return sorted(counts, key=lambda currency: (-counts[currency], currency))


def _names(report: Report) -> list[Column]:
    """What a line is about."""
    match report.by:
        case "session":
            sessions = [line.about for line in report.lines if isinstance(line.about, SessionInfo)]
            return [
                _started([session.started_at for session in sessions], report.zone),
                _named("session", (session.title or session.session for session in sessions)),
                _named("agent", (_without_scope(session.origin.agent) for session in sessions), spare=1),
            ]
        case "turn":
            rows = [line.about for line in report.lines if isinstance(line.about, Row)]
            return [
                _started([row.entry.started_at for row in rows], report.zone),
                _named("agent", (_without_scope(row.origin.agent) for row in rows), spare=1),
                _named("model", (row.entry.model or "unknown" for row in rows)),
                _named("kind", (_kind(row.entry) for row in rows), spare=3),
            ]
    return [_named(report.by, (line.key for line in report.lines), total="total")]


def _started(times: Sequence[int], zone: Zone) -> Column:
    return Column("started", [zone.local(at).strftime("%Y-%m-%d %H:%M") for at in times], "total", right=False)


def _named(title: str, names: Iterable[str], spare: int = 0, total: str = "") -> Column:
    found = list(names)
    shown = {name: cut(clean(name), _LONGEST_NAME) for name in set(found)}
    return Column(title, [shown[name] for name in found], total, right=False, name=True, spare=spare)


def _without_scope(agent: str) -> str:
    """Without the organisation that names from npm begin with."""
    return agent.rpartition("/")[2]


def _kind(entry: Entry) -> str:
    """With how it ended, where that was not the ordinary way."""
    return entry.kind if entry.stop_reason in (None, "end_turn") else f"{entry.kind}, {entry.stop_reason}"


def _cached(line: Line) -> str:
    """How much of the prompt was read from a cache."""
    prompt = line.usage.prompt
    return f"{line.usage.cached_read / prompt:.0%}" if prompt else "-"


def _context(report: Report) -> list[Column]:
    """How full the context was, of turns and sessions."""
    if report.by not in ("session", "turn"):
        return []
    found = [_filled(line) for line in report.lines]
    cells = [f"{used * 100 // size}%" if size else "-" for used, size in found]
    levels = [context_level(used, size) if size else "normal" for used, size in found]
    return [Column("context", cells, spare=2, levels=levels)]


def _filled(line: Line) -> tuple[int, int]:
    """Used and size; a size of 0 where one of them is unknown."""
    match line.about:
        case Row(entry=Entry(context_used=int(used), context_size=int(size))):
            return used, size
        case SessionInfo(context_used=int(used), context_size=int(size)):
            return used, size
    return 0, 0


def _costs(report: Report) -> list[Column]:
    """A column for each currency."""
    decimals = decimals_of(cost for line in report.lines for cost in line.costs)
    found = currencies(report.lines)
    if len(found) < 2:
        cells = [cost_text(line.costs, decimals, at_least=line.cost_at_least > 0) for line in report.lines]
        total = cost_text(report.total.costs, decimals, at_least=report.total.cost_at_least > 0)
        return [Column("cost", cells, total)]
    return [
        Column(
            clean(currency)[:12],
            [_cost(line, currency, found[0], decimals) for line in report.lines],
            _cost(report.total, currency, found[0], decimals),
        )
        for currency in found
    ]


def _cost(line: Line, currency: str, first: str, decimals: int) -> str:
    """Of one currency; an unknown cost is told in the first one's column."""
    costs = [cost for cost in line.costs if cost.currency == currency]
    if costs or (not line.costs and currency == first):
        return cost_text(costs, decimals, at_least=line.cost_at_least > 0)
    return ""
