"""One session: how it is found, what is said of it, and its context as a plot."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import Query, Row
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import report as reported
from acp_proxy.report import session_formats, session_key, tables
from acp_proxy.report.context import Point, thinned
from acp_proxy.report.context_plot import HEIGHT, context_plot
from acp_proxy.report.session import NoSuchSession, SessionReport, session_report
from acp_proxy.text import times
from acp_proxy.text.figures import width_of
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row

HOUR = 60 * MINUTE
MINE = (("organisation", "default"), ("user", "alice"))


def found(ledger: BudgetLedger, name: str, *rows: Row) -> SessionReport:
    ledger.append(rows)
    return session_report(ledger, name, MINE, times.UTC_ZONE, NOON + HOUR)


def turn(used: int | None = None, *, at: int = 0, **fields: Any) -> Row:
    state = SessionState(context_used=used, context_size=1000, title=fields.pop("title", None))
    return row(at=NOON + at * MINUTE, context_used=used, context_size=1000, state=state, **fields)


def told(report: SessionReport) -> Any:
    rows = [line.about for line in report.turns.lines if isinstance(line.about, Row)]
    return json.loads("".join(session_formats.as_json(report.line, rows)))


def plain(report: SessionReport, *, every: bool) -> str:
    return "".join(session_formats.plain(report, every=every))


def test_its_turns_are_listed_in_the_order_of_time(ledger: BudgetLedger) -> None:
    report = told(found(ledger, "s1", turn(at=5), turn(at=1), turn(at=3), row(session="s2")))
    assert [row["started_at"][14:16] for row in report["turns"]] == ["01", "03", "05"]
    assert report["session"]["turns"] == 3
    assert report["session"]["cost"] == {"USD": "0.03"}


def test_the_last_is_the_one_of_mine_that_was_active_last(ledger: BudgetLedger) -> None:
    rows = (
        row(session="old", at=NOON - 48 * HOUR),
        row(session="mine before", at=NOON),
        row(session="mine", at=NOON + 2 * MINUTE),
        row(session="older but longer", at=NOON - 49 * HOUR),
        row(session="another's", at=NOON + 3 * MINUTE, origin=BOB),
    )
    assert found(ledger, "last", *rows).info.session == "mine"


def test_the_last_is_found_after_a_long_pause(ledger: BudgetLedger) -> None:
    assert found(ledger, "last", row(session="old", at=NOON - 24 * 400 * HOUR)).info.session == "old"


def test_who_has_no_session_is_named_where_others_have_some(ledger: BudgetLedger) -> None:
    whose = 'user "alice" of organisation "default"'
    with pytest.raises(NoSuchSession, match=f"^there is no session of {whose} in the ledger yet$"):
        found(ledger, "last", row(origin=BOB))


def test_nobody_is_named_where_nobody_has_a_session(ledger: BudgetLedger) -> None:
    with pytest.raises(NoSuchSession, match=r"^there is no session in the ledger yet$"):
        found(ledger, "last")


def test_a_session_is_found_by_its_key_and_by_its_beginning(ledger: BudgetLedger) -> None:
    key = found(ledger, "s1", turn(), row(session="s2")).line.key
    assert found(ledger, key).info.session == "s1"
    assert found(ledger, key[:6]).info.session == "s1"


def test_of_two_with_one_id_the_keys_are_named(ledger: BudgetLedger) -> None:
    rows = (turn(), turn(origin=BOB))
    with pytest.raises(
        NoSuchSession, match=r"2 sessions are called 's1': give one of their keys, [0-9a-f]{16}, "
    ) as told:
        found(ledger, "s1", *rows)
    for key in str(told.value).rpartition("keys, ")[2].split(", "):
        assert found(ledger, key).line.turns == 1


@pytest.mark.parametrize("name", ["s1", "The title", "key"])
def test_those_of_another_organisation_are_not_found(ledger: BudgetLedger, name: str) -> None:
    ours, theirs = turn(title="The title"), turn(title="The title", origin=replace(ALICE, organisation="another"))
    ledger.append([theirs])
    called = session_key(theirs.origin, "s1") if name == "key" else name
    with pytest.raises(NoSuchSession, match=r"no session (is called|has the id)"):
        found(ledger, called)
    if name != "key":
        assert found(ledger, called, ours).info.origin == ALICE


def test_of_many_with_one_name_a_few_keys_are_named(ledger: BudgetLedger) -> None:
    ledger.append([turn(session=f"s{number}", title="The same") for number in range(5)])
    for name, more in (("The same", ""), ("same", ", …")):
        with pytest.raises(NoSuchSession, match=rf"keys, [0-9a-f]{{16}}(, [0-9a-f]{{16}}){{4}}{more}$"):
            found(ledger, name)
        ledger.append([turn(session="s5", title="The same")])


def test_an_id_is_found_though_it_is_a_part_of_another_ones_title(ledger: BudgetLedger) -> None:
    assert (
        found(ledger, "s-one", turn(session="s-one"), turn(session="s2", title="After s-one")).info.session == "s-one"
    )


def test_a_session_is_found_by_a_part_of_its_title(ledger: BudgetLedger) -> None:
    rows = (turn(title="Fix the failing test"), turn(session="s2", title="Write a test"), turn(session="s3"))
    assert found(ledger, "FAILING", *rows).info.session == "s1"
    with pytest.raises(NoSuchSession, match="2 sessions are called 'test': give one of their keys"):
        found(ledger, "test")


def test_what_is_too_short_for_a_key_or_a_title_is_said_to_be(ledger: BudgetLedger) -> None:
    with pytest.raises(NoSuchSession, match=r"^no session has the id 'Fix'; .* 4 characters or more$"):
        found(ledger, "Fix", turn(title="Fix the failing test"))


@pytest.mark.parametrize("name", ["s9", "", "ffff", "last"])
def test_one_that_is_not_there_is_said_in_one_line(ledger: BudgetLedger, name: str) -> None:
    told = "in the ledger yet$" if name == "last" else rf"^no session (is called|has the id) '{name}'; "
    with pytest.raises(NoSuchSession, match=told):
        found(ledger, name)


def test_a_compaction_is_marked_whether_the_agent_says_so_or_not(ledger: BudgetLedger) -> None:
    rows = (
        turn(500, at=1),
        turn(900, at=2),
        turn(300, at=3),
        turn(None, at=4),
        turn(350, at=5, kind="compaction"),
        turn(360, at=6),
        turn(180, at=7),  # a half of it
        turn(89, at=8),
    )
    report = told(found(ledger, "s1", *rows))
    assert [row["compacted"] for row in report["turns"]] == [False, False, True, False, True, False, False, True]


def test_people_get_what_it_is_about_the_plot_and_the_turns(ledger: BudgetLedger) -> None:
    rows = (turn(100, at=1, title="Fix the\x1b[31m tests"), turn(990, at=2))
    text = plain(found(ledger, "last", *rows), every=False)
    head, plot, turns = text.split("\n\n")
    assert head.splitlines()[:2] == ["session  Fix the tests", "id       s1"]
    assert "agent    claude-agent-acp 0.100.0" in head
    assert "user     alice, core" in head
    assert "when     2026-11-21 12:01 to 12:03" in head
    assert plot.splitlines() == ["context", "100% │ ▇", "     │ █", "     │ █", "     │ █", "  0% │▄█"]
    assert [line.split()[0] for line in turns.splitlines()] == ["started", "2026-11-21", "2026-11-21", "total"]
    assert "agent" not in turns  # which the head names


def test_a_session_without_a_title_is_found_by_what_a_report_calls_it(ledger: BudgetLedger) -> None:
    ledger.append([turn(session=f"019ac0de-{number}", at=number) for number in range(3)])
    query = Query(where=(("organisation", "default"),))
    listed = (
        "".join(tables.plain(reported(ledger, "session", query, times.UTC_ZONE))).split("\n\n")[0].splitlines()[1:-1]
    )
    named = [re.search(r"web · (\w{6}) ", text) for text in listed]
    ids = {found(ledger, name[1]).info.session for name in named if name}
    assert ids == {"019ac0de-0", "019ac0de-1", "019ac0de-2"}


def test_what_is_not_known_of_a_session_has_no_line(ledger: BudgetLedger) -> None:
    bare = replace(BOB, agent_version=None, project=None)
    head, _, _ = plain(found(ledger, "s1", row(line(None, None), origin=bare)), every=False).partition("\n\n")
    facts = [" ".join(each.split()) for each in head.splitlines()]
    assert facts[:2] + facts[3:] == [
        "session claude-agent-acp · 2026-11-21 12:00",
        "id s1",
        "agent claude-agent-acp",
        "user bob",
        "when 2026-11-21 12:00 to 12:01",
        "tokens 110 in 1 turn",
        "cost ?",
    ]


def test_a_session_of_two_days_says_until_which_one_and_how_full_its_context_is(ledger: BudgetLedger) -> None:
    text = plain(found(ledger, "s1", turn(100, at=1), turn(200, at=12 * 60)), every=False)
    assert "when     2026-11-21 12:01 to 2026-11-22 00:01\n" in text
    assert "project  web\n" in text
    assert "context  200 of 1,000\n" in text


def test_a_terminal_gets_what_a_pipe_gets(ledger: BudgetLedger) -> None:
    report = found(ledger, "s1", turn(100, at=1), turn(200, at=2))
    wide = "".join(session_formats.coloured(report, 200, {"NO_COLOR": "1"}, every=False))
    assert [each.rstrip() for each in wide.splitlines()] == plain(report, every=False).splitlines()


def test_its_models_are_named_once_in_the_order_in_which_they_came(ledger: BudgetLedger) -> None:
    models = (("opus", None), ("haiku",), ("opus",))
    rows = (row(*map(line, names), at=NOON + number * MINUTE) for number, names in enumerate(models))
    assert "model    opus, haiku\n" in plain(found(ledger, "s1", *rows), every=True)


def test_of_many_turns_the_latest_are_listed_unless_all_are_wanted(ledger: BudgetLedger) -> None:
    report = found(ledger, "s1", *(turn(at=number) for number in range(50)))
    short, long = (plain(report, every=every).splitlines() for every in (False, True))
    assert "10 earlier rows not shown (--all)" in short
    assert len(long) - len(short) == 8  # ten rows, less the note and the empty line before it
    assert [line for line in short if line.startswith("total")] == [line for line in long if line.startswith("total")]


def test_what_is_said_of_a_session_is_the_same_when_only_its_latest_turns_are_kept(ledger: BudgetLedger) -> None:
    rows = [turn(at=number, used=number, id=f"{number:04}") for number in range(50)]
    whole = found(ledger, "s1", row(line("haiku"), at=NOON - MINUTE, session="s1"), *rows)
    latest = session_report(ledger, "s1", MINE, times.UTC_ZONE, NOON + HOUR, session_formats.MOST_TURNS)
    assert len(latest.turns.lines) == session_formats.MOST_TURNS
    assert plain(latest, every=False) == plain(whole, every=False)


def test_no_line_is_wider_than_the_terminal(ledger: BudgetLedger) -> None:
    origin = replace(ALICE, agent="an-agent-with-a-very-long-name" * 3)
    report = found(ledger, "s1", *(turn(number * 20, at=number, origin=origin) for number in range(50)))
    for width in (20, 40, 80, 200):
        text = "".join(session_formats.coloured(report, width, {"NO_COLOR": "1"}, every=True))
        assert max(map(width_of, text.splitlines())) <= width


POINTS = st.lists(
    st.builds(
        Point,
        st.just(NOON),
        st.none() | st.integers(0, 3000),
        st.none() | st.integers(0, 2000),
        st.booleans(),
    ),
    max_size=60,
)


@given(POINTS, st.integers(0, 70))
def test_a_plot_fits_whatever_it_shows(points: list[Point], width: int) -> None:
    lines = context_plot(points, width, lambda _, text: text)
    assert len(lines) in (0, HEIGHT, HEIGHT + 1)
    assert all(width_of(line) <= width for line in lines)


def test_columns_are_painted_by_how_full_the_context_is() -> None:
    points = [Point(NOON, used, 100, False) for used in (10, 75, 90, 96)]
    lines = context_plot(points, 40, lambda style, text: f"<{style}>" if text.strip() else text)
    assert lines[-1].partition("│")[2] == "<bar><yellow><orange><red>"


def test_a_plot_marks_where_the_context_was_compacted_and_where_it_is_not_known() -> None:
    points = [Point(NOON, 100, 100, False), Point(NOON, None, 100, False), Point(NOON, 1, 100, True)]
    marks, *_, above, lowest = context_plot(points, 80, lambda _, text: text)
    assert (marks, above, lowest) == ("        ▾  ▾ compacted", "     │█  ", "  0% │█·▁")
    assert context_plot(points, 12, lambda _, text: text)[0] == "        ▾"


def test_more_rows_than_columns_share_them_and_the_fullest_is_seen() -> None:
    points = [Point(NOON, 100 if number == 7 else 0, 100, False) for number in range(40)]
    top = context_plot(points, 16, lambda _, text: text)[0]
    assert top == "100% │ █" + " " * 8


@pytest.mark.parametrize(("used", "top"), [(0, 5), (50, 5), (51, 10), (250, 25), (500, 50), (501, 100), (2000, 100)])
def test_the_scale_ends_at_the_next_round_share_of_the_window(used: int, top: int) -> None:
    points = [Point(NOON, used, 1000, False), Point(NOON, 0, 1000, False)]
    highest, *_, lowest = context_plot(points, 40, lambda _, text: text)
    assert (highest.split("│")[0], lowest.split("│")[0]) == (f"{top:3}% ", "  0% ")
    assert (highest[6] == "█") == (used * 100 >= top * 1000)


def test_a_plot_of_nothing_known_is_not_drawn() -> None:
    assert context_plot([Point(NOON, None, 100, False), Point(NOON, 5, None, True)], 80, lambda _, text: text) == []


@given(st.lists(st.none() | st.integers(1, 100), max_size=200), st.sampled_from([2, 8, 30]))
def test_of_a_long_session_the_fullest_of_neighbours_are_kept(fills: list[int | None], most: int) -> None:
    every = [Point(NOON + number, used, 100, used == 50) for number, used in enumerate(fills)]
    kept, each = thinned(every, most)
    assert len(kept) <= most + 1
    groups = [every[start : start + each] for start in range(0, len(every), each)]
    assert [point.at for point in kept] == [group[0].at for group in groups]
    assert [point.used for point in kept] == [max(point.used or 0 for point in group) or None for group in groups]
    assert [point.compacted for point in kept] == [any(point.compacted for point in group) for group in groups]


def test_all_turns_are_read_as_they_are_written(ledger: BudgetLedger) -> None:
    """More than are in memory at once, each once, and a session of two currencies has two columns."""
    ledger.append([turn(number % 900, at=number) for number in range(6000)])
    ledger.append([row(line("opus", "2", "EUR"), at=NOON + 7000 * MINUTE)])
    report = session_report(ledger, "s1", MINE, times.UTC_ZONE, NOON + HOUR)
    listed = [text for text in plain(report, every=True).splitlines() if "2026-" in text or "2027-" in text]
    assert len(listed) - 2 == len(report.turns.lines) == report.rows == 6001  # two lines of the head have the day, too
    assert len(told(report)["turns"]) == 6001
