"""What the page is told is what the commands say, to the nano-unit; and names from outside stay text."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import Query, Row, open_ledger, open_reader
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.places import journal_directories
from acp_proxy.report import formats, report
from acp_proxy.serve.assets import page_assets
from acp_proxy.serve.session_order import SORTS
from acp_proxy.system.project import project_of
from acp_proxy.text import times
from harness.rows import ALICE, BOB, line, row
from tests.ledger.warned import Warnings
from tests.serve.house import Home, Served

pytestmark = pytest.mark.xdist_group("api")  # one server for all tests of it

HOUR = 3600 * 10**9
DAY = 24 * HOUR
HOSTILE = '<script>alert(1)</script>"\u202e\x00</title>'
BUDGETS = """
[[budget]]
name = "daily"
window = "day"
limit = { amount = "30", currency = "USD" }

[[budget]]
name = "each-project"
per = "project"
window = "month"
limit = { tokens = 1_000_000 }
"""


def rows(now: int) -> list[Row]:
    """Some of this hour, some of other days and years; of several models and currencies, priced and not."""
    used: dict[str, Any] = {"context_used": 50_000, "context_size": 200_000}
    return [
        row(line("sonnet", "0.25", cached_read=900, input=100), at=now, state=SessionState(title=HOSTILE), **used),
        row(line("opus", "1.5"), line("haiku", "0.001"), at=now - 2 * HOUR, session="s2", origin=BOB),
        row(line("credit-model", "3", currency="credits"), at=now - DAY, session="s3"),
        row(line("secret-model", None), at=now - 2 * DAY, cost_source="unknown", session="s4"),
        row(line("opus", "0.5"), at=now - 3 * DAY, usage_source="partial"),
        row(line("opus", "0.125"), at=now - 9 * DAY, usage_source="estimated", cost_source="estimated"),
        row(
            line(None, None, input=0), at=now - 40 * DAY, usage_source="none", cost_source="unknown", kind="autonomous"
        ),
        row(line("opus", "7"), at=now - 400 * DAY, kind="compaction"),
        row(line("haiku", "0.000000001"), at=now - 4000 * DAY, origin=replace(ALICE, agent="codex")),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    home.configure(BUDGETS)
    home.append(rows(time.time_ns()))
    return home


@pytest.fixture(scope="module")
def served(home: Home) -> Iterator[Served]:
    with home.serving() as served:
        yield served


def summed(costs: list[dict[str, str]]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for cost in costs:
        for currency, amount in cost.items():
            found[currency] = found.get(currency, Decimal(0)) + Decimal(amount)
    return found


def as_reported(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name != "at_least"}


@pytest.mark.parametrize("by", ["model", "agent", "project", "team", "user", "kind"])
@pytest.mark.parametrize("period", ["today", "week", "month", "last-month", "year", "all"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
def test_spend_is_what_the_report_says(home: Home, served: Served, by: str, period: str, zone: str) -> None:
    found = served.json(f"/api/spend?range={period}&by={by}&tz={zone}")
    reported = report_of(home, by, zone, found["since"], found["until"])
    assert [as_reported(each) for each in found["rows"]] == reported["rows"]
    assert as_reported(found["total"]) == reported["total"]
    assert (found["timezone"], found["range"], found["by"]) == (zone, period, by)
    series = found["over_time"]["currencies"]
    in_chart = {
        currency: sum(Decimal(value) for each in some for value in each["values"] if value is not None)
        for currency, some in series.items()
    }
    assert in_chart == summed([each["cost"] for each in found["rows"]])


def report_of(home: Home, by: str, zone: str, since: str | None, until: str | None) -> Any:
    """What `report --json` prints, without a process for each."""
    calendar = times.zone(zone)
    start, end = (None if each is None else times.parse(each, calendar, time.time_ns()) for each in (since, until))
    with closing(open_reader(home.url, journals=())) as ledger:
        return json.loads("".join(formats.as_json(report(ledger, by, Query(start, end), calendar))))


def test_a_zone_of_a_browser_is_known_though_the_system_does_not_have_it(home: Home) -> None:
    with home.serving(environ={"PYTHONTZPATH": ""}) as served:
        for name in ("Asia/Calcutta", "Europe/Kiev", "Europe/Berlin"):
            assert served.json(f"/api/spend?tz={name}")["timezone"] == name


def test_cards_are_the_totals_of_their_periods(served: Served) -> None:
    cards = served.json("/api/spend?range=all&by=agent")["cards"]
    for period in ("today", "week", "month"):
        total = served.json(f"/api/spend?range={period}")["total"]
        assert cards[period] == {
            "cost": total["cost"],
            "turns": total["turns"],
            "tokens_total": total["tokens"]["total"],
            "at_least": total["at_least"],
        }


def test_exact_partial_and_estimated_are_told_apart(served: Served) -> None:
    found = served.json("/api/spend?range=all")
    assert found["sources"] == {"exact": 5, "partial": 1, "estimated": 1, "unpriced": 1, "none": 1}
    assert found["total"]["at_least"]
    assert found["total"]["unpriced_turns"] == 1


def test_the_cache_hit_ratio_is_of_all_that_was_sent(served: Served) -> None:
    found = served.json("/api/spend?range=all")
    tokens = found["total"]["tokens"]
    sent = tokens["input"] + tokens["cached_read"] + tokens["cached_write"]
    assert found["cache_hit_ratio"] == f"{tokens['cached_read'] / sent:.4f}"


@pytest.mark.parametrize(
    ("period", "step"),
    [("today", "hour"), ("week", "day"), ("last-month", "day"), ("year", "month"), ("all", "month")],
)
def test_a_chart_has_a_value_or_none_for_each_step(served: Served, period: str, step: str) -> None:
    chart = served.json(f"/api/spend?range={period}")["over_time"]
    assert chart["step"] == step
    assert chart["starts"] == sorted(set(chart["starts"]))
    assert chart["starts"][-1] <= time.time()
    for series in chart["currencies"].values():
        assert all(len(each["values"]) == len(chart["starts"]) for each in series)


def test_sessions_are_those_of_the_report_the_last_first(home: Home, served: Served) -> None:
    found = served.json("/api/sessions")
    reported = {each["key"]: each for each in home.json("report", "--by", "session")["rows"]}
    assert found["next"] is None
    assert [each["ended_at"] for each in found["sessions"]] == sorted(
        (each["ended_at"] for each in reported.values()), reverse=True
    )
    for session in found["sessions"]:
        said = reported.pop(session["key"])
        assert {name: session[name] for name in said} == said
    assert not reported


def test_sessions_come_in_pages(served: Served) -> None:
    whole = [each["key"] for each in served.json("/api/sessions")["sessions"]]
    found: list[str] = []
    following: str | None = ""
    while following is not None:
        page = served.json(f"/api/sessions?limit=2{following}")
        found += [each["key"] for each in page["sessions"]]
        following = f"&before={page['next']}" if page["next"] else None
    assert found == whole


def test_sessions_are_found_by_a_part_of_their_title_user_or_project(served: Served) -> None:
    found = served.json("/api/sessions?find=SCRIPT%3Ealert")["sessions"]
    assert [each["title"] for each in found] == [HOSTILE]
    for part in ("BO", "Infra"):
        found = served.json(f"/api/sessions?find={part}")["sessions"]
        assert [(each["user"], each["project"]) for each in found] == [("bob", "infra")]
    assert served.json("/api/sessions?find=nothing")["sessions"] == []


def test_a_session_is_active_only_while_the_proxy_of_its_agent_runs(home: Home, served: Served) -> None:
    def active() -> list[bool]:
        return [each["active"] for each in served.json("/api/sessions")["sessions"]]

    assert not any(active())
    with closing(open_ledger(home.url, journals=())) as ledger:
        sessions = ledger.recent.sessions("default", 9)
        last = ledger.recent.rows(sessions[0], 1)[0]
    with closing(open_journal(journal_directories(home.environ), home.url, Warnings())) as journal:
        slot = journal.write(last)
        assert slot is not None
        journal.done(slot)
        assert active() == [True, *[False] * (len(sessions) - 1)]
    assert not any(active())


def test_figures_and_sessions_of_a_filter_and_of_dates_are_those_of_the_report(home: Home, served: Served) -> None:
    day = datetime.now(UTC).date() - timedelta(days=3)
    last = day + timedelta(days=2)
    for name, value in (("agent", "codex"), ("model", "opus"), ("project", "infra"), ("user", "bob"), ("team", "none")):
        for dates, words in (
            (f"{day}..", ["--since", str(day)]),
            (f"..{last}", ["--until", str(last + timedelta(days=1))]),
            (f"{day}..{last}", ["--since", str(day), "--until", str(last + timedelta(days=1))]),
        ):
            asked = f"range={dates}&{name}={value}"
            options = ["--tz", "UTC", *words, f"--{name}", value]
            for by in ("model", "project"):
                found, said = served.json(f"/api/spend?{asked}&by={by}"), home.json("report", "--by", by, *options)
                assert [{part: row[part] for part in said["rows"][0]} for row in found["rows"]] == said["rows"]
                assert {part: found["total"][part] for part in said["total"]} == said["total"]
                assert (found["since"], found["until"]) == (said["since"], said["until"])
            reported = home.json("report", "--by", "session", *options)["rows"]
            for sort in SORTS:
                sessions = served.json(f"/api/sessions?{asked}&sort={sort}")["sessions"]
                said = [{part: session[part] for part in reported[0]} for session in sessions]
                assert sorted(said, key=str) == sorted(reported, key=str)


def test_sessions_come_in_the_order_that_is_asked_for(served: Served) -> None:
    def sorted_by(sort: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = served.json(f"/api/sessions?sort={sort}")["sessions"]
        return found

    def falls(values: list[Any]) -> bool:
        return values == sorted(values, reverse=True)

    assert falls([each["started_at"] for each in sorted_by("started")])
    assert falls([each["turns"] for each in sorted_by("turns")])
    assert falls([each["tokens"]["total"] for each in sorted_by("tokens")])
    assert falls([each["context_used"] is not None for each in sorted_by("context")])
    costs = [each["cost"] for each in sorted_by("cost")]
    assert falls([Decimal(cost.get("USD", "-1")) for cost in costs])
    assert [list(cost) for cost in costs[-2:]] == [["credits"], []]  # currencies are not compared
    first = served.json("/api/sessions?sort=cost&limit=2&find=CORE")
    assert (first["sessions"], first["more"]) == ([], False)
    first = served.json("/api/sessions?sort=cost&limit=2")
    assert (len(first["sessions"]), first["more"], first["next"]) == (2, True, None)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        (
            "range=2026-11-01",
            "range: expected today, week, month, last-month, year, all or dates such as 2026-11-01..2026-",
        ),
        ("range=..", "range: expected a date before or after the two dots"),
        ("range=2026-11-02..2026-11-01", "range: expected the first date not to be after the last"),
        ("range=2026-13-01..", "range: expected a date such as 2026-11-01, not '2026-13-01'"),
        ("range=20261101..", "range: expected a date such as 2026-11-01, not '20261101'"),
        ("range=0001-01-01..", "range: expected a date such as 2026-11-01, not '0001-01-01'"),
        ("sort=price", "sort: expected last, started, turns, tokens, cost, context"),
        ("sort=cost&before=e30=", "before: only for sessions that are sorted by last"),
    ],
)
def test_a_range_or_an_order_that_there_is_not_is_told_in_one_line(served: Served, query: str, line: str) -> None:
    answer = served.ask(f"/api/sessions?{query}")
    assert answer.status == 400
    assert answer.json["error"].startswith(line)


def test_a_session_has_its_turns(home: Home, served: Served) -> None:
    reported = home.json("report", "--by", "turn")["rows"]
    for session in served.json("/api/sessions")["sessions"]:
        found = served.json(f"/api/session?key={session['key']}")
        turns = [{name: turn[name] for name in reported[0]} for turn in found["turns"]]
        expected = [
            each for each in reported if all(each[name] == session[name] for name in ("session", "agent", "user"))
        ]
        assert sorted(turns, key=str) == sorted(expected, key=str)
        in_terminal = home.json("session", session["key"])["turns"]
        assert [turn["compacted"] for turn in found["turns"]] == [turn["compacted"] for turn in in_terminal]
        assert found["total"]["cost"] == session["cost"]
        assert found["omitted"] == 0
        assert found["context"] is None


def test_of_a_long_session_the_latest_turns_are_listed_and_its_context_is_thinned(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home, now = Home(tmp_path_factory.mktemp("home")), time.time_ns()
    home.append(
        row(at=now + number, context_used=7 if number == 1 else number % 5 + 1, context_size=100)
        for number in range(1203)
    )
    with home.serving() as served:
        (session,) = served.json("/api/sessions")["sessions"]
        found = served.json(f"/api/session?key={session['key']}")
    assert (len(found["turns"]), found["omitted"], found["total"]["turns"]) == (1000, 203, 1203)
    assert found["turns"][-1]["context_used"] == 1202 % 5 + 1
    assert found["total"]["cost"] == session["cost"] == {"USD": "12.03"}
    context = found["context"]
    assert (context["rows_each"], len(context["points"])) == (4, 301)
    assert [point["context_used"] for point in context["points"][:2]] == [7, 5]


def test_budgets_are_those_of_the_list(home: Home, served: Served) -> None:
    listed, here = home.json("budget", "list")["budgets"], project_of(Path.cwd())
    others = [budget for budget in listed if budget["scope"].get("project") != [here]]
    assert len(others) == len(listed) - 1
    assert served.json("/api/budgets")["budgets"] == others  # where `serve` was started is nobody's project


def test_a_title_with_a_script_stays_a_text_in_json(served: Served) -> None:
    answer = served.ask("/api/sessions")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert HOSTILE in [each["title"] for each in answer.json["sessions"]]


def test_large_answers_are_zipped_for_who_takes_that(served: Served) -> None:
    for path in ("/api/spend?range=all", "/"):
        plain, zipped = served.ask(path), served.ask(path, {"Accept-Encoding": "br, gzip;q=0.5"})
        assert zipped.headers["content-encoding"] == "gzip"
        assert gzip.decompress(zipped.body) == plain.body
        assert served.ask(path, {"Accept-Encoding": "GZIP"}).body == zipped.body
        for refused in ("gzip;q=0", "br, gzip ; q=0.0", "x-gzip", "identity"):
            answer = served.ask(path, {"Accept-Encoding": refused})
            assert "content-encoding" not in answer.headers
            assert answer.headers["vary"] == zipped.headers["vary"] == "Accept-Encoding"  # for caches
    assert "content-encoding" not in served.ask("/api/live", {"Accept-Encoding": "gzip"}).headers  # it would grow


def test_a_file_of_the_page_is_sent_once(served: Served) -> None:
    etag = served.ask("/").headers["etag"]
    answer = served.ask("/", {"If-None-Match": f'"other", W/{etag}'})
    assert (answer.status, answer.body) == (304, b"")


def test_the_page_may_stand_below_a_path_for_it_names_no_address_from_the_root() -> None:
    texts = [asset.body.decode() for name, asset in page_assets().items() if name.endswith((".js", ".css", "/"))]
    assert any('href="page.css"' in text for text in texts)
    from_the_root = re.compile(r"""(?:href=|src=|url\(|import\(|from |fetch\()["'`]?/(?!/)""")
    assert [found for text in texts for found in from_the_root.findall(text)] == []


def test_a_row_that_is_added_is_seen_and_changes_the_version(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    now = time.time_ns()
    home.append([row(line("opus", "1"), at=now)])
    with home.serving() as served:
        before = served.json("/api/spend?range=all")
        home.append([row(line("opus", "0.5"), at=now - 300 * DAY, session="late")])
        deadline = time.monotonic() + 60
        while (after := served.json("/api/spend?range=all"))["version"] == before["version"]:
            assert time.monotonic() < deadline
        assert after["total"]["cost"] == {"USD": "1.5"}
        assert served.json("/api/live")["version"] == after["version"]
        assert len(served.json("/api/sessions")["sessions"]) == 2


def test_names_of_any_length_and_number_are_bounded(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    now = time.time_ns()
    names = ["x" * 10_000, *(f"model-{number}" for number in range(10_000))]
    home.append(
        [
            row(*(line(name, "0.001") for name in names[start : start + 1000]), at=now)
            for start in range(0, 10_001, 1000)
        ]
    )
    with home.serving() as served:
        deadline = time.monotonic() + 60
        while (answer := served.ask("/api/spend?range=all&by=model")).status == 503:  # a busy machine adds up for long
            assert time.monotonic() < deadline
        found = answer.json
        assert len(found["rows"]) == 201
        assert found["rows"][-1]["key"] == "other"
        assert found["rows"][-1]["others"] == 9801
        assert found["total"]["cost"] == {"USD": "10.001"}
        assert summed([each["cost"] for each in found["rows"]]) == {"USD": Decimal("10.001")}
        series = found["over_time"]["currencies"]["USD"]
        assert [each["key"] for each in series][8:] == ["other"]
        assert len(answer.body) < 200_000


def test_a_running_turn_is_told_until_it_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    now = time.time_ns()
    ended = row(line("opus", "1"), at=now - HOUR, state=SessionState(7, 9, title="Fix it"))
    home.append([ended])
    journal = open_journal([home.path / ".local/state/acp-proxy/journal"], home.url, Warnings())
    running = row(line("opus", "0.25", input=0), at=now, usage_source="none", cost_source="agent")
    with home.serving() as served:
        assert served.json("/api/live")["running"] == []
        begun = journal.write_open(row(line(None, None, input=0), id=running.entry.id, at=now, usage_source="none"))
        slot = journal.write_open(running, begun)
        assert slot is not None
        (told,) = served.json("/api/live")["running"]
        (session,) = served.json("/api/sessions")["sessions"]
        assert (told["title"], told["cost"], told["estimated"]) == ("Fix it", {"USD": "0.25"}, True)
        assert (told["key"], told["context_used"], told["context_size"]) == (session["key"], 7, 9)
        assert session["running"]
        journal.done(slot)
        assert served.json("/api/live")["running"] == []
    journal.close()


def test_what_a_dead_proxy_left_is_taken_over_and_not_told_as_running(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    directory = home.path / ".local/state/acp-proxy/journal"
    home.append([])
    with home.serving() as served:
        journal = open_journal([directory], home.url, Warnings())
        journal.write(row(line("opus", "1"), at=time.time_ns()))
        journal.close()  # as the end of its process: what is not done stays
        deadline = time.monotonic() + 60
        while not served.json("/api/sessions")["sessions"]:
            assert time.monotonic() < deadline
        assert served.json("/api/live")["running"] == []
    assert not list(directory.glob("*.journal"))


def test_it_reads_while_others_write(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("home"))  # what is written stays away from the figures of other tests
    with closing(open_ledger(home.url, journals=())) as ledger, home.serving() as served:
        for number in range(30):
            ledger.append([row(line("opus", "0.01"), at=time.time_ns(), session=f"writer-{number}")])
            assert served.ask("/api/spend").status == 200
            assert served.ask("/metrics").status == 200
