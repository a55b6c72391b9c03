"""What the page is told of a period: where its chart begins, in which step a row is, and what is worth looking at."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_proxy.ledger import Row, open_ledger
from acp_proxy.serve.spend import spend
from acp_proxy.serve.sums import KeptSums
from acp_proxy.text import times
from harness.rows import BOB, MINUTE, NOON, line, row

HOUR = 60 * MINUTE
DAY = 24 * HOUR


def told(directory: Path, period: str, *rows: Row) -> dict[str, Any]:
    with closing(open_ledger(f"sqlite:///{directory}/ledger.db", journals=())) as ledger:
        ledger.append(rows)
        return spend(KeptSums(ledger, "default"), period, "agent", times.zone("UTC"), NOON)


def in_dollars(found: dict[str, Any]) -> list[str | None]:
    """The values of a chart with one series."""
    ((_, (series,)),) = found["over_time"]["currencies"].items()
    values: list[str | None] = series["values"]
    return values


def test_the_chart_of_all_time_begins_with_the_month_of_the_first_row(tmp_path: Path) -> None:
    first = row(line(cost="1"), at=NOON - 70 * DAY, cost_source="agent")
    last = row(line(cost="2"), at=NOON)
    found = told(tmp_path, "all", last, first)
    starts = [datetime.fromtimestamp(start, UTC).date().isoformat() for start in found["over_time"]["starts"]]
    assert starts == ["2026-09-01", "2026-10-01", "2026-11-01"]
    assert in_dollars(found) == ["1", None, "2"]
    assert [each["cost"] for each in found["rows"]] == [found["total"]["cost"]] == [{"USD": "3"}]


def test_a_row_of_today_is_in_the_hour_of_its_start(tmp_path: Path) -> None:
    early = row(line(cost="1"), at=NOON - 11 * HOUR + 50 * MINUTE)
    later = row(line(cost="2"), at=NOON - 9 * HOUR)
    ahead = row(line(cost="4"), at=NOON + 5 * HOUR)  # by a clock that is: there is no later hour yet
    found = told(tmp_path, "today", early, later, ahead)
    assert in_dollars(found) == [None, "1", None, "2", *[None] * 8, "4"]


def test_what_all_rows_have_in_common_is_nothing_to_look_at_them_by(tmp_path: Path) -> None:
    assert told(tmp_path, "today", row())["also_by"] == []
    assert told(tmp_path, "today", row(kind="side"))["also_by"] == ["kind"]
    assert "user" in told(tmp_path, "today", row(origin=BOB))["also_by"]


def test_a_card_says_at_least_where_a_price_is_missing(tmp_path: Path) -> None:
    yesterday = row(line(None, None), at=NOON - DAY)
    cards = told(tmp_path, "all", row(line(cost="1")), yesterday)["cards"]
    assert {name: card["at_least"] for name, card in cards.items()} == {"today": False, "week": True, "month": True}
