"""What agents used, and what of it went through a relay, as the page is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import IMPORT
from acp_proxy.core.windows import DAY
from harness.daemons import until
from harness.rows import ALICE, NOON, line, row
from tests.serve.house import Home

CLAUDE = replace(ALICE, agent="@agentclientprotocol/claude-agent-acp")
BESIDE = replace(ALICE, agent="claude-code", client=IMPORT)
OTHER = replace(ALICE, agent="other-agent")
DATES = "range=2026-11-01..2026-11-30&tz=UTC"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Claude on three days, and around the relay on the first two; another agent of which nothing was imported."""
    home = Home(tmp_path)
    home.append(
        [
            *(row(line(cost="3", input=300), origin=CLAUDE, at=NOON + day * DAY) for day in range(3)),
            *(row(line(cost="1", input=100), origin=BESIDE, kind="call", at=NOON + day * DAY) for day in range(2)),
            row(line(cost="7", input=700), origin=OTHER),
        ]
    )
    return home


def seen(found: Any) -> dict[str, float | None]:
    return {each["key"]: each["seen"] for each in found}


def test_each_agent_has_its_share_and_one_that_was_not_imported_has_none(home: Home) -> None:
    with home.serving() as served:
        found = served.json(f"/api/coverage?{DATES}")
    assert seen(found["rows"]) == {"claude-code": round(900 / 1100, 6), "other-agent": None}
    assert found["rows"][1]["imported"] is None
    assert found["total"]["relayed"] == {"tokens": 900, "cost": {"USD": "9"}}
    assert found["total"]["imported"] == {"tokens": 200, "cost": {"USD": "2"}}


def test_a_day_on_which_nothing_was_imported_is_unknown(home: Home) -> None:
    with home.serving() as served:
        found = served.json(f"/api/coverage?{DATES}")
    assert (found["step"], seen(found["steps"])) == (
        "day",
        {"2026-11-21": 0.75, "2026-11-22": 0.75, "2026-11-23": None},
    )


def test_its_figures_are_those_of_the_report(home: Home) -> None:
    reported = home.json("report", "--coverage", "--since", "2026-11-01")
    with home.serving() as served:
        found = served.json(f"/api/coverage?{DATES}")
        of_all = served.json("/api/coverage?range=all&tz=UTC")
    by_key = {each["key"]: each for each in reported["rows"]}
    assert {each["key"]: each for each in found["rows"]} == by_key
    assert {each["key"]: each for each in of_all["rows"]} == by_key
    assert of_all["total"] == reported["total"]


@pytest.mark.parametrize("agent", ["claude-code", "@agentclientprotocol/claude-agent-acp"])
def test_an_agent_is_found_by_either_name(home: Home, agent: str) -> None:
    with home.serving() as served:
        found = served.json(f"/api/coverage?{DATES}&agent={agent}")
    assert seen(found["rows"]) == {"claude-code": round(900 / 1100, 6)}


def test_what_is_imported_later_is_told(home: Home) -> None:
    with home.serving() as served:

        def last_day() -> float | None:
            return seen(served.json(f"/api/coverage?{DATES}")["steps"])["2026-11-23"]

        assert last_day() is None
        home.append([row(line(input=300), origin=BESIDE, kind="call", at=NOON + 2 * DAY)])
        until(lambda: last_day() == 0.5, "the day has what was imported")


def test_where_nothing_was_imported_there_are_no_rows(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.append([row(line(input=300), origin=CLAUDE)])
    with home.serving() as served:
        found = served.json("/api/coverage?range=all")
        bad = served.ask("/api/coverage?by=agent")
    assert (found["rows"], found["steps"], found["total"]["seen"]) == ([], [], None)
    assert (bad.status, "unknown parameter" in json.loads(bad.body)["error"]) == (400, True)
