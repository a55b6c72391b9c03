"""Bills that were kept, as the page is told of them."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from acp_proxy.core.windows import DAY
from acp_proxy.ledger import captures, open_ledger
from acp_proxy.ledger.captures import Capture
from harness.rows import NOON
from tests.serve.bills import bill
from tests.serve.house import Home


@pytest.fixture
def empty(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_each_has_its_share_by_day_and_why_the_rest_differs(empty: Home) -> None:
    bill(empty)
    with empty.serving() as served:
        (found,) = served.json("/api/bills")["bills"]
    assert (found["provider"], found["since"], found["until"], found["currency"]) == (
        "anthropic",
        "2026-11-01",
        "2026-11-30",
        "USD",
    )
    assert found["kept_at"] == "2026-12-01T00:00:00Z"
    days = found["days"]
    for side in ("billed", "seen"):
        assert sum(day["tokens"][side] for day in days) == found["tokens"][side]
    assert [day["day"] for day in days if day["tokens"]["seen"] < day["tokens"]["billed"]] == [
        f"2026-11-0{number}" for number in (1, 2, 4, 5)
    ]
    assert days[0]["tokens"] == {"billed": 7000, "seen": 3500}
    assert days[0]["cost"]["billed"] == f"{2 * float(days[0]['cost']['seen']):g}"
    causes = {each["kind"]: each for each in found["causes"]}
    assert set(causes) == {"tokens_unseen", "model_unseen"}
    assert causes["model_unseen"]["tokens"] == 2 * 990
    assert causes["model_unseen"]["says"].startswith("claude-haiku-5-5: ")
    missing = sum(each["tokens"] for each in causes.values())
    assert missing == found["tokens"]["billed"] - found["tokens"]["seen"]


def test_one_that_an_earlier_version_kept_has_no_days(empty: Home) -> None:
    of = Capture("openai", NOON - DAY, NOON, NOON, 1000, 875, "USD", 2 * 10**9, 10**9)
    with closing(open_ledger(empty.url, journals=())) as ledger:
        ledger.tables.write(partial(captures.note, organisation="default", capture=of))
        ledger.tables.write(lambda run: run("DELETE FROM capture_detail", ()))
    with empty.serving() as served:
        (found,) = served.json("/api/bills")["bills"]
    assert (found["tokens"], found["days"], found["causes"]) == ({"billed": 1000, "seen": 875}, [], [])


def test_an_older_comparison_replaces_nothing(empty: Home) -> None:
    bill(empty)
    with closing(open_ledger(empty.url, journals=())) as ledger:
        before = captures.details(ledger.tables.read, "default")
        of = Capture("anthropic", NOON - DAY, NOON, NOON - 90 * DAY, 1, 1, "USD", 1, 1)
        ledger.tables.write(partial(captures.note, organisation="default", capture=of))
        assert captures.details(ledger.tables.read, "default") == before
        assert len(before["anthropic"].days) == 29


def test_without_a_bill_there_is_none(empty: Home) -> None:
    with empty.serving() as served:
        assert served.json("/api/bills") == {"bills": []}
