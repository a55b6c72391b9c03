"""Expressions of the panels: series narrowed by the dashboard's variables, and what counters gained. Only text."""

from __future__ import annotations

from collections.abc import Iterable

from grafana.build.metrics import family, labels

VARIABLES = ("team", "agent", "model", "user")
CURRENCY = 'currency="$currency"'  # one at a time: amounts of two have no common scale
SHOWN = "$__range"  # the time range of the dashboard
STEP = "$__interval"  # the width of a bar
RATES = (
    "2m"  # the least time between points of a `rate`: $__rate_interval is longer, and spans two scrapes a minute apart
)
_WATCHED = "acp_proxy_ledger_up"  # 1 while the exporter reads its ledger: a series it lacks then does not exist yet


def series(name: str, *matchers: str) -> str:
    """A selector, narrowed by each variable that the family has a label for: `{team=~"$team", …}`.

    `user=~".*"` also finds series without the label `user`.
    """
    known = labels(family(name))
    narrowed = [f'{label}=~"${label}"' for label in VARIABLES if label in known]
    if "currency" in known:
        narrowed.append(CURRENCY)
    inside = ", ".join((*narrowed, *matchers))
    return f"{name}{{{inside}}}" if inside else name


def gained(selector: str, by: Iterable[str] = (), over: str = SHOWN) -> str:
    """What counters gained in the time `over` until the moment of evaluation, added up by labels.

    Exact, where `increase` extrapolates and loses the value that a series begins with: the last value less the value
    at the beginning. A series that was not there then began at 0, if its ledger was watched already or was seen
    without it; else what was before the first scrape is not known, and not counted. It needs counters that never
    fall, as these do.
    """
    return _added(by, _difference(selector, f"[{over}]", f" offset {over}"))


def gained_ahead(selector: str, by: Iterable[str] = (), over: str = STEP) -> str:
    """As `gained`, in the time after the moment of evaluation: a bar then stands where its time begins."""
    return _added(by, _difference(selector, f"[{over}] offset -{over}", ""))


def added(selector: str, by: Iterable[str] = ()) -> str:
    return _added(by, selector)


def present(expression: str) -> str:
    """Without series that are 0: they are there so that the first turn is seen, and need no place in a legend."""
    return f"{expression} > 0"


def quantile(q: float, histogram: str) -> str:
    """Of a sum of buckets, which must have kept `le`."""
    return f"histogram_quantile({q}, {histogram})"


def rate(selector: str, by: Iterable[str] = ()) -> str:
    """Per second, for what is many events a minute; money and turns are `gained`. The panel's step is `RATES`."""
    return _added(by, f"rate({selector}[$__rate_interval])")


def top(n: int, expression: str) -> str:
    """The `n` largest, the largest first."""
    return f"sort_desc(topk({n}, {expression}))"


def month_end(selector: str, by: Iterable[str] = ()) -> str:
    """What a month will have cost: so far, and the pace of the last seven days for what is left of it.

    For a panel whose time range is the month so far. Of less than seven days it is the pace of those that are known,
    of less than one it is as if a whole day had no more.
    """
    kept = tuple(by)
    so_far, week = gained(selector, kept), gained(selector, kept, "7d")
    hours = f"scalar(clamp_min(max(count_over_time({_WATCHED}[7d:1h])) or vector(24), 24))"
    left = f"(scalar(days_in_month()) * 24 - {SHOWN}_s / 3600)"
    return f"{so_far} + ({week} / {hours} * {left} or {so_far} * 0)"


def share(part: str, whole: str) -> str:
    """A ratio of 0 to 1; nothing where the whole is 0."""
    return f"{part} / ({whole} > 0)"


def _difference(selector: str, during: str, at_start: str) -> str:
    """A series with fewer scrapes than its ledger was seen in, the one before the beginning among them, came later."""
    seen = f"sum_over_time({_WATCHED}{during})"
    all_seen = f"on (job, instance) group_left () ({seen} + ({_WATCHED}{at_start} or {seen} * 0))"
    came_later = f"0 * (count_over_time({selector}{during}) < {all_seen})"
    before = f"{selector}{at_start} or {came_later} or min_over_time({selector}{during})"
    return f"max_over_time({selector}{during}) - ({before})"


def _added(by: Iterable[str], expression: str) -> str:
    return f"sum{_labels(by)} ({expression})"


def _labels(by: Iterable[str]) -> str:
    inside = ", ".join(by)
    return f" by ({inside})" if inside else ""
