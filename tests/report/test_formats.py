"""Reports for programs and spreadsheets: JSON as it is documented, and CSV that has the same."""

from __future__ import annotations

import csv
import io
import json

import orjson
import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import Ledger, Query
from acp_proxy.report import BY, formats, spreadsheet
from acp_proxy.text import times
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.report.house import as_json, found

HOUR = 60 * MINUTE


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
    bare = row(line(None), kind="autonomous", stop_reason=None)
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


def test_no_name_of_a_turn_is_a_formula_either(ledger: Ledger) -> None:
    evil = "=1+1"
    origin = replace(ALICE, user=evil, team=evil, project=evil, agent=evil, agent_version=evil, client=evil)
    made = row(line(evil), origin=origin, session=evil, message_id=evil, stop_reason=evil)
    (only,) = csv.DictReader(io.StringIO("".join(spreadsheet.as_csv(found(ledger, "turn", made)))))
    names = ["session", "agent", "agent_version", "client", "user", "team", "project", "model"]
    assert {only[name] for name in (*names, "stop_reason", "message_id")} == {f"'{evil}"}


def test_csv_of_many_turns_has_each_once(ledger: Ledger) -> None:
    rows = [row() for _ in range(250)]
    read = list(csv.DictReader(io.StringIO("".join(spreadsheet.as_csv(found(ledger, "turn", *rows))))))
    assert sorted(one["key"] for one in read) == [each.entry.id for each in rows]
