"""The columns of a report as text for people: rounded, and without control characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, Report
from acp_proxy.text.figures import clean, context_level, cost_text, cut, decimals_of, percent_text, tokens_text
from acp_proxy.text.table import Column
from acp_proxy.text.times import PERIODS, Zone

_LONGEST_NAME = 48
_SHORT_KEY = 6  # signs of 16, as they are rarely the same twice in a ledger


class Figure(Struct, frozen=True):
    """A column, before it is known of which lines."""

    title: str
    cell: Callable[[Line], str]
    total: str = ""
    right: bool = True
    name: bool = False  # this, `spare` and `otherwise` as in a `Column`
    spare: int = 0
    level: Callable[[Line], str] | None = None
    otherwise: str = ""

    def of(self, lines: Sequence[Line]) -> Column:
        levels = [self.level(line) for line in lines] if self.level else ()
        cells = [self.cell(line) for line in lines]
        return Column(self.title, cells, self.total, self.right, self.name, self.spare, levels, self.otherwise)


def figures_of(report: Report, lines: Sequence[Line]) -> list[Figure]:
    """The figures that are shown of each line.

    `lines` are all, or those that cost most: they say how money is rounded, and whether there are several users.
    """

    def figure(title: str, cell: Callable[[Line], str], spare: int = 0) -> Figure:
        return Figure(title, cell, cell(report.total), spare=spare)

    per_group = [] if report.by == "turn" else [figure("turns", lambda line: tokens_text(line.turns), spare=2)]
    origins = [line.about.origin for line in lines if line.about]
    return [
        *_names(
            report, _short_names({origin.agent for origin in origins}), several=len({each.user for each in origins}) > 1
        ),
        *per_group,
        figure("prompt", lambda line: tokens_text(line.usage.prompt), spare=6),
        figure("cached", lambda line: percent_text(line.usage.cached_read, line.usage.prompt), spare=8),
        figure("completion", lambda line: tokens_text(line.usage.completion), spare=7),
        figure("total", lambda line: tokens_text(line.usage.total), spare=2 if report.by == "session" else 1),
        *([Figure("context", _context, spare=4, level=_level)] if report.by in ("session", "turn") else []),
        *_costs(report, decimals_of(cost for line in lines for cost in line.costs)),
    ]


def _short_names(agents: Collection[str]) -> Mapping[str, str]:
    """Without the organisation that names from npm begin with, but where that tells two of them apart."""
    short = {agent: agent.rpartition("/")[2] for agent in agents}
    ends = Counter(short.values())
    return {agent: name if ends[name] == 1 else agent for agent, name in short.items()}


def _names(report: Report, agents: Mapping[str, str], *, several: bool) -> list[Figure]:
    """The names in a line; with its user if there are `several`."""
    whose = [_named("user", _user, spare=1)] if several else []
    match report.by:
        case "session" | "turn":
            whose.append(_named("agent", partial(_agent, short=agents), spare=3))
            named = [_named("session", _session), *whose]
            if report.by == "turn":
                named = [*whose, _named("model", _model), _named("kind", _kind, spare=5)]
            return [Figure("started", lambda line: _started(line, report.zone), "total", right=False), *named]
    if report.by in PERIODS:  # what is left of a date that is cut is no date
        return [Figure(report.by, lambda line: line.key, "total", right=False)]
    return [_named(report.by, lambda line: line.key, total="total")]


def _named(title: str, name: Callable[[Line], str], spare: int = 0, total: str = "") -> Figure:
    shown = lru_cache(maxsize=1024)(lambda text: cut(clean(text), _LONGEST_NAME))  # few names, in many lines
    return Figure(title, lambda line: shown(name(line)), total, right=False, name=True, spare=spare)


def _started(line: Line, zone: Zone) -> str:
    match line.about:
        case Row(entry=Entry(started_at=at)) | SessionInfo(started_at=at):
            return zone.local(at).strftime("%Y-%m-%d %H:%M")
    return ""


def _session(line: Line) -> str:
    """Its title. Else its project, and what `acp-proxy session` takes for its key; start and agent have columns."""
    if not isinstance(line.about, SessionInfo):
        return ""
    return clean(line.about.title or "") or f"{line.about.origin.project or 'untitled'} · {line.key[:_SHORT_KEY]}"


def _user(line: Line) -> str:
    return line.about.origin.user if line.about else ""


def _agent(line: Line, short: Mapping[str, str]) -> str:
    return short.get(line.about.origin.agent, line.about.origin.agent) if line.about else ""


def _model(line: Line) -> str:
    return (line.about.entry.model if isinstance(line.about, Row) else None) or "unknown"


def _kind(line: Line) -> str:
    """With how it ended, where that was not the ordinary way."""
    if not isinstance(line.about, Row):
        return ""
    entry = line.about.entry
    return entry.kind if entry.stop_reason in (None, "end_turn") else f"{entry.kind}, {entry.stop_reason}"


def _context(line: Line) -> str:
    """How full it was."""
    used, size = _filled(line)
    return f"{used * 100 // size}%" if size else "-"


def _level(line: Line) -> str:
    used, size = _filled(line)
    return context_level(used, size) if size else "normal"


def _filled(line: Line) -> tuple[int, int]:
    """Used and size; a size of 0 where one of them is unknown."""
    match line.about:
        case Row(entry=Entry(context_used=int(used), context_size=int(size))):
            return used, size
        case SessionInfo(context_used=int(used), context_size=int(size)):
            return used, size
    return 0, 0


def _costs(report: Report, decimals: int) -> list[Figure]:
    """A column for each currency; where there is no room, only for the first, and the totals of the others in words."""

    def all_of(line: Line) -> str:
        return cost_text(line.costs, decimals, at_least=line.cost_at_least > 0)

    def one_of(line: Line, currency: str) -> str:
        """An unknown cost is told in the first one's column."""
        costs = [cost for cost in line.costs if cost.currency == currency]
        if costs or (not line.costs and currency == report.currencies[0]):
            return cost_text(costs, decimals, at_least=line.cost_at_least > 0)
        return ""

    if len(report.currencies) < 2:
        return [Figure("cost", all_of, all_of(report.total))]
    first, *others = (
        Figure(clean(currency)[:12], partial(one_of, currency=currency), one_of(report.total, currency))
        for currency in report.currencies
    )
    return [first, *(replace(each, spare=-1, otherwise=f"Not shown: {each.total} of the total.") for each in others)]
