"""What is found without reading all of a ledger: a user's last turn, and sessions by what they are called."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import Entry, Origin
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.session_keys import TABLES, session_key
from tests.ledger.rows import ALICE, BOB, MINUTE, NOON, line, row

HOUR = 60 * MINUTE


def last_turn_of(ledger: BudgetLedger, user: str) -> str | None:
    found = ledger.recent.last_turn("default", user)
    return found.entry.id if found else None


def test_a_users_last_turn_is_the_one_that_began_last(ledger: BudgetLedger) -> None:
    rows = [row(session=f"s{number}", at=NOON + number * HOUR) for number in range(30)]
    ledger.append([*rows, row(session="later", origin=BOB, at=NOON + 40 * HOUR)])
    assert last_turn_of(ledger, "alice") == rows[-1].entry.id
    assert last_turn_of(ledger, "nobody") is None


def test_a_long_turn_that_ends_last_did_not_begin_last(ledger: BudgetLedger) -> None:
    entry = Entry("long", "long", "turn", NOON, NOON + 5 * HOUR, "end_turn", (line(),), "agent", "computed")
    long = Row(ALICE, entry)
    short = row(session="short", at=NOON + HOUR)
    ledger.append([long, short])
    assert last_turn_of(ledger, "alice") == short.entry.id


def test_rows_of_other_kinds_are_no_turns(ledger: BudgetLedger) -> None:
    turn = row(session="s1")
    others = [row(session="s1", at=NOON + HOUR, kind="compaction"), row(session="s2", at=NOON + HOUR, kind="side")]
    ledger.append([turn, *others])
    assert last_turn_of(ledger, "alice") == turn.entry.id


def test_the_last_turn_is_read_as_every_row_is(ledger: BudgetLedger) -> None:
    ledger.append([row()])
    assert ledger.recent.last_turn("default", "alice") == next(iter(ledger.rows(Query())))


def test_a_session_is_found_by_its_id_whoever_has_one_of_it(ledger: BudgetLedger) -> None:
    elsewhere = Origin("another", "alice", "core", "web", "laptop", ALICE.agent, None, None)
    ledger.append([row(session="same", origin=origin) for origin in (ALICE, BOB, elsewhere)])
    ledger.append([row(session="other")])
    named = [(found.origin.organisation, found.origin.user) for found in ledger.recent.named("same")]
    assert named == [("another", "alice"), ("default", "alice"), ("default", "bob")]
    assert not list(ledger.recent.named("none"))


def test_sessions_are_found_by_the_beginning_of_their_keys(ledger: BudgetLedger) -> None:
    origins = (ALICE, BOB, replace(ALICE, organisation="another"))
    ledger.append([row(session=f"s{number % 7}", origin=origin) for number in range(20) for origin in origins])
    all_of_them = list(ledger.recent.keyed(""))
    assert len(all_of_them) == 21
    for found in all_of_them:
        key = session_key(found.origin, found.session)
        alike = [one for one in all_of_them if session_key(one.origin, one.session)[:2] == key[:2]]
        assert set(ledger.recent.keyed(key[:2])) == set(alike)
        assert list(ledger.recent.keyed(key)) == [found]
    assert not list(ledger.recent.keyed("no key"))


def test_sessions_of_a_ledger_from_before_keys_were_kept_are_found_by_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(session=f"s{number}") for number in range(3)])
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("DROP TABLE session_key")
        connection.execute(f"PRAGMA user_version = {MIGRATIONS.index(TABLES)}")
    with closing(open_ledger(url, journals=())) as ledger:
        assert [found.session for found in ledger.recent.keyed(session_key(ALICE, "s1"))] == ["s1"]


@pytest.mark.parametrize("offset", [0, 4, -20, 23, 55, -48])
@pytest.mark.parametrize("cut", [0, 7 * MINUTE])
def test_days_begin_by_quarter_hours_before_those_of_utc(ledger: BudgetLedger, offset: int, cut: int) -> None:
    """From running totals and, where an end is no quarter hour, from rows."""
    rows = [row(at=start) for start in range(NOON - 80 * HOUR, NOON + 80 * HOUR, 3 * HOUR + 11 * MINUTE)]
    rows.append(row(at=-5 * HOUR))
    ledger.append(rows)
    since, until = NOON - 70 * HOUR + cut, NOON + 70 * HOUR + cut
    for query in (Query(), Query(since, until), Query(since, since + HOUR)):
        expected: dict[int, int] = {}
        for each in rows:
            at = each.entry.started_at
            if (query.since is None or at >= query.since) and (query.until is None or at < query.until):
                day = (at + offset * 15 * MINUTE) // (24 * HOUR)
                expected[day] = expected.get(day, 0) + 1
        name = f"day{offset:+d}" if offset else "day"
        assert {sums.key[0]: sums.rows for sums in ledger.summed(query, (name,))} == expected
