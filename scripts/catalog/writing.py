"""The catalog as text: one row a line, short, and the same for the same rows."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from catalog.sources import Rates, Row, Step


def written(rows: dict[str, tuple[Row, str]], aliases: dict[str, str], date: str, snapshot: dict[str, Any]) -> str:
    """`snapshot` is that of model-prices, which has the hours in which a provider charges more."""
    sources = sorted({source for _, source in rows.values()})
    lines = [
        f"{json.dumps(name)}:{_compact([row.window, sources.index(source), [_wire(step) for step in row.steps]])}"
        for name, (row, source) in sorted(rows.items())
    ]
    parts = {
        "date": date,
        "sources": sources,
        "peaks": {schedule["provider"]: _peak(schedule, snapshot) for schedule in _peaks(snapshot)},
        "aliases": dict(sorted(aliases.items())),
    }
    head = ",\n".join(f"{json.dumps(key)}:{_compact(value)}" for key, value in parts.items())
    return "{" + head + ',\n"rows":{\n' + ",\n".join(lines) + "\n}}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _wire(step: Step) -> list[Any]:
    return [_when(step.since), _words(step.rates), [[above, _words(rates)] for above, rates in step.tiers]]


def _when(since: datetime | None) -> str:
    if since is None:
        return ""
    return since.strftime("%Y-%m-%d" if (since.hour, since.minute) == (0, 0) else "%Y-%m-%dT%H:%M")


def _words(rates: Rates) -> str:
    words = [decimal_text(rate) for rate in rates]
    while words[-1] == "-":
        words.pop()
    return " ".join(words)


def decimal_text(rate: Decimal | None) -> str:
    return "-" if rate is None else f"{rate.normalize():f}"


def _peaks(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        entry
        for entry in snapshot["schedules"]["schedule"]
        if entry["provider"] == "deepseek" and "peak_multiplier" in entry
    ]


def _peak(schedule: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]:
    holidays = snapshot["schedules"]["holidays"][schedule["holidays"]]["dates"]
    return {
        "since": _when(datetime.fromisoformat(schedule["valid_from"])),
        "hours": [[int(hour.split(":")[0]) for hour in hours] for hours in schedule["peak_hours_utc"]],
        "factor": int(schedule["peak_multiplier"]),
        "holidays": [day for day in holidays if datetime.fromisoformat(day).weekday() < 5],
    }
