"""What is found without reading all of a ledger: a user's last turn, and sessions by what they are called."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import Query, Row, Sums, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.dialects import SQLITE
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.reading.by_session import read_costliest_sessions
from acp_proxy.ledger.reading.costliest import read_costliest
from acp_proxy.ledger.reading.recent import Recent
from acp_proxy.ledger.reading.rows import read_rows
from acp_proxy.ledger.session_keys import TABLES, session_key
from acp_proxy.report import Line, line_of_all
from acp_proxy.report.ranked import ranked_sessions
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.ledger.conftest import AND_HUB
from tests.ledger.holds import CAP, ELSEWHERE, hold
from tests.ledger.steps import undone_since

HOUR = 60 * MINUTE


def last_turn_of(ledger: BudgetLedger, user: str) -> str | None:
    found = ledger.recent.last_turn("default", user)
    return found.entry.id if found else None


@AND_HUB
def test_a_users_last_turn_is_the_one_that_began_last(ledger: BudgetLedger) -> None:
    rows = [row(session=f"s{number}", at=NOON + number * HOUR) for number in range(30)]
    ledger.append([*rows, row(session="later", origin=BOB, at=NOON + 40 * HOUR)])
    assert last_turn_of(ledger, "alice") == rows[-1].entry.id
    assert last_turn_of(ledger, "nobody") is None


def test_who_has_no_session_has_none_of_others_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row()])
    plans = list[str]()

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        plans.extend(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
        return connection.execute(sql, values).fetchall()

    with closing(sqlite3.connect(path)) as connection:
        assert Recent(read, SQLITE).last_turn("default", "nobody") is None
    assert plans
    assert [step for step in plans if "(org_id=? AND user_id=?" not in step] == []


def test_a_session_of_long_ago_is_read_without_a_look_at_later_turns(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(id="a"), row(id="b", session="s2")])
        session = next(iter(ledger.sessions(Query())))
    plans = list[str]()

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        plans.extend(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
        return connection.execute(sql, values).fetchall()

    with closing(sqlite3.connect(path)) as connection:
        recent = Recent(read, SQLITE)
        assert [found.entry.id for found in recent.rows(session, 5)] == ["a"]
        assert [context.at for context in recent.contexts(session)] == [NOON]
        assert recent.last_turn("default", "alice") is not None
    assert [step for step in plans if step.startswith("SEARCH turn ") and "turn_by_session" not in step] == []
    assert [step for step in plans if step.endswith("(org_id=?)")] == []


def test_who_has_few_of_a_teams_sessions_has_those_of_others_not_looked_through(tmp_path: Path) -> None:
    taken = []
    for others in (50, 500):
        path, steps = tmp_path / f"{others}.db", list[None]()
        moments = [NOON + number * HOUR for number in range(-others, others) if number]
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            ledger.append([row(id="a"), *(row(session=f"at {at}", origin=BOB, at=at) for at in moments)])
        with closing(sqlite3.connect(path)) as connection:
            recent = Recent(lambda sql, values: connection.execute(sql, values).fetchall(), SQLITE)
            connection.set_progress_handler(partial(steps.append, None), 1)
            last = recent.last_turn("default", "alice")
        assert last is not None
        assert last.entry.id == "a"
        taken.append(len(steps))
    assert taken[0] == pytest.approx(taken[1], rel=0.2)


@AND_HUB
def test_an_agent_is_known_by_the_versions_that_its_sessions_had_last(ledger: BudgetLedger) -> None:
    newer, nameless = replace(ALICE, agent_version="0.200.0"), replace(BOB, agent="other", agent_version=None)
    ledger.append([row(), row(session="s2"), row(origin=newer, session="s2", at=NOON + HOUR), row(origin=nameless)])
    assert sorted(ledger.recent.agents(), key=str) == [
        (ALICE.agent, "0.100.0", NOON + MINUTE),
        (ALICE.agent, "0.200.0", NOON + HOUR + MINUTE),
        ("other", None, NOON + MINUTE),
    ]


@AND_HUB
def test_the_last_sessions_are_found_by_title_user_or_project_in_any_case(ledger: BudgetLedger) -> None:
    eve = replace(ALICE, user="Ève", project=None)
    ledger.append([row(session="titled"), row(session="bobs", origin=BOB), row(session="eves", origin=eve)])
    ledger.note_session(ALICE, "titled", "Größe der Bilder", NOON)
    asked = {"GRÖSSE": ["titled"], "BoB": ["bobs"], "INFRA": ["bobs"], "Ève": ["eves"], "we": ["titled"], "%": []}
    for find, sessions in asked.items():
        assert [found.session for found in ledger.recent.sessions("default", 9, find=find)] == sessions


@AND_HUB
def test_a_long_turn_that_ends_last_did_not_begin_last(ledger: BudgetLedger) -> None:
    long = row(id="long", session="long", took=5 * HOUR)
    short = row(session="short", at=NOON + HOUR)
    ledger.append([long, short])
    assert last_turn_of(ledger, "alice") == short.entry.id


@AND_HUB
def test_rows_of_other_kinds_are_no_turns(ledger: BudgetLedger) -> None:
    turn = row(session="s1")
    others = [row(session="s1", at=NOON + HOUR, kind="compaction"), row(session="s2", at=NOON + HOUR, kind="side")]
    ledger.append([turn, *others])
    assert last_turn_of(ledger, "alice") == turn.entry.id


@AND_HUB
def test_the_last_turn_is_read_as_every_row_is(ledger: BudgetLedger) -> None:
    ledger.append([row()])
    assert ledger.recent.last_turn("default", "alice") == next(iter(ledger.rows(Query())))


@AND_HUB
def test_of_a_session_the_last_rows_are_read_in_the_order_of_time(ledger: BudgetLedger) -> None:
    rows = [row(at=NOON + number * MINUTE) for number in range(5)]
    ledger.append(rows)
    (session,) = ledger.sessions(Query())
    assert ledger.recent.rows(session, 2) == rows[-2:]
    assert ledger.recent.last_turn("default", "alice") == rows[-1]


@AND_HUB
def test_a_session_is_found_by_its_id_whoever_has_one_of_it(ledger: BudgetLedger) -> None:
    elsewhere = Origin("another", "alice", "core", "web", "laptop", ALICE.agent, None, None)
    ledger.append([row(session="same", origin=origin) for origin in (ALICE, BOB, elsewhere)])
    ledger.append([row(session="other")])
    named = [(found.origin.organisation, found.origin.user) for found in ledger.recent.named("same")]
    assert named == [("another", "alice"), ("default", "alice"), ("default", "bob")]
    assert not list(ledger.recent.named("none"))


@AND_HUB
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
        for statement in undone_since(MIGRATIONS.index(TABLES)):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {MIGRATIONS.index(TABLES)}")
    with closing(open_ledger(url, journals=())) as ledger:
        assert [found.session for found in ledger.recent.keyed(session_key(ALICE, "s1"))] == ["s1"]


@AND_HUB
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


@AND_HUB
@pytest.mark.parametrize("by", [(), ("model",), ("user", "kind")])
def test_local_days_add_up_to_what_their_quarter_hours_do(ledger: BudgetLedger, by: tuple[str, ...]) -> None:
    """Whole days, with nothing left of what is the neighbour's: no row, no currency, no line."""
    chance = Random(len(by))
    ledger.append([_any_row(chance) for _ in range(150)])
    some = Query(NOON - 60 * HOUR, NOON + 55 * HOUR + 7 * MINUTE)
    for query in (Query(), some, replace(some, where=(("team", "core"),)), Query(where=(("model", "a"),))):
        quarters = ledger.summed(query, ("quarter_hour", *by))
        for offset in (4, -20, 48, -95):
            parts: dict[tuple[object, ...], list[Sums]] = {}
            for sums in quarters:
                parts.setdefault(((int(sums.key[0] or 0) + offset) // 96, *sums.key[1:]), []).append(sums)
            days = ledger.summed(query, (f"day{offset:+d}", *by))
            assert {sums.key: _line([sums]) for sums in days} == {key: _line(parts[key]) for key in parts}


def _line(parts: list[Sums]) -> Line:
    found = line_of_all("", parts)
    return replace(found, costs=tuple(sorted(found.costs, key=lambda cost: cost.currency)))


def _any_row(chance: Random) -> Row:
    some = [line(chance.choice("ab"), chance.choice(["1.5", None]), chance.choice(["USD", "EUR"])) for _ in range(2)]
    return row(
        *some[: chance.choice([1, 1, 2])],
        origin=chance.choice([ALICE, BOB]),
        at=NOON + chance.randrange(-100, 100) * HOUR + chance.randrange(60) * MINUTE,
        kind=chance.choice(["turn", "turn", "side"]),
        usage_source=chance.choice(["agent", "partial", "none"]),
    )


@AND_HUB
def test_sessions_come_with_what_their_rows_add_up_to(ledger: BudgetLedger) -> None:
    """As they are found and added up each by itself, also when there are more than are read at once."""
    chance = Random(7)
    many = [row(session=f"many {number}", at=NOON + chance.randrange(-90, 90) * HOUR) for number in range(1100)]
    some = [_any_row(chance) for _ in range(100)]
    ledger.append([*many, *(Row(each.origin, replace(each.entry, session=chance.choice("abc"))) for each in some)])
    ledger.note_session(ALICE, "a", "Fix the Tests", NOON)
    filters = ((), (("team", None),), (("model", "a"),), (("title", "tests"),), (("user", "bob"), ("kind", "turn")))
    for where in filters:
        for query in (Query(where=where), Query(NOON - 60 * HOUR, NOON + 50 * HOUR, where), Query(NOON, None, where)):
            found = list(ledger.session_sums(query))
            sessions = {_by(session.origin, session.session): session for session in ledger.sessions(query)}
            sums = {each.key: each for each in ledger.summed(query, ("user", "agent", "session"))}
            assert {_by(session.origin, session.session): session for session, _ in found} == sessions
            assert {_by(session.origin, session.session): each for session, each in found} == {
                key: replace(each, key=()) for key, each in sums.items()
            }
            assert len(found) == len(sessions)


@AND_HUB
def test_the_costliest_sessions_are_the_first_of_all_in_the_order_of_a_report(ledger: BudgetLedger) -> None:
    chance = Random(11)
    alike = [row(session=f"alike {number}") for number in range(600)]
    huge = [row(line(cost="9000000000"), session="huge") for _ in range(2)]  # beyond 64 bits
    some = [_any_row(chance) for _ in range(100)]
    other = replace(ALICE, organisation="another")
    ledger.append([*alike, *huge, row(origin=other), row(line(cost=None, input=9999), session="huge", origin=other)])
    ledger.append([Row(each.origin, replace(each.entry, session=chance.choice("abc"))) for each in some])
    ledger.note_session(ALICE, "a", "Fix the Tests", NOON)
    filters = ((("team", None),), (("model", "a"),), (("title", "tests"),), (("organisation", "another"),))
    for query in (Query(), Query(NOON + HOUR), *(Query(where=where) for where in filters)):
        every = list(ranked_sessions(ledger.session_sums(query), ("USD", "EUR"), lambda *one: one))
        for most in (3, 9999):
            assert ledger.costliest_sessions(query, ("USD", "EUR"), most) == (every[:most], len(every))
    for currencies in (("EUR",), ()):
        first = next(iter(ranked_sessions(ledger.session_sums(Query()), currencies, lambda *one: one)))
        assert ledger.costliest_sessions(Query(), currencies, 1)[0] == [first]


@AND_HUB
def test_rows_of_sessions_with_a_title_come_in_their_order_out_of_more_than_a_chunk(ledger: BudgetLedger) -> None:
    ledger.append([row(session="ab"[number % 2], at=NOON + number, id=f"{number:05}") for number in range(4100)])
    ledger.note_session(ALICE, "a", "Fix the Tests", NOON)
    titled = Query(where=(("title", "TESTS"),))
    ids = [f"{number:05}" for number in range(0, 4100, 2)]
    assert [found.entry.id for found in ledger.rows(titled)] == ids
    assert [found.entry.id for found in ledger.costliest(titled, ("USD",), 2100)] == ids
    assert len(list(ledger.rows(Query(where=(("title", None),))))) == 2050


@AND_HUB
def test_rows_of_a_title_that_many_sessions_have_come_in_their_order(ledger: BudgetLedger) -> None:
    titles = ("Fix the Tests", "Fix the tests again", None)
    ledger.append(
        [row(session=f"s{n}", at=NOON - n, id=f"{n:05}", state=SessionState(title=titles[n % 3])) for n in range(900)]
    )
    ids = [f"{number:05}" for number in reversed(range(900)) if number % 3 < 2]
    assert [found.entry.id for found in ledger.rows(Query(where=(("title", "TESTS"),)))] == ids
    assert [found.entry.id for found in ledger.rows(Query(where=(("title", "again"),)))] == ids[::2]


@pytest.mark.parametrize("way", ["costliest", "all"])
def test_turns_of_a_title_that_few_sessions_have_are_looked_for_in_these_alone(tmp_path: Path, way: str) -> None:
    path, titled = tmp_path / "ledger.db", Query(where=(("title", "tests"),))
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(id="a"), row(session="s2")])
        ledger.note_session(ALICE, "s1", "Fix the Tests", NOON)
    plans = list[str]()

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        plans.extend(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
        return connection.execute(sql, values).fetchall()

    with closing(sqlite3.connect(path)) as connection:
        (found,) = (
            read_rows(read, titled, SQLITE) if way == "all" else read_costliest(read, titled, ("USD",), 5, SQLITE)
        )
    assert found.entry.id == "a"
    assert [step for step in plans if "turn_by_session" in step]
    assert [step for step in plans if "started_at" in step] == []


def test_a_turn_of_unknown_cost_comes_after_one_that_cost_nothing_whosever_it_is(ledger: BudgetLedger) -> None:
    unknown = row(line(cost=None, input=1000))
    free = row(line(cost="0", input=1), origin=replace(ALICE, organisation="another"))
    ledger.append([unknown, free])
    assert [found.entry.id for found in ledger.costliest(Query(), ("USD",), 2)] == [free.entry.id, unknown.entry.id]


def test_who_is_given_another_name_while_the_costliest_are_looked_for_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(id="a"), row(id="b", origin=BOB)])

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        found = connection.execute(sql, values).fetchall()
        if "VALUES" in sql:  # they were chosen, and are read
            for table in ("turn", "session"):
                connection.execute(f"UPDATE {table} SET user_id = 'former-1' WHERE user_id = 'bob'")
        return found

    with closing(sqlite3.connect(path)) as connection:
        found, count = read_costliest_sessions(read, Query(), ("USD",), 5, SQLITE)
    assert ([session.origin.user for session, _ in found], count) == (["alice"], 2)


def test_a_row_that_is_taken_away_while_the_costliest_are_looked_for_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(id="a"), row(id="b"), row(id="c")])

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        found = connection.execute(sql, values).fetchall()
        if "GROUP BY" in sql:  # they are chosen, and not read yet
            connection.execute("DELETE FROM turn WHERE id = 'b'")
        return found

    with closing(sqlite3.connect(path)) as connection:
        found = read_costliest(read, Query(), ("USD",), 5, SQLITE)
    assert [each.entry.id for each in found] == ["a", "c"]


@AND_HUB
def test_rows_are_counted_by_four_weeks_and_by_the_days_in_them(ledger: BudgetLedger) -> None:
    day, four_weeks = 24 * HOUR, 28 * 24 * HOUR
    first = NOON // four_weeks
    begin, end = first * four_weeks, (first + 1) * four_weeks
    starts = [begin - 1, begin, begin, NOON, NOON + 1, end - 1, end]
    ledger.append([row(line(model), at=at) for at in starts for model in ("opus", "haiku")])
    assert ledger.recent.rows_by_four_weeks("default") == {first - 1: 2, first: 10, first + 1: 2}
    assert ledger.recent.rows_by_day("default", first) == {begin // day: 4, NOON // day: 4, end // day - 1: 2}


def test_turns_that_are_held_for_are_open_until_that_expires_the_oldest_first(ledger: BudgetLedger) -> None:
    for turn, at in (("b", NOON), ("c", NOON - 1), ("a", NOON)):
        hold(ledger, turn, (CAP, "0.1"), now=at, owner=ELSEWHERE)
    for at, turns in ((NOON, "cab"), (NOON + EXPIRY - 1, "ab"), (NOON + EXPIRY, "")):
        assert [each.id for each in ledger.recent.open_turns("default", at)] == list(turns)


def _by(origin: Origin, session: str) -> tuple[str, str, str]:
    return origin.user, origin.agent, session
