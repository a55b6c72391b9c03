"""What stands in homes beside sound books: an import counts it, reads the rest, and stays small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.text.times import SECOND
from tests.importing.homes import Home

NOON = 1_795_262_400 * SECOND  # 2026-11-21T12:00:00Z
LIMIT = 400_000  # KB of address space, of which the interpreter takes the most
MB = 2**20


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home/.claude/projects/-work").mkdir(parents=True)
    return Home(tmp_path / "home", tmp_path / "ledger.db")


def call(name: str, at: str = "2026-11-21T11:00:00.000Z", **fields: object) -> bytes:
    message = {"id": name, "model": "claude-opus-5-5", "usage": {"input_tokens": 5, "output_tokens": 3}}
    known = {"type": "assistant", "message": message, "sessionId": "s1", "timestamp": at, "version": "2.2.0"}
    return json.dumps(known | fields, separators=(",", ":")).encode() + b"\n"


def book(home: Home, name: str = "s1") -> Path:
    return home.path / f".claude/projects/-work/{name}.jsonl"


def with_hole(path: Path, before: bytes, size: int, after: bytes) -> None:
    """A file with zeros in it, for which no disk is needed."""
    with path.open("wb") as file:
        file.write(before)
        file.seek(size, os.SEEK_CUR)
        file.write(after)


def imported_in_little_memory(home: Home) -> dict[str, object]:
    command = f'ulimit -v {LIMIT}; exec "$0" -m acp_proxy --ledger "$1" import claude-code --json'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, home.url],
        env=home.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (agent,) = json.loads(done.stdout)["agents"]
    assert isinstance(agent, dict)
    return agent


def test_a_line_of_50_mb_is_passed_over_where_it_is_no_call_and_counted_where_it_should_be_one(home: Home) -> None:
    with_hole(book(home), call("one") + b'{"type":"user","content":"', 50 * MB, b'"}\n' + call("two"))
    with_hole(book(home, "s2"), call("three") + b'{"type":"assistant","x":"', 50 * MB, b'"}\n' + call("four"))
    agent = imported_in_little_memory(home)
    assert agent["calls"] == 4
    assert agent["not_understood"] == {"a line of JSON (2.2.0)": 1}


def test_of_a_file_of_2_gb_with_a_damaged_middle_both_ends_are_imported(home: Home) -> None:
    with_hole(book(home), call("one"), 2048 * MB, b"\n" + call("two"))
    agent = imported_in_little_memory(home)
    assert agent["calls"] == 2
    assert list(agent["not_understood"]) == ["a line of JSON (2.2.0)"]  # type: ignore[call-overload]


def test_half_a_last_line_is_read_once_it_is_whole(home: Home) -> None:
    whole = call("two")
    book(home).write_bytes(call("one") + whole[:-30])
    assert (home.imports()["claude-code"].calls, len(home.rows())) == (1, 1)
    book(home).write_bytes(call("one") + whole)
    tally = home.imports()["claude-code"]
    assert (tally.calls, tally.known, tally.not_understood.total()) == (1, 1, 0)


def test_a_format_of_next_month_is_counted_with_its_version_and_the_rest_is_imported(home: Home) -> None:
    newer = call("two", message={"id": "two", "model": "m", "usage": {"tokens": {"in": 5}}}, version="3.0.0")
    book(home).write_bytes(call("one") + newer + call("three"))
    tally = home.imports()["claude-code"]
    assert tally.calls == 2
    ((reason, count),) = tally.not_understood.items()
    assert reason.endswith("(3.0.0)")
    assert count == 1


def test_a_clock_that_jumps_keeps_no_call_out_for_good_and_none_comes_twice(home: Home) -> None:
    """Into the future, and back: that call waits until then. One of before 1970 is nothing that can be kept."""
    jumped = [call("one"), call("two", "2026-11-21T13:00:00.000Z"), call("three", "2026-11-21T10:00:00.000Z")]
    book(home).write_bytes(b"".join(jumped) + call("four", "1969-01-01T00:00:00.000Z"))
    first = home.imports(now=NOON)["claude-code"]
    assert (first.calls, first.waiting, first.not_understood.total()) == (2, 1, 1)
    later = home.imports(now=NOON + 2 * 3600 * SECOND)["claude-code"]
    assert (later.calls, later.known, later.waiting) == (1, 2, 0)
    again = home.imports(now=NOON + 2 * 3600 * SECOND)["claude-code"]
    assert (again.calls, again.unchanged) == (0, 1)


def test_a_home_that_was_copied_and_one_home_of_two_machines_add_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    book(home).write_bytes(call("one") + call("two"))
    assert home.imports()["claude-code"].calls == 2
    copied = home.path / ".config/claude/projects/-copy"
    copied.mkdir(parents=True)
    (copied / "s1.jsonl").write_bytes(book(home).read_bytes())
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    seen = home.path / ".local/state/acp-proxy/books"
    for remembered in seen.iterdir():
        remembered.unlink()
    tally = home.imports()["claude-code"]
    assert (tally.files, tally.calls, tally.known) == (2, 0, 2)


def test_very_many_files_are_each_looked_at_once(home: Home) -> None:
    many = 10_000
    book(home).write_bytes(call("one"))
    for number in range(1, many):
        os.link(book(home), book(home, f"copy-{number}"))
    first = home.imports()["claude-code"]
    assert (first.files, first.calls) == (many, 1)
    again = home.imports()["claude-code"]
    assert (again.calls, again.unchanged) == (0, many)
