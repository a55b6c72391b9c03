"""Books into a ledger: each call once, with the tokens that were served, and nothing of what was relayed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.usage import Usage
from acp_proxy.importing.agents import AGENTS
from acp_proxy.importing.shelves import SHELVES
from acp_proxy.ledger import Query, Row, open_reader
from acp_proxy.ledger.journal.writer import open_journal
from harness.rows import ALICE, MINUTE, row
from tests.books.readers import READERS
from tests.books.recorded import recordings, served
from tests.importing.homes import Home
from tests.ledger.warned import Warnings

SHELF = {"claude": "claude-code", "gemini": "gemini-cli", "qwen": "qwen-code"}
RECORDINGS = [(agent, recording.name) for agent in READERS for recording in recordings(agent)]
RELAYED = replace(ALICE, organisation="default", user="alice")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home", tmp_path / "ledger.db")


def _first_call(home: Home, session: str | None = None) -> Row:
    rows = sorted(home.rows(), key=lambda row: row.entry.started_at)
    return next(row for row in rows if session in (None, row.entry.session))


def test_the_command_line_knows_each_shelf() -> None:
    assert tuple(SHELVES) == AGENTS


@pytest.mark.parametrize("case", RECORDINGS, ids=" ".join)
def test_the_ledger_has_what_was_served_session_by_session(home: Home, case: tuple[str, str]) -> None:
    agent, recording = case
    home.put(agent, recording)
    (recorded,) = [path for path in recordings(agent) if path.name == recording]
    expected = Counter(
        (call.session, call.model, call.usage)
        for call in served(recorded)
        if call.what not in READERS[agent].missing and call.usage is not None
    )
    (tally,) = home.imports(SHELF.get(agent, agent)).values()
    found = Counter((row.entry.session, row.entry.model, row.entry.usage) for row in home.rows())
    assert found == expected
    assert (tally.calls, tally.usage) == (expected.total(), sum((key[2] for key in expected.elements()), Usage()))


@pytest.mark.parametrize("case", RECORDINGS, ids=" ".join)
def test_an_import_again_and_one_on_another_machine_add_nothing(
    home: Home, tmp_path: Path, case: tuple[str, str]
) -> None:
    agent, recording = case
    home.put(agent, recording)
    first = home.imports()
    again = home.imports()
    shutil.copytree(home.path, tmp_path / "other", ignore=shutil.ignore_patterns(".local"))
    elsewhere = Home(tmp_path / "other", home.ledger).imports()
    calls = sum(tally.calls for tally in first.values())
    assert calls
    assert sum(tally.calls for tally in (*again.values(), *elsewhere.values())) == 0
    assert sum(tally.unchanged for tally in again.values()) == sum(tally.files for tally in again.values())
    assert sum(tally.known for tally in elsewhere.values()) == calls
    assert len(home.rows()) == calls


def test_a_fork_adds_only_its_own_calls(home: Home) -> None:
    home.put("claude", "forked")
    tally = home.imports()["claude-code"]
    assert len({row.entry.id for row in home.rows()}) == tally.calls


def test_calls_of_a_relayed_turn_are_left_out(home: Home) -> None:
    home.put("claude", "tools")
    all_of_it = home.imports(dry_run=True)["claude-code"].calls
    assert home.rows() == []
    home.imports()
    call = _first_call(home)
    home.ledger.unlink()
    home.append(row(origin=RELAYED, session=call.entry.session, at=call.entry.started_at - MINUTE // 2))
    tally = home.imports()["claude-code"]
    assert tally.relayed > 0
    assert tally.calls + tally.relayed == all_of_it
    assert all(
        not _within(each, call.entry.started_at) for each in home.rows() if each.entry.session == call.entry.session
    )


def _within(row: Row, at: int) -> bool:
    return at - MINUTE // 2 <= row.entry.started_at <= at + MINUTE // 2


def test_calls_of_a_turn_that_a_relay_has_not_ended_are_left_out(home: Home) -> None:
    home.put("claude", "tools")
    home.imports()
    call = _first_call(home)
    home.ledger.unlink()
    home.append()  # an empty ledger
    running = row(origin=RELAYED, session=call.entry.session, at=call.entry.started_at - 1)
    home.journals.mkdir(parents=True, exist_ok=True)
    journal = open_journal([home.journals], home.url, Warnings())
    slot = journal.write_open(running)
    assert slot is not None
    tally = home.imports()["claude-code"]
    assert tally.relayed > 0
    assert [each for each in home.rows() if each.entry.session == call.entry.session] == []
    journal.done(slot)
    journal.close()


def test_calls_between_two_relayed_turns_are_imported(home: Home) -> None:
    """The session was gone on with in a terminal."""
    home.put("claude", "tools")
    home.imports()
    call = _first_call(home)
    home.ledger.unlink()
    session, at = call.entry.session, call.entry.started_at
    home.append(
        row(origin=RELAYED, session=session, at=at - 10 * MINUTE),
        row(origin=RELAYED, session=session, at=at + 10 * MINUTE),
    )
    assert home.imports()["claude-code"].relayed == 0


def test_what_was_used_between_turns_and_metered_then_is_not_imported(home: Home) -> None:
    home.put("claude", "tools")
    home.imports()
    call = _first_call(home)
    home.ledger.unlink()
    session, at = call.entry.session, call.entry.started_at
    home.append(
        row(origin=RELAYED, session=session, at=at - 10 * MINUTE),
        row(origin=RELAYED, session=session, at=at + 10 * MINUTE, kind="autonomous"),
    )
    assert home.imports()["claude-code"].relayed > 0


def test_a_call_that_the_agent_may_still_write_waits(home: Home) -> None:
    home.put("gemini", recordings("gemini")[0].name)
    home.imports()
    last = max(row.entry.started_at for row in home.rows())
    home.ledger.unlink()
    early = home.imports(now=last + 1)["gemini-cli"]
    late = home.imports()["gemini-cli"]
    assert early.waiting > 0
    assert late.calls == early.waiting
    assert late.known == early.calls


def test_since_takes_only_later_calls_and_another_import_the_rest(home: Home) -> None:
    home.put("codex", "tools")
    every = home.imports(dry_run=True)["codex"].calls
    home.imports()
    middle = sorted(row.entry.started_at for row in home.rows())[every // 2]
    home.ledger.unlink()
    part = home.imports(since=middle)["codex"].calls
    assert 0 < part < every
    assert home.imports()["codex"].calls == every - part


def test_another_ledger_gets_all_of_it_though_the_files_were_read_before(home: Home) -> None:
    home.put("claude", "tools")
    first = home.imports()["claude-code"].calls
    home.ledger.unlink()
    assert home.imports()["claude-code"].calls == first


def test_a_file_that_grows_is_read_again_and_only_its_new_calls_are_added(home: Home) -> None:
    home.put("claude", "tools")
    (path,) = [path for path in SHELVES["claude-code"].files(home.path, home.environ) if path.stat().st_size][:1]
    whole = path.read_bytes()
    path.chmod(0o600)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    first = home.imports()["claude-code"]
    path.write_bytes(whole)
    second = home.imports()["claude-code"]
    assert (first.calls, second.known) == (second.known, first.calls)
    assert second.calls > 0


def test_damage_is_counted_and_the_rest_is_imported(home: Home) -> None:
    home.put("claude", "tools")
    every = home.imports(dry_run=True)["claude-code"].calls
    (path,) = [path for path in SHELVES["claude-code"].files(home.path, home.environ) if path.stat().st_size][:1]
    path.chmod(0o600)
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n{ torn\n" + rest)
    tally = home.imports()["claude-code"]
    assert tally.calls == every
    assert tally.not_understood.total() == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(home: Home) -> None:
    home.put("claude", "tools")
    paths = list(SHELVES["claude-code"].files(home.path, home.environ))
    for path in paths:
        os.chown(path, 65534, 65534)
    tally = home.imports()["claude-code"]
    assert (tally.calls, dict(tally.not_understood)) == (0, {"it belongs to another user": len(paths)})


def test_a_database_that_the_agent_has_open_is_read_and_keeps_its_files(home: Home, tmp_path: Path) -> None:
    source = Path(__file__).parent.parent / "books/databases/goose-1.52.0/tools.db"
    place = home.path / ".local/share/goose/sessions"
    place.mkdir(parents=True)
    shutil.copy(source, place / "sessions.db")
    with sqlite3.connect(place / "sessions.db") as agent:
        agent.execute("PRAGMA journal_mode = WAL")
        before = sorted(path.name for path in place.iterdir())
        tally = home.imports("goose")["goose"]
        assert sorted(path.name for path in place.iterdir()) == before
    agent.close()
    told = [json.loads(line) for line in source.with_name("tools.served.jsonl").read_text().splitlines()]
    assert 0 < tally.calls <= len(told)


def test_the_turns_of_an_imported_session_are_shown_in_the_order_of_time(home: Home) -> None:
    home.put("claude", "tools")
    home.imports()
    session = _first_call(home).entry.session
    with closing(open_reader(home.url)) as reader:
        (info,) = [info for info in reader.sessions(Query()) if info.session == session]
        last = [row.entry.started_at for row in reader.recent.rows(info, 3)]
        contexts = [context.at for context in reader.recent.contexts(info)]
    times = sorted(row.entry.started_at for row in home.rows() if row.entry.session == session)
    assert len(times) > 3
    assert (last, contexts) == (times[-3:], times)


def test_no_content_of_a_session_comes_into_the_ledger(home: Home) -> None:
    for agent, recording in RECORDINGS:
        home.put(agent, recording)
    home.imports()
    data = b"".join(path.read_bytes() for path in home.ledger.parent.glob("ledger.db*"))
    assert [word for word in (b"please", b"banana", b"mock model", b"notes.txt") if word in data] == []
