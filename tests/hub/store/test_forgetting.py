"""Who is forgotten, and what is removed because it is old, on each database: with the log of changes whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.requests import Decision, MoreRequest, Wish
from acp_proxy.core.notice import more_asked
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Granted
from acp_proxy.hub.store.forgetting import NotKnownError
from acp_proxy.hub.store.people import Person
from acp_proxy.hub.store.retention import DAY, Removed, Retention
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.hub.policy import Document
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.ledger.writing.forgetting import AliasTakenError
from harness.rows import ALICE, row
from tests.hub.conftest import NOW

GOES, STAYS = "ana.çelik@example.com", "bob@example.com"
LAPTOP = ("0123abcd", "anas-macbook")
PERSONAL = (GOES, "Ana Çelik", "anas-macbook", "0123abcd", "sub-of-ana", "ana's own", "because of my illness")
AT = NOW * 10**9


@pytest.fixture
def ledger(url: str) -> Iterator[SqlLedger]:
    with closing(open_ledger(url, journals=())) as opened:
        yield cast(SqlLedger, opened)


@pytest.fixture
def full(ledger: SqlLedger) -> Store:
    """Two people have signed in, spent, asked for more and decided; there is a budget for each of them."""
    store = Store(ledger.tables, "default")
    for user, name in ((GOES, "Ana Çelik"), (STAYS, "Bob")):
        store.people.arrive(Person(user, subject="https://idp sub-of-ana", name=name, email=user), user, NOW)
        store.tokens.make(Asked("ana's own" if user == GOES else "ci", user), user, NOW)
        device, code = store.devices.begin(LAPTOP if user == GOES else (None, None), "192.0.2.1", NOW)
        assert store.devices.decide(code, user, None, NOW, allow=True)
        assert isinstance(store.devices.ask(device, NOW), Granted)
        origin = replace(ALICE, user=user, host=f"host of {user}")
        ledger.append([row(origin=origin, at=AT) for _ in range(3)])
        wish = Wish(f"r-{user[:3]}", "hub", "daily", "user", user, 1, "USD", "because of my illness")
        asked = MoreRequest(wish, user, "core", AT)
        assert store.requests.ask(asked, more_asked("default", user, "core", wish, None, AT)) is not None
    store.requests.decide(Decision("r-bob", approve=False, note="no"), GOES, AT, lambda run, grant: None)
    budgets = [{"name": each[:3], "limit": {"turns": 1}, "scope": {"user": each}} for each in (GOES, STAYS)]
    store.policies.change(lambda _: Document(budgets), None, GOES, NOW)
    return store


def everything(ledger: SqlLedger) -> str:
    """What all tables hold."""
    tables = ledger.tables
    names = {
        True: "SELECT name FROM sqlite_master WHERE type = 'table'",
        False: "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
    }
    found = [repr(tables.rows(f"SELECT * FROM {name}")) for (name,) in tables.rows(names[tables.dialect.serial])]
    return "\n".join(found).encode().decode("unicode-escape", "replace") + "\n".join(found)


def test_a_name_and_all_that_is_personal_is_nowhere_any_more_and_the_log_still_holds(
    ledger: SqlLedger, full: Store
) -> None:
    before, noted = ledger.summed(Query(), ("team", "agent")), full.audit.verify().last
    assert all(each in everything(ledger) for each in PERSONAL)
    others = [line for line in full.audit.lines() if line["actor"] == STAYS and GOES not in str(line)]
    found = full.forgetting.forget(GOES, "former-1", "root", NOW + 1)
    assert (found.alias, found.rows) == ("former-1", 3)
    left = everything(ledger).replace("https://idp sub-of-ana", "", 1)
    assert "Bob" in left
    for each in PERSONAL[:1] + PERSONAL[1:4] + PERSONAL[5:6]:
        assert each not in left, each
    assert ledger.summed(Query(), ("team", "agent")) == before
    assert {key for (key,) in (each.key for each in ledger.summed(Query(), ("user",)))} == {"former-1", STAYS}
    verified = full.audit.verify(noted)
    assert (verified.fault, found.lines > 5) == (None, True)
    assert [line for line in full.audit.lines() if line["actor"] == STAYS and line in others] == others
    last = list(full.audit.lines())[-1]
    assert (last["actor"], last["action"], last["subject"]) == ("root", "user.forgotten", "former-1")
    assert full.requests.find("r-bob").decided_by == "former-1"  # type: ignore[union-attr]
    assert full.people.find(GOES) is None
    assert not any(token.holds(NOW + 2) for token in full.tokens.all() if token.user == "former-1")


def test_a_line_that_is_changed_after_somebody_was_forgotten_is_found(ledger: SqlLedger, full: Store) -> None:
    found = full.forgetting.forget(GOES, None, "root", NOW + 1)
    assert full.audit.verify().fault is None
    for who in (found.alias, STAYS):
        number = next(line["number"] for line in full.audit.lines() if line["actor"] == who)
        _set_actor(ledger, number, "mallory")
        assert full.audit.verify().fault == f"line {number} was changed"
        _set_actor(ledger, number, who)
    assert full.audit.verify().fault is None


def _set_actor(ledger: SqlLedger, number: int, actor: str) -> None:
    sql = "UPDATE hub_audit SET actor = ? WHERE number = ?"
    ledger.tables.write(lambda run: run(sql, (actor, number)))


def test_two_people_who_stand_in_one_line_can_both_be_forgotten(full: Store) -> None:
    full.forgetting.forget(GOES, "former-1", STAYS, NOW + 1)
    full.forgetting.forget(STAYS, "former-2", STAYS, NOW + 2)
    assert full.audit.verify().fault is None
    assert not any(STAYS in str(line) or GOES in str(line) for line in full.audit.lines())


def test_nobody_becomes_somebody_else_and_nobody_unknown_is_forgotten(ledger: SqlLedger, full: Store) -> None:
    before = everything(ledger)
    with pytest.raises(AliasTakenError):
        full.forgetting.forget(GOES, STAYS, "root", NOW)
    with pytest.raises(NotKnownError):
        full.forgetting.forget("nobody", None, "root", NOW)
    assert everything(ledger) == before


def test_of_several_hubs_one_removes_what_is_old_once_a_day(url: str, store: Store) -> None:
    with closing(open_ledger(url, journals=())) as other:
        hubs = [store, Store(other.tables, "acme")]
        due = [hub.retaining.is_due(NOW + hours * 3600) for hours in (0, 1, 23, 24, 25, 47, 48) for hub in hubs]
    assert [number // 2 for number, each in enumerate(due) if each] == [0, 3, 6]


def test_what_is_old_is_removed_and_what_is_not_stays(ledger: SqlLedger, full: Store) -> None:
    ledger.note_session(replace(ALICE, user=GOES, host=f"host of {GOES}"), "s1", "a title", AT + 10**11)
    full.people.keep(Person(GOES, active=False), "root", NOW + DAY)
    retention = Retention(names_days=90, titles_days=30, requests_days=30, audit_days=100)
    assert full.retaining.run(retention, NOW + 20 * DAY) == Removed()
    assert full.retaining.run(retention, NOW + 60 * DAY) == Removed(titles=1, requests=1)
    assert full.retaining.left_before(NOW + 60 * DAY) == [GOES]
    found = full.retaining.run(retention, NOW + 92 * DAY)
    assert found == Removed(names=1)
    lines = len(list(full.audit.lines()))
    assert full.retaining.run(retention, NOW + 110 * DAY).lines == lines - 1
    assert [line["action"] for line in full.audit.lines()] == ["user.forgotten", "audit.trimmed"]
    assert full.audit.verify().fault is None
    full.tokens.make(Asked("new", STAYS), "root", NOW + 110 * DAY)
    assert full.audit.verify().fault is None
    ledger.tables.write(lambda run: run("DELETE FROM hub_audit WHERE action = 'user.forgotten'", ()))
    assert full.audit.verify().fault is not None


def test_who_can_still_sign_in_or_was_there_lately_keeps_their_name(ledger: SqlLedger, full: Store) -> None:
    assert full.retaining.left_before(NOW + 1000 * DAY) == []  # both have a token that holds
    for token in full.tokens.all():
        full.tokens.revoke(token.id, "root", NOW)
    assert full.retaining.left_before(NOW + 1000 * DAY) == []  # and are known to the provider
    full.people.keep(Person(GOES, active=False), "root", NOW)
    assert full.retaining.left_before(NOW - DAY) == []
    assert full.retaining.left_before(NOW + 2 * DAY) == [GOES]
