"""Reports over a real ledger: the sums by every key, and how people, programs and spreadsheets get them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy import times
from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import Usage
from acp_proxy.figures import width_of
from acp_proxy.ledger import Ledger, Query, Row, open_ledger
from acp_proxy.report import BY, Report, formats, query, report, spreadsheet, tables
from tests.ledger.rows import ALICE, BOB, MINUTE, NOON, line, row

HOUR = 60 * MINUTE
DAY = 24 * HOUR
BERLIN = times.zone("Europe/Berlin")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def found(ledger: Ledger, by: str, *rows: Row, zone: times.Zone = times.UTC_ZONE, where: Query | None = None) -> Report:
    ledger.append(rows)
    return report(ledger, by, where or Query(), zone)


def keys(report: Report) -> list[str]:
    return [line.key for line in report.lines]


def as_json(report: Report) -> Any:
    return json.loads("".join(formats.as_json(report)))


def test_the_json_is_as_documented(ledger: Ledger) -> None:
    spent = line("claude-sonnet-5", "0.045989", input=4100, cached_read=15060, cached_write=906, output=606)
    since = times.parse("2026-11-01", times.UTC_ZONE, NOON)
    figures = {
        "turns": 1,
        "tokens": {
            "input": 4100,
            "cached_read": 15060,
            "cached_write": 906,
            "output": 606,
            "thought": 0,
            "total": 20672,
        },
        "cost": {"USD": "0.045989"},
        "unpriced_turns": 0,
        "partial_turns": 0,
        "estimated_turns": 0,
        "turns_without_usage": 0,
    }
    assert as_json(found(ledger, "model", row(spent), where=Query(since=since))) == {
        "by": "model",
        "since": "2026-11-01T00:00:00Z",
        "until": None,
        "timezone": "UTC",
        "rows": [{"key": "claude-sonnet-5", **figures}],
        "total": figures,
    }


def test_a_row_by_turn_says_all_that_is_known_of_it(ledger: Ledger) -> None:
    kept = row(
        line("opus", "0.5", input=10, output=1),
        line(None, "0.1", input=1),
        id="01900000-0000-7000-8000-000000000001",
        message_id="m1",
        context_used=11,
        context_size=200,
    )
    (only,) = as_json(found(ledger, "turn", kept))["rows"]
    assert (only["key"], only["turns"], only["cost"]) == (kept.entry.id, 1, {"USD": "0.6"})
    assert dict(list(only.items())[8:]) == {
        "session": "s1",
        "agent": "claude-agent-acp",
        "agent_version": "0.100.0",
        "client": "zed",
        "user": "alice",
        "team": "core",
        "project": "web",
        "model": "opus",
        "kind": "turn",
        "started_at": "2026-11-21T12:00:00.000Z",
        "ended_at": "2026-11-21T12:01:00.000Z",
        "stop_reason": "end_turn",
        "message_id": "m1",
        "usage_source": "agent",
        "cost_source": "computed",
        "context_used": 11,
        "context_size": 200,
    }


def test_a_row_by_session_says_what_the_session_was(ledger: Ledger) -> None:
    state = SessionState(title="Fix the tests", context_used=5, context_size=200)
    rows = as_json(found(ledger, "session", row(state=state), row(at=NOON + HOUR, state=state)))["rows"]
    assert rows == [
        rows[0]
        | {
            "turns": 2,
            "session": "s1",
            "agent": "claude-agent-acp",
            "title": "Fix the tests",
            "project": "web",
            "started_at": "2026-11-21T12:00:00.000Z",
            "ended_at": "2026-11-21T13:01:00.000Z",
            "context_used": 5,
            "context_size": 200,
            "user": "alice",
            "team": "core",
        }
    ]


def test_agents_users_hosts_and_organisations_may_share_a_session_id(ledger: Ledger) -> None:
    origins = [
        ALICE,
        replace(ALICE, user="bob"),
        replace(ALICE, host="desk"),
        replace(ALICE, agent="goose"),
        replace(ALICE, organisation="acme"),
    ]
    sessions = found(ledger, "session", *(row(origin=origin) for origin in origins))
    assert len(set(keys(sessions))) == 5
    ledger.append([row(origin=origin) for origin in origins])
    assert set(keys(report(ledger, "session", Query(), times.UTC_ZONE))) == set(keys(sessions))


def test_a_turn_of_several_models_is_one_by_turn_and_is_split_by_model(ledger: Ledger) -> None:
    turn = row(line("opus", "0.5", input=10), line("haiku", "0.1", input=3))
    by_model = found(ledger, "model", turn)
    assert [(one.key, one.turns, one.usage.total, one.costs) for one in by_model.lines] == [
        ("opus", 1, 10, (Money.of("0.5", "USD"),)),
        ("haiku", 1, 3, (Money.of("0.1", "USD"),)),
    ]
    assert (by_model.total.turns, by_model.total.costs) == (1, (Money.of("0.6", "USD"),))


def test_turns_are_rows_of_kind_turn_and_all_else_is_of_all_kinds(ledger: Ledger) -> None:
    by_kind = found(ledger, "kind", row(), row(kind="side"), row(kind="autonomous"))
    assert {one.key: one.turns for one in by_kind.lines} == {"turn": 1, "side": 0, "autonomous": 0}
    assert (by_kind.total.turns, by_kind.total.usage.total) == (1, 330)


def test_what_has_no_name_has_a_key_and_a_filter_nevertheless(ledger: Ledger) -> None:
    rows = [row(line(None, None), origin=BOB), row(origin=replace(ALICE, project=None))]
    assert keys(found(ledger, "model", *rows)) == ["opus", "unknown"]
    assert set(keys(report(ledger, "team", Query(), times.UTC_ZONE))) == {"core", "none"}
    assert set(keys(report(ledger, "project", Query(), times.UTC_ZONE))) == {"infra", "none"}
    for name, value in (("model", "unknown"), ("team", "none")):
        assert keys(report(ledger, "user", query(None, None, [(name, value)]), times.UTC_ZONE)) == ["bob"]


def test_a_row_belongs_to_the_day_of_its_start_in_the_time_zone(ledger: Ledger) -> None:
    late = row(at=NOON + 11 * HOUR + 30 * MINUTE)  # 23:30 in UTC, ends on the next day in both
    assert keys(found(ledger, "day", late)) == ["2026-11-21"]
    assert keys(report(ledger, "day", Query(), BERLIN)) == ["2026-11-22"]
    assert keys(report(ledger, "week", Query(), BERLIN)) == ["2026-W47"]
    assert keys(report(ledger, "month", Query(), BERLIN)) == ["2026-11"]


def test_days_ascend_and_other_keys_descend_by_cost(ledger: Ledger) -> None:
    rows = [
        row(line("cheap", "1"), at=NOON + DAY),
        row(line("dear", "3"), at=NOON),
        row(line("mid", "2"), at=NOON - DAY),
    ]
    assert keys(found(ledger, "day", *rows)) == ["2026-11-20", "2026-11-21", "2026-11-22"]
    assert keys(report(ledger, "model", Query(), times.UTC_ZONE)) == ["dear", "mid", "cheap"]
    assert [one.costs[0].text for one in report(ledger, "turn", Query(), times.UTC_ZONE).lines] == ["3", "2", "1"]


def test_currencies_are_never_compared_and_an_unknown_cost_comes_last(ledger: Ledger) -> None:
    rows = [
        row(line("unpriced", None, input=10**6)),
        row(line("credits", "900", "credits")),
        row(line("small", "1")),
        row(line("big", "2")),
    ]
    by_model = found(ledger, "model", *rows)
    assert keys(by_model) == ["big", "small", "credits", "unpriced"]
    assert as_json(by_model)["total"]["cost"] == {"USD": "3", "credits": "900"}


@pytest.mark.parametrize("by", BY)
def test_the_currency_of_most_rows_decides_also_where_each_line_has_both(ledger: Ledger, by: str) -> None:
    small, large = (row(line(model, "9", "EUR"), session=model) for model in ("small", "large"))
    dollars = [
        row(line(model, cost), session=model) for model, cost in (("small", "1"), ("large", "2"), ("large", "2"))
    ]
    one = found(ledger, by, small, large, *dollars, where=query(None, None, [("organisation", "default")]))
    assert one.currencies == ("USD", "EUR")
    if by in ("model", "session"):
        assert [[cost.text for cost in each.costs] for each in one.lines] == [["9", "4"], ["9", "1"]]


def test_what_the_sums_miss_is_counted(ledger: Ledger) -> None:
    rows = [
        row(line(None, None), cost_source="unknown"),
        row(usage_source="partial"),
        row(usage_source="partial", cost_source="agent"),
        row(usage_source="estimated", cost_source="estimated"),
        row(line(None, None, input=0), usage_source="none", cost_source="unknown"),
        row(line("opus", None), kind="subagent", cost_source="parent"),
    ]
    total = as_json(found(ledger, "day", *rows))["total"]
    assert [total[name] for name in list(total)[3:]] == [1, 2, 1, 1]
    assert [one.cost_at_least for one in report(ledger, "day", Query(), times.UTC_ZONE).lines] == [3]
    by_turn = report(ledger, "turn", Query(), times.UTC_ZONE)
    assert sum(one.cost_at_least for one in by_turn.lines) == 3
    assert as_json(by_turn)["rows"][-1]["cost"] == {}


def test_filters_select_rows_and_a_model_only_its_part_of_a_turn(ledger: Ledger) -> None:
    state = SessionState(title="Die SPÄTE Übung")
    mine = row(line("opus", "0.5"), line("haiku", "0.1"), session="s2", state=state)
    others = [row(origin=BOB), row(at=NOON - DAY), row(at=NOON + DAY)]
    since = query(NOON, NOON + 1, [("user", "alice"), ("title", "späte übung"), ("model", "haiku")])
    found_ = found(ledger, "turn", mine, *others, where=since)
    assert keys(found_) == [mine.entry.id]
    assert [cost.text for cost in found_.total.costs] == ["0.1"]


def test_the_start_of_an_interval_is_in_it_and_the_end_is_not(ledger: Ledger) -> None:
    rows = [row(at=NOON - 1), row(at=NOON), row(at=NOON + HOUR)]
    assert keys(found(ledger, "turn", *rows, where=Query(NOON, NOON + HOUR))) == [rows[1].entry.id]


@pytest.mark.parametrize("by", BY)
def test_an_empty_ledger_has_an_empty_report(ledger: Ledger, by: str) -> None:
    empty = as_json(found(ledger, by))
    assert (empty["rows"], empty["total"]["turns"], empty["total"]["cost"]) == ([], 0, {})
    assert "".join(spreadsheet.as_csv(report(ledger, by, Query(), times.UTC_ZONE))).startswith(
        "key,turns,input,cached_read,"
    )


MADE = st.tuples(
    st.sampled_from(["opus", "haiku", None]),
    st.sampled_from([Money(1, "USD"), Money(10**9, "USD"), Money(7, "credits"), None]),
    st.sampled_from(["turn", "side"]),
    st.sampled_from([ALICE, BOB]),
    st.integers(0, 40 * 24),  # hours
)


@settings(max_examples=25)
@given(st.lists(MADE, max_size=12))
def test_every_key_adds_up_to_the_same_total(tmp_path_factory: pytest.TempPathFactory, made: list[Any]) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path_factory.mktemp('sums')}/ledger.db", journals=())
    ledger.append(
        [
            row(
                replace(line(model, None, input=1 + hours), cost=cost), kind=kind, origin=origin, at=NOON + hours * HOUR
            )
            for model, cost, kind, origin, hours in made
        ]
    )
    totals = set()
    for by in BY:
        one = report(ledger, by, Query(), BERLIN)
        tokens = sum((line.usage for line in one.lines), Usage())
        costs = frozenset(summed(cost for line in one.lines for cost in line.costs))
        assert (tokens, costs) == (one.total.usage, frozenset(one.total.costs))
        totals.add((sum(line.turns for line in one.lines), tokens, costs))
    ledger.close()
    assert len(totals) == 1


def test_json_comes_in_pieces_and_is_indented_as_a_whole(ledger: Ledger) -> None:
    for rows in ([], [row()], [row(), row(line("\x85\n"))]):
        pieces = list(formats.as_json(found(ledger, "turn", *rows)))
        whole = orjson.dumps(json.loads("".join(pieces)), option=orjson.OPT_INDENT_2).decode()
        assert "".join(pieces) == whole.replace("\x85", "\\u0085") + "\n"
        assert len(pieces) >= len(rows)


def test_csv_has_a_column_for_each_currency_and_exact_figures(ledger: Ledger) -> None:
    rows = [row(line("opus", "0.000000001", thought=2)), row(line("credits", "3", "credits"))]
    text = "".join(spreadsheet.as_csv(found(ledger, "model", *rows)))
    read = list(csv.DictReader(io.StringIO(text)))
    assert [(one["key"], one["cost_USD"], one["cost_credits"], one["thought"]) for one in read] == [
        ("opus", "0.000000001", "", "2"),
        ("credits", "", "3", "0"),
    ]


@pytest.mark.parametrize("by", BY)
def test_csv_has_the_same_columns_whatever_the_rows_are(ledger: Ledger, by: str) -> None:
    empty = "".join(spreadsheet.as_csv(found(ledger, by)))
    dollars = "".join(spreadsheet.as_csv(found(ledger, by, row(line(cost="1")))))
    both = "".join(spreadsheet.as_csv(found(ledger, by, row(line(cost="1", currency="credits")))))
    assert dollars.splitlines()[0] == empty.strip()
    assert both.splitlines()[0] == f"{empty.strip()},cost_credits"


def test_csv_leaves_empty_what_a_row_does_not_have(ledger: Ledger) -> None:
    bare = row(line(None), kind="autonomous")
    bare = replace(bare, entry=replace(bare.entry, stop_reason=None))
    (only,) = csv.DictReader(io.StringIO("".join(spreadsheet.as_csv(found(ledger, "turn", bare)))))
    assert {only[name] for name in ("model", "stop_reason", "message_id", "context_used", "context_size")} == {""}


@pytest.mark.parametrize("by", ["session", "turn"])
def test_csv_says_of_a_row_what_its_json_says(ledger: Ledger, by: str) -> None:
    told = found(ledger, by, row(state=SessionState(title="Fix the tests", context_used=5, context_size=200)))
    (only,) = csv.DictReader(io.StringIO("".join(spreadsheet.as_csv(told))))
    (same,) = as_json(told)["rows"]
    names = list(same)[list(same).index("session") :]
    assert list(only)[-len(names) :] == names
    assert [only[name] for name in names] == ["" if same[name] is None else str(same[name]) for name in names]


def test_csv_gives_a_spreadsheet_no_formula_and_keeps_names_of_agents(ledger: Ledger) -> None:
    origin = replace(ALICE, agent="@scope/agent")
    titled = row(origin=origin, state=SessionState(title='=HYPERLINK("http://x")\n'))
    (only,) = csv.DictReader(io.StringIO("".join(spreadsheet.as_csv(found(ledger, "session", titled)))))
    assert (only["title"], only["agent"]) == ('\'=HYPERLINK("http://x")', "@scope/agent")


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@SUM(1+1)", "@cmd|' /C calc'!A0", "@a/b(1)", "\uff1d1", " =1"])
def test_what_a_spreadsheet_would_take_for_a_formula_is_quoted(text: str) -> None:
    assert spreadsheet.spreadsheet_text(text) == f"'{text.strip()}"


EVIL = "\x1b]0;owned\x07\x1b[2Jname\x9b31m\u202e\n"


def test_control_characters_of_names_reach_no_terminal(ledger: Ledger) -> None:
    rows = [row(line(EVIL, "1", EVIL), origin=replace(ALICE, agent=EVIL, project=EVIL), state=SessionState(title=EVIL))]
    ledger.append(rows)
    for by in BY:
        one = report(ledger, by, Query(), times.UTC_ZONE)
        written = [*tables.plain(one), *formats.as_json(one), *spreadsheet.as_csv(one)]
        assert [text for text in written if not text.replace("\n", "").isprintable()] == []
        coloured = "".join(tables.coloured(one, 100, {}))
        assert not [sign for sign in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x07") if sign in coloured]
    assert as_json(report(ledger, "model", Query(), times.UTC_ZONE))["rows"][0]["key"] == EVIL


def test_plain_text_is_aligned_rounded_and_says_what_it_misses(ledger: Ledger) -> None:
    rows = [
        row(line("claude-sonnet-5", "0.045989", input=5_000, cached_read=15_000, output=600)),
        row(line("unpriced", None, input=10)),
    ]
    assert "".join(tables.plain(found(ledger, "model", *rows))) == (
        "model            turns  prompt  cached  completion   total       cost\n"
        "claude-sonnet-5      1  20,000     75%         600  20,600    $0.0460\n"
        "unpriced             1      10      0%           0      10          ?\n"
        "total                2  20,010     75%         600  20,610  ≥ $0.0460\n"
        "\n"
        "≥ at least: the cost of 1 row is unknown or incomplete\n"
        "no price is known for 1 row: `acp-proxy prices show MODEL` tells, [prices] sets one\n"
    )


def test_several_currencies_have_a_column_each(ledger: Ledger) -> None:
    rows = [row(line("opus", "1")), row(line("opus", "2")), row(line("other", "3", "credits"))]
    assert "".join(tables.plain(found(ledger, "model", *rows))).splitlines()[1:] == [
        "opus       2     200      0%          20    220  $3.0000",
        "other      1     100      0%          10    110           3.0000 credits",
        "total      3     300      0%          30    330  $3.0000  3.0000 credits",
    ]


LONG = "a-very-long-name-of-a-model-behind-a-gateway-that-goes-on-and-on"


@pytest.mark.parametrize("by", BY)
def test_a_table_fits_its_terminal(ledger: Ledger, by: str) -> None:
    rows = [
        row(line(model, cost, currency, input=10**tokens), session=model, state=SessionState(title="日本語" * 30))
        for model in (LONG, "opus")
        for cost, currency in (("1234.5", "USD"), ("0.001", "EUR"), (None, "USD"))
        for tokens in (2, 9)
    ]
    report = found(ledger, by, *rows)
    for width in (20, 40, 60, 80, 120, 200):
        text = "".join(tables.coloured(report, width, {}))
        assert max(width_of(_uncoloured(line)) for line in text.splitlines()) <= width
        assert "total" in text or width < 60


@pytest.mark.parametrize("by", BY)
def test_a_narrow_terminal_shows_what_it_is_about_and_what_it_cost(ledger: Ledger, by: str) -> None:
    rows = [row(line("some-model", cost, currency)) for cost, currency in (("12.5", "USD"), ("3.25", "EUR"))]
    text = "".join(tables.coloured(found(ledger, by, *rows), 40, {"NO_COLOR": "1"}))
    assert {"day": "2026-11-21 ", "week": "2026-W47 ", "month": "2026-11 "}.get(by, "") in text
    assert ("$12.50" in text, "€3.25" in text) == (True, True)


@pytest.mark.parametrize("by", ["session", "turn"])
def test_a_terminal_too_narrow_for_all_currencies_has_the_commonest_and_the_totals_of_others(
    ledger: Ledger, by: str
) -> None:
    costs = (("12.5", "USD"), ("1.5", "USD"), ("1234.25", "credits"), ("3.25", "EUR"))
    told = found(ledger, by, *(row(line("some-model", cost, currency)) for cost, currency in costs))
    table, _, below = "".join(tables.coloured(told, 40, {"NO_COLOR": "1"})).partition("\n\n")
    assert ("$14.00" in table.splitlines()[-1], "credits" in table, "€" in table) == (True, False, False)
    notes = [f"Not shown: {amount} of the total." for amount in ("€3.25", "1,234.25 credits")]
    assert " ".join(below.split()) == " ".join(notes)


@pytest.mark.parametrize(("by", "width"), [("agent", 40), ("agent", 80), ("session", 120), ("turn", 140)])
def test_two_agents_that_end_alike_do_not_look_alike(ledger: Ledger, by: str, width: int) -> None:
    agents = ["@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp", "@zed-industries/codex-acp"]
    rows = [row(origin=replace(ALICE, agent=agent), session=agent) for agent in agents]
    text = "".join(tables.coloured(found(ledger, by, *rows), width, {"NO_COLOR": "1"}))
    column = text.index("agent  ") - text.rfind("\n", 0, text.index("agent  ")) - 1
    names = [each[column:].split()[0] for each in text.splitlines()[1:4]]
    assert len(set(names)) == 3
    assert sum(name.endswith("agent-acp") for name in names) == 2
    assert sum(name.endswith("codex-acp") for name in names) == 1


@pytest.mark.parametrize("by", ["session", "turn"])
def test_where_there_are_several_users_a_row_says_whose_it_is(ledger: Ledger, by: str) -> None:
    (alone,) = (line.split()[0] for line in "".join(tables.plain(found(ledger, by, row()))).splitlines()[:1])
    assert (alone, "user" in "".join(tables.plain(found(ledger, by)))) == ("started", False)
    report = found(ledger, by, row(line(cost="1"), origin=BOB))
    wide, narrow = "".join(tables.plain(report)), "".join(tables.coloured(report, 60, {"NO_COLOR": "1"}))
    for text in (wide, narrow):
        assert [word for word in ("user", "bob", "alice") if word in text] == ["user", "bob", "alice"]


def test_a_terminal_gets_a_bar_per_row_as_long_as_its_cost(ledger: Ledger) -> None:
    rows = [row(line("all", "4")), row(line("half", "2")), row(line("none", None))]
    lines = "".join(tables.coloured(found(ledger, "model", *rows), 80, {})).splitlines()
    bars = {name: line.count("█") for line in lines for name in ("all", "half", "none") if f"{name} " in line}
    assert bars["none"] == 0
    assert bars["all"] == 2 * bars["half"] > 0


def test_a_full_context_is_coloured_by_the_thresholds(ledger: Ledger) -> None:
    rows = [row(context_used=used, context_size=100) for used in (74, 75, 90, 96)]
    text = "".join(tables.coloured(found(ledger, "turn", *rows), 140, {}))
    assert [_colour_before(percent, text) for percent in ("74%", "75%", "90%", "96%")] == [
        "",
        "\x1b[33m",
        "\x1b[38;5;208m",
        "\x1b[31m",
    ]


def test_no_color_is_respected(ledger: Ledger) -> None:
    ledger.append([row(context_used=96, context_size=100)])
    one = report(ledger, "turn", Query(), times.UTC_ZONE)
    plain, coloured = ("".join(tables.coloured(one, 140, environ)) for environ in ({"NO_COLOR": "1"}, {}))
    assert plain == _uncoloured(coloured)


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _colour_before(text: str, coloured: str) -> str:
    """The escape sequence that the cell which holds `text` begins with."""
    found = re.search(r"(\x1b\[[0-9;]*m)? *" + re.escape(text), coloured)
    assert found
    return found[1] or ""
