"""Bills that were kept, as the page is told of them."""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import bill_sources, captures, open_ledger
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.captures import Capture
from acp_proxy.ledger.statements import Run
from harness.daemons import until
from harness.rows import NOON, line, row
from tests.bills.made import Call
from tests.reconcile.provider import KEY, daily, serving
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


def test_a_provider_that_is_asked_is_told_with_what_went_wrong(empty: Home) -> None:
    now = time.time_ns()
    source = BillSource("openai", now + HOUR, now, now - DAY, 3, "api.openai.com refused the key (401)\x1b[31m")
    gone = BillSource("litellm", now - 40 * DAY, now - 41 * DAY, now - 41 * DAY)
    with closing(open_ledger(empty.url, journals=())) as ledger:
        for each in (source, gone):
            of = ("default", each.provider, "here")
            ledger.tables.write(partial(_noted, of=of, source=each))
    with empty.serving() as served:
        (found,) = served.json("/api/bills")["sources"]
    assert (found["provider"], found["trouble"], found["asked"]) == (
        "openai",
        "api.openai.com refused the key (401)",
        True,
    )
    assert found["again_at"] > found["tried_at"] > found["fetched_at"]


def test_serve_fetches_what_its_configuration_names(empty: Home) -> None:
    yesterday = time.time_ns() // DAY * DAY - DAY // 2
    empty.append([row(line("claude-sonnet-5", "0.002", input=1000, output=10), at=yesterday)])
    with serving(daily(lambda day: Call(day, tokens=(2000, 0, 0, 0, 20)))) as api:
        empty.configure(f'[bills.anthropic]\nkey = "${{ADMIN_KEY}}"\nurl = "{api.url}"\ndays = 3\n')
        with empty.serving(environ={"ADMIN_KEY": KEY}) as served:
            until(lambda: served.json("/api/bills")["bills"], "the bill is there")
            answer = served.json("/api/bills")
            metrics = served.ask("/metrics").body.decode()
            assert served.end() == 0
    assert [each["tokens"] for each in answer["bills"]] == [{"billed": 3 * 2020, "seen": 1010}]
    (source,) = answer["sources"]
    assert (source["provider"], source["trouble"], source["asked"]) == ("anthropic", None, True)
    assert 'acp_proxy_capture_ratio{provider="anthropic",of="tokens"} 0.16' in metrics
    assert KEY not in str(answer) + metrics


def _noted(run: Run, of: tuple[str, str, str], source: BillSource) -> None:
    assert bill_sources.claim(run, *of, time.time_ns())
    assert bill_sources.settle(run, of[0], of[2], source, lambda _: None)


def test_without_a_bill_there_is_none(empty: Home) -> None:
    with empty.serving() as served:
        assert served.json("/api/bills") == {"bills": [], "sources": []}
