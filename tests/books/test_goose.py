"""goose's book against what the model server told it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.books import Call, NotUnderstood, goose
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.books.served import DATABASES, Served, all_read, calls, family, served

NEWEST = DATABASES / "goose-1.52.0"
UPGRADED = NEWEST / "upgraded.db"  # begun by 1.37.0, which keeps no calls
RECORDINGS = [path for path in sorted(DATABASES.glob("goose-1.5*/*.db")) if path != UPGRADED]
# Nano-units a token, as goose's table has them: of input, cache read, cache write, output.
PRICES = {"claude-sonnet-4-5": (3000, 300, 3750, 15000), "gpt-4o": (2500, 1250, 0, 10000)}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_its_calls_are_those_that_were_served_session_by_session(recording: Path, tmp_path: Path) -> None:
    found = calls(recording, goose.read, tmp_path)
    as_read = [Served(family(call), call.kind, str(call.model), call.usage) for call in found]
    assert sorted(as_read, key=repr) == sorted(map(_with_thinking_in_output, served(recording)), key=repr)
    assert as_read
    assert len({call.id for call in found}) == len(found)


@pytest.mark.parametrize("name", ["anthropic-tools", "gpt-tools"])
def test_its_estimated_cost_is_told_as_it_is(name: str, tmp_path: Path) -> None:
    for call in calls(NEWEST / f"{name}.db", goose.read, tmp_path):
        counts = (call.usage.input, call.usage.cached_read, call.usage.cached_write, call.usage.completion)
        nano = sum(count * price for count, price in zip(counts, PRICES[str(call.model)], strict=True))
        assert call.cost == Money(nano, "USD")


def test_without_a_price_the_cost_is_unknown(tmp_path: Path) -> None:
    assert {call.cost for call in calls(NEWEST / "tools.db", goose.read, tmp_path)} == {None}


def test_a_call_has_the_second_in_which_it_was_written_and_its_directory(tmp_path: Path) -> None:
    first = calls(NEWEST / "tools.db", goose.read, tmp_path)[0]
    assert (first.at, first.cwd, first.version) == (1795823324 * 10**9, "/home/dev/demo", None)


def test_a_version_with_counters_of_sessions_alone_is_not_understood(tmp_path: Path) -> None:
    found = all_read(DATABASES / "goose-1.37.0" / "tools.db", goose.read, tmp_path)
    assert found == [NotUnderstood("expected table usage_ledger", "schema 13")]


def test_what_a_session_had_used_before_goose_kept_calls_is_no_call(tmp_path: Path) -> None:
    carried, *later = all_read(UPGRADED, goose.read, tmp_path)
    assert carried == NotUnderstood("expected a call, not what a session had used before goose kept calls", "schema 16")
    assert [call.usage for call in later if isinstance(call, Call)] == [
        _with_thinking_in_output(call).usage for call in served(UPGRADED)
    ]


def test_a_session_with_counters_alone_is_counted_and_no_call(tmp_path: Path) -> None:
    path = _changed(tmp_path, "DELETE FROM usage_ledger WHERE session_id = '20261127_2'")
    *found, last = _read(path)
    assert last == NotUnderstood("expected a row for each call of a session", "schema 16")
    assert all(isinstance(call, Call) and call.session != "20261127_2" for call in found)


@pytest.mark.parametrize(
    "values",
    [
        "input_tokens = NULL",
        "output_tokens = 'secret'",
        "output_tokens = -1",
        "total_tokens = 7",
        "cache_read_tokens = 100000",
        "cache_write_tokens = 1.5",
        "cost = 'secret'",
        "cost = -0.5",
        "cost = 9e999",
        "cost = 1e300",
        "cost_source = 'secret'",
        "session_id = x'00'",
        "created_timestamp = 'secret'",
    ],
)
def test_a_row_of_another_form_is_not_understood_and_the_others_are_read(values: str, tmp_path: Path) -> None:
    path = _changed(tmp_path, f"UPDATE usage_ledger SET {values} WHERE id = 5")
    found = _read(path)
    [other] = [record for record in found if isinstance(record, NotUnderstood)]
    assert other.version == "schema 16"
    assert "secret" not in other.reason
    assert len([call for call in found if isinstance(call, Call)]) == 10


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "ALTER TABLE usage_ledger RENAME COLUMN cost TO price",
            NotUnderstood("expected column cost of table usage_ledger", "schema 16"),
        ),
        ("ALTER TABLE sessions RENAME TO session", NotUnderstood("expected table sessions", "schema 16")),
        ("ALTER TABLE usage_ledger RENAME TO calls", NotUnderstood("expected table usage_ledger", "schema 16")),
    ],
    ids=["no cost", "no sessions", "no calls"],
)
def test_another_schema_is_not_understood_once(change: str, expected: NotUnderstood, tmp_path: Path) -> None:
    assert _read(_changed(tmp_path, change)) == [expected]


def test_a_schema_without_a_number_has_no_version(tmp_path: Path) -> None:
    path = _changed(tmp_path, "DROP TABLE schema_version")
    _run(path, "DROP TABLE usage_ledger")
    assert _read(path) == [NotUnderstood("expected table usage_ledger")]


def test_it_is_found_where_the_environment_says(tmp_path: Path) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    root = {"GOOSE_PATH_ROOT": str(tmp_path / "root")}
    places = {
        ".local/share/goose/sessions/sessions.db": {},
        "data/goose/sessions/sessions.db": data,
        "root/data/sessions/sessions.db": data | root,
    }
    for place, environ in places.items():
        assert list(goose.files(tmp_path, environ)) == []
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
        assert list(goose.files(tmp_path, environ)) == [tmp_path / place]


def _with_thinking_in_output(call: Served) -> Served:
    usage = call.usage
    inside = Usage(usage.input, usage.cached_read, usage.cached_write, usage.completion)
    return Served(call.session, call.kind, call.model, inside)


def _changed(tmp_path: Path, statement: str) -> Path:
    path = tmp_path / "changed.db"
    path.write_bytes((NEWEST / "fork-and-resume.db").read_bytes())
    _run(path, statement)
    return path


def _run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)


def _read(path: Path) -> list[Call | NotUnderstood]:
    with closing(sqlite3.connect(path)) as database:
        return list(goose.read(database))
