"""The book of OpenCode and of Kilo against what the model server told it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.books import Call, NotUnderstood, kilo, opencode
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.books.served import DATABASES, Served, calls, family, served

RECORDINGS = sorted([*DATABASES.glob("opencode-*/*.db"), *DATABASES.glob("kilo-*/*.db")])
DOUBLED = DATABASES / "opencode-1.2.4" / "fork.db"
FORK = DATABASES / "opencode-1.18.33" / "fork-and-resume.db"
# Nano-units a token, as the recordings' configuration has them: of input, cache read, cache write, output.
PRICES = {"loopback/mock-large": (3000, 300, 0, 15000), "anth/mock-large": (3000, 300, 3750, 15000)}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_its_calls_are_those_that_were_served_session_by_session(recording: Path, tmp_path: Path) -> None:
    found = calls(recording, opencode.read, tmp_path)
    as_served = [Served(family(call), call.kind, str(call.model).partition("/")[2], call.usage) for call in found]
    assert sorted(as_served, key=repr) == sorted(served(recording), key=repr)
    assert as_served


@pytest.mark.parametrize(
    "recording",
    [path for path in RECORDINGS if path != DOUBLED],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_its_cost_is_that_of_the_tokens_at_the_configured_prices(recording: Path, tmp_path: Path) -> None:
    for call in calls(recording, opencode.read, tmp_path):
        assert call.cost == Money(_price(str(call.model), call.usage), "USD")


def test_a_cost_that_has_thinking_twice_is_unknown(tmp_path: Path) -> None:
    assert {call.cost for call in calls(DOUBLED, opencode.read, tmp_path)} == {None}


def test_the_copies_in_a_fork_are_calls_of_the_session_that_made_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(FORK)) as database:
        rows = [json.loads(data) for (data,) in database.execute("SELECT data FROM message")]
    found = calls(FORK, opencode.read, tmp_path)
    assert len([row for row in rows if row["role"] == "assistant"]) == len(found) + 3
    assert len({call.session for call in found}) == 4


def test_the_copies_in_a_fork_are_found_where_the_first_session_was_deleted(tmp_path: Path) -> None:
    before = calls(FORK, opencode.read, tmp_path)
    first, fork = before[0].session, before[-1].session
    path = _changed(FORK, tmp_path / "deleted.db", "DELETE FROM message WHERE session_id = ?", first)
    found = {call.id: call.session for call in _read(path) if isinstance(call, Call)}
    copied = [call.id for call in before[:3]]
    assert [found[name] for name in copied] == [fork] * 3


def test_a_call_has_when_it_ended_its_directory_and_the_version_that_began_the_session(tmp_path: Path) -> None:
    found = calls(DATABASES / "opencode-1.18.33" / "tools.db", opencode.read, tmp_path)
    assert {(call.cwd, call.version) for call in found} == {("/home/dev/demo", "1.18.33")}
    assert sorted(call.at for call in found) == [call.at for call in found]
    assert found[0].at == 1795822372818 * 10**6


TOKENS = {"input": 10, "output": 9, "reasoning": 4, "cache": {"read": 2, "write": 1}}
WITH_TOTAL = TOKENS | {"total": 26}


@pytest.mark.parametrize(
    ("total", "usage"), [(26, Usage(10, 2, 1, 9, 4)), (22, Usage(10, 2, 1, 5, 4))], ids=["beside", "inside"]
)
def test_a_total_says_whether_thinking_is_inside_the_output(total: int, usage: Usage, tmp_path: Path) -> None:
    [call] = _read(_with_message(tmp_path, tokens=TOKENS | {"total": total}))
    assert isinstance(call, Call)
    assert call.usage == usage


def test_without_a_total_and_without_thinking_the_counters_are_what_they_are(tmp_path: Path) -> None:
    [call] = _read(_with_message(tmp_path, tokens=TOKENS | {"reasoning": 0}))
    assert isinstance(call, Call)
    assert call.usage == Usage(10, 2, 1, 9)


def test_a_call_whose_tools_still_run_is_the_same_call_once_they_have_ended(tmp_path: Path) -> None:
    [running] = _read(_with_message(tmp_path, time={"created": 1000}))
    [ended] = _read(_with_message(tmp_path, time={"created": 1000, "completed": 2000}))
    assert isinstance(running, Call)
    assert isinstance(ended, Call)
    assert (running.id, running.at, ended.at) == (ended.id, 10**9, 2 * 10**9)


def test_a_cost_of_zero_is_unknown(tmp_path: Path) -> None:
    [call] = _read(_with_message(tmp_path, cost=0))
    assert isinstance(call, Call)
    assert call.cost is None


NOTHING = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


@pytest.mark.parametrize(
    "message",
    [
        {"error": {"name": "MessageAbortedError"}, "finish": None, "tokens": None},
        {"time": {"created": 1}, "finish": None, "tokens": None},
        {"time": {"created": 1}, "tokens": None},  # its part comes a moment later
        {"time": {"created": 1, "completed": 2}, "tokens": None},  # older than its session, and its part comes later
        {"role": "user"},
    ],
    ids=["cut short", "running", "ending", "being copied", "of the user"],
)
def test_a_message_without_usage_is_no_call(message: dict[str, Any], tmp_path: Path) -> None:
    assert _read(_with_message(tmp_path, **message)) == []


@pytest.mark.parametrize(
    "message",
    [
        {"tokens": NOTHING},
        {"tokens": TOKENS},  # no total, and thinking
        {"tokens": TOKENS | {"total": 7}},
        {"tokens": {"input": 1}},
        {"tokens": TOKENS | {"input": -1, "total": 20}},
        {"tokens": TOKENS | {"input": "secret", "total": 20}},
        {"tokens": None},  # no such part
        {"time": {"created": "secret"}},
        {"cost": "secret"},
        {"cost": 1e300},
        {"cost": -1},
        {"modelID": None},
        {"role": None},
        {"role": ["secret"]},
    ],
    ids=lambda message: str(message)[:60],
)
def test_a_message_of_another_form_is_not_understood_and_tells_nothing(message: dict[str, Any], tmp_path: Path) -> None:
    [found] = _read(_with_message(tmp_path, **message))
    assert isinstance(found, NotUnderstood)
    assert found.version == "1.18.33"
    assert found.reason.startswith(("expected ", "a message of another form: "))
    assert "secret" not in found.reason


def test_values_of_another_type_are_unknown_or_not_understood(tmp_path: Path) -> None:
    path = _with_message(tmp_path)
    _run(path, "UPDATE session SET version = x'00', directory = x'01', parent_id = x'ff'")
    [call] = _read(path)
    assert isinstance(call, Call)
    assert (call.version, call.cwd, call.parent) == (None, None, None)
    _run(path, "UPDATE message SET session_id = x'00'")
    assert _read(path) == [NotUnderstood("expected a session")]


def test_what_is_nested_deeply_spoils_no_other_message(tmp_path: Path) -> None:
    path = _with_message(tmp_path)
    deep = '{"role": "assistant", "time": {"secret": ' + "[" * 1500 + "]" * 1500 + "}}"
    _run(path, "INSERT INTO message VALUES ('msg_2', 'ses_1', 1, 1, ?)", deep)
    call, other = _read(path)
    assert isinstance(call, Call)
    assert isinstance(other, NotUnderstood)


def test_a_message_of_two_steps_is_two_calls(tmp_path: Path) -> None:
    path = _with_message(tmp_path)
    part = {"type": "step-finish", "tokens": TOKENS | {"output": 10, "total": 27}, "cost": 0.5}
    _run(path, "INSERT INTO part VALUES ('prt_2', 'msg_1', 'ses_1', 1, 1, ?)", json.dumps(part))
    found = [(call.usage.output, call.cost) for call in _read(path) if isinstance(call, Call)]
    assert found == [(9, Money.of("0.008136", "USD")), (10, Money.of("0.5", "USD"))]


def test_a_message_that_is_no_json_is_not_understood_and_the_others_are_read(tmp_path: Path) -> None:
    path = _with_message(tmp_path)
    _run(path, "INSERT INTO message VALUES ('msg_2', 'ses_1', 1, 1, '{\"role\": \"assistant\", secret')")
    call, other = _read(path)
    assert isinstance(call, Call)
    assert other == NotUnderstood("expected JSON in column data of table message", "1.18.33")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("DROP TABLE part", NotUnderstood("expected table part", "1.18.33")),
        ("ALTER TABLE message RENAME TO turn", NotUnderstood("expected table message", "1.18.33")),
        (
            "ALTER TABLE message RENAME COLUMN data TO body",
            NotUnderstood("expected column data of table message", "1.18.33"),
        ),
        (
            "ALTER TABLE session RENAME COLUMN parent_id TO parent",
            NotUnderstood("expected column parent_id of table session", "1.18.33"),
        ),
        (
            "ALTER TABLE session RENAME COLUMN version TO release",
            NotUnderstood("expected column version of table session", None),
        ),
    ],
    ids=["no parts", "no messages", "no data", "no parent", "no version"],
)
def test_another_schema_is_not_understood_once(change: str, expected: NotUnderstood, tmp_path: Path) -> None:
    path = _changed(FORK, tmp_path / "changed.db", change)
    assert _read(path) == [expected]


def test_it_is_found_in_its_data_directory_for_each_release_channel(tmp_path: Path) -> None:
    directory = tmp_path / ".local/share/opencode"
    directory.mkdir(parents=True)
    for name in ("opencode.db", "opencode-dev.db", "opencode.db-wal", "other.db"):
        (directory / name).touch()
    assert list(opencode.files(tmp_path, {})) == [directory / "opencode-dev.db", directory / "opencode.db"]


def test_kilo_has_a_directory_of_its_own_and_may_have_an_older_database_by_the_other_name(tmp_path: Path) -> None:
    directory = tmp_path / ".local/share/kilo"
    directory.mkdir(parents=True)
    for name in ("kilo.db", "opencode-dev.db"):
        (directory / name).touch()
    assert list(kilo.files(tmp_path, {})) == [directory / "kilo.db", directory / "opencode-dev.db"]
    assert list(kilo.files(tmp_path, {"KILO_DB": "other.db"})) == [directory / "other.db"]


def test_the_environment_says_where_else_it_is(tmp_path: Path) -> None:
    (tmp_path / "data/opencode").mkdir(parents=True)
    (tmp_path / "data/opencode/opencode.db").touch()
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    assert list(opencode.files(Path("/nowhere"), data)) == [tmp_path / "data/opencode/opencode.db"]
    assert list(opencode.files(Path("/nowhere"), data | {"OPENCODE_DB": "a.db"})) == [tmp_path / "data/opencode/a.db"]
    assert list(opencode.files(Path("/nowhere"), data | {"OPENCODE_DB": "/b/a.db"})) == [Path("/b/a.db")]


def _price(model: str, usage: Usage) -> int:
    fresh, read, write, output = PRICES[model]
    return (
        usage.input * fresh
        + usage.cached_read * read
        + usage.cached_write * write
        + (usage.output + usage.thought) * output
    )


def _with_message(tmp_path: Path, tokens: Any = WITH_TOTAL, cost: Any = 0.008136, **different: Any) -> Path:
    """A database of the real schema with one message of the assistant; without tokens it has no end."""
    message = {
        "role": "assistant",
        "time": {"created": 1795822968332, "completed": 1795822972818},
        "providerID": "loopback",
        "modelID": "mock-large",
        "finish": "stop",
    } | different
    path = _changed(FORK, tmp_path / "made.db", "DELETE FROM message")
    _run(path, "DELETE FROM part")
    _run(path, "UPDATE session SET id = 'ses_1', parent_id = NULL WHERE id = (SELECT min(id) FROM session)")
    _run(path, "INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, ?)", json.dumps(message))
    parts: list[dict[str, Any]] = [{"type": "text", "text": "hello"}]
    if tokens is not None:
        parts.append({"type": "step-finish", "tokens": tokens, "cost": cost})
    for number, part in enumerate(parts):
        _run(path, "INSERT INTO part VALUES (?, 'msg_1', 'ses_1', 1, 1, ?)", f"prt_{number}", json.dumps(part))
    return path


def _changed(recording: Path, path: Path, statement: str, *values: str) -> Path:
    path.write_bytes(recording.read_bytes())
    _run(path, statement, *values)
    return path


def _run(path: Path, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement, values)


def _read(path: Path) -> list[Call | NotUnderstood]:
    with closing(sqlite3.connect(path)) as database:
        return list(opencode.read(database))
