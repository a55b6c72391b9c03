"""The log of changes: a line for each, in its transaction, and no line can be changed, removed or put in between."""

from __future__ import annotations

from contextlib import closing

import orjson
import pytest

from acp_proxy.hub.store import Store
from acp_proxy.hub.store.audit import BEGINNING, Change, Verified
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.statements import Run
from tests.hub.conftest import NOW


def _noted(store: Store, *subjects: str) -> None:
    for at, subject in enumerate(subjects, NOW):
        change = Change("alice", "budget.changed", subject, {"limit": 5}, {"limit": at})
        store.audit._tables.write(lambda run, change=change, at=at: store.audit.note(run, change, at))  # type: ignore[misc]


def _change(store: Store, sql: str, *values: object) -> None:
    store.audit._tables.write(lambda run: run(sql, values))


def test_each_change_is_a_line_of_json_that_follows_the_one_before(store: Store) -> None:
    _noted(store, "daily", "monthly")
    first, second = map(orjson.loads, store.audit.exported())
    assert first == {
        "number": 1,
        "at": "2026-09-21T14:13:20Z",
        "actor": "alice",
        "action": "budget.changed",
        "subject": "daily",
        "before": {"limit": 5},
        "after": {"limit": NOW},
        "previous": BEGINNING,
        "hash": second["previous"],
    }
    assert store.audit.verify() == Verified(2, second["hash"])


def test_what_is_rolled_back_is_not_in_the_log(store: Store) -> None:
    def fails(run: Run) -> None:
        store.audit.note(run, Change("alice", "budget.changed", "daily"), NOW)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.audit._tables.write(fails)
    assert list(store.audit.lines()) == []
    _noted(store, "daily")
    assert store.audit.verify().lines == 1


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("UPDATE hub_audit SET actor = 'bob' WHERE number = 2", "line 2 was changed"),
        ("UPDATE hub_audit SET after = NULL WHERE number = 2", "line 2 was changed"),
        ("UPDATE hub_audit SET at = at + 1 WHERE number = 3", "line 3 was changed"),
        ("DELETE FROM hub_audit WHERE number = 1", "line 1 is missing"),
        ("DELETE FROM hub_audit WHERE number = 2", "line 2 is missing"),
        ("DELETE FROM hub_audit WHERE number = 3", "line 3 is missing"),
        ("DELETE FROM hub_audit", "line 1 is missing"),
    ],
)
def test_a_log_that_somebody_has_changed_does_not_hold(store: Store, sql: str, fault: str) -> None:
    _noted(store, "a", "b", "c")
    _change(store, sql)
    assert store.audit.verify().fault == fault


def test_a_chain_that_was_made_anew_does_not_have_a_digest_that_was_noted_before(store: Store) -> None:
    _noted(store, "a", "b")
    noted = store.audit.verify().last
    _noted(store, "c")
    assert store.audit.verify(noted).fault is None
    _change(store, "DELETE FROM hub_audit")
    _change(store, "DELETE FROM hub_audit_end")
    _noted(store, "a", "c")
    assert store.audit.verify().fault is None
    assert store.audit.verify(noted).fault == f"no line has the digest {noted}"


def test_texts_that_a_database_cannot_keep_do_not_break_the_chain(store: Store) -> None:
    _noted(store, "a\0b", "ümläut '; DROP TABLE hub_audit; --", "\N{PILE OF POO}" * 1000)
    assert store.audit.verify().fault is None


def test_hubs_that_write_at_once_make_one_chain(url: str, store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def writes(name: str) -> None:
        with closing(open_ledger(url, journals=(), patience=60)) as ledger:
            _noted(Store(ledger.tables, "acme"), *(f"{name}{number}" for number in range(25)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(writes, "abcd"))
    assert store.audit.verify().lines == 100
    assert store.audit.verify().fault is None


def test_each_organisation_has_a_chain_of_its_own(url: str, store: Store) -> None:
    _noted(store, "a")
    with closing(open_ledger(url, journals=())) as ledger:
        other = Store(ledger.tables, "other")
        _noted(other, "b")
        assert other.audit.verify().lines == 1
        assert other.installation == store.installation
