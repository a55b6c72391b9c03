"""The committed dashboards as tests read them: panels, queries, variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent.parent.parent / "grafana" / "dashboards"
PATHS = sorted(DIRECTORY.glob("*.json"))

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    dashboard: str
    panel: str
    expression: str
    legend: str
    at_end: bool
    time_from: str | None  # of the panel, where it is not the dashboard's

    @property
    def name(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.legend or self.expression[:40]}"


def load(path: Path) -> Json:
    made: Json = json.loads(path.read_text(encoding="utf-8"))
    return made


def panels(dashboard: Json) -> list[Json]:
    """Without the headings of rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def variables(dashboard: Json) -> dict[str, Json]:
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


def targets(dashboard: Json) -> Iterator[Target]:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            legend, at_end = target.get("legendFormat", ""), target.get("instant", False)
            yield Target(dashboard["title"], panel["title"], target["expr"], legend, at_end, panel.get("timeFrom"))


ALL_TARGETS = [target for path in PATHS for target in targets(load(path))]


def filled(text: str, values: Mapping[str, str]) -> str:
    """With `$name` and `${name}` replaced. Raises KeyError for a variable that has no value."""
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda found: values[found[1] or found[2]], text)


def chosen(seconds: int, step: int, **values: str) -> dict[str, str]:
    """What Grafana puts in place of its own variables and of ours, all of them at "All" unless `values` say more."""
    return {
        "__range": f"{seconds}s",
        "__range_s": f"{seconds}",
        "__interval": f"{step}s",
        "__rate_interval": f"{max(step, 60)}s",
        **dict.fromkeys(("team", "agent", "model", "user", "budget"), ".*"),
        "currency": "USD",
        "pace": "86400",
        **values,
    }
