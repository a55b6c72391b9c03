"""How much of what agents used a relay has seen, for the page: by agent, and by day or month.

Figures are those of `acp-proxy report --coverage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books.agents import family
from acp_proxy.report import Line
from acp_proxy.report.coverage import IMPORTED, IMPORTED_KIND, Covered, as_object, covered, together
from acp_proxy.serve.periods import Interval, Step, bounds_of, steps_of
from acp_proxy.serve.spend import by_step, pieces_of
from acp_proxy.serve.sums import KeptSums, Where
from acp_proxy.text.times import PERIODS, Zone, rfc3339_or_none

MOST_AGENTS = 50


class _Steps(Struct, frozen=True):
    """What was used in each step, and what of it was imported: a line for each agent."""

    step: Step = "day"
    starts: Sequence[int] = ()  # Unix ns
    every: Sequence[list[Line]] = ()
    imported: Sequence[list[Line]] = ()


def coverage(kept: KeptSums, period: str, zone: Zone, now: int, where: Where = ()) -> dict[str, Any]:
    """The answer to one question, as docs/serve.md describes it: without rows where nothing was imported."""
    kept.version()
    since, until = bounds_of(period, zone, now)
    found = _steps(kept, period, zone, now, where)
    rows = _rows(found)
    known = {row.key for row in rows if row.imported is not None}
    return {
        "timezone": zone.name,
        "range": period,
        "since": rfc3339_or_none(since),
        "until": rfc3339_or_none(until),
        "total": as_object(together(rows)),
        "rows": [as_object(row) for row in rows[:MOST_AGENTS]] if known else [],
        "omitted": max(0, len(rows) - MOST_AGENTS) if known else 0,
        "step": found.step,
        "steps": [as_object(each) for each in _together_by_step(found, known, zone)],
    }


def _steps(kept: KeptSums, period: str, zone: Zone, now: int, where: Where) -> _Steps:
    """Nothing where no import ever was: that much sums tell, but of which rows it was made only rows do."""
    agent = next((value for name, value in where if name == "agent"), None)
    where = tuple(each for each in where if each[0] != "agent")  # an import has another name for it
    ever = kept.of(None, None, ("kind",), where)
    if all(sums.key[0] != IMPORTED_KIND for sums in ever):
        return _Steps()
    steps = steps_of(period, zone, now, min(sums.started_at for sums in ever))
    of_day = steps.step == "hour"
    bounds: list[Interval] = [(steps.starts[0], steps.end)] if of_day else list(steps.bounds)
    starts = [start for start, _ in bounds if start is not None]
    if bounds_of(period, zone, now)[0] is None:
        bounds[0] = (None, bounds[0][1])  # steps go back only so far
    pieces = [pieces_of(each, "day", zone, now) for each in bounds]

    def lines(*more: tuple[str, str]) -> list[list[Line]]:
        found = by_step(partial(kept.of, where=(*where, *more)), "agent", pieces)
        return [[line for line in step if agent is None or family(line.key) == family(agent)] for step in found]

    return _Steps("day" if of_day else steps.step, starts, lines(), lines(IMPORTED))


def _rows(found: _Steps) -> list[Covered]:
    """By agent: first those of which it is known what went around, those that used most."""
    rows = covered(chain.from_iterable(found.every), chain.from_iterable(found.imported), "agent")
    return sorted(rows, key=lambda row: (row.imported is None, -row.total, row.key))


def _together_by_step(found: _Steps, known: set[str], zone: Zone) -> Iterable[Covered]:
    """Of the agents of which it is known for the whole time what went around, each step that has any of it."""
    for start, *lines in zip(found.starts, found.every, found.imported, strict=True):
        key = PERIODS[found.step](zone.local(start))
        every, imported = ([replace(line, key=key) for line in of if family(line.key) in known] for of in lines)
        yield from covered(every, imported, found.step)
