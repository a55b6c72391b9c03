"""How leases end, on each database: with who had them, with their window, and by nothing that a machine says alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease, Terms
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Granted
from acp_proxy.hub.store.people import Person
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import OpenTurn, open_ledger
from acp_proxy.ledger.accounts.lending import borrower
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.hub.conftest import NOW
from tests.ledger.holds import account

TERMS = Terms(share=100, turns=3)
SIZE = HoldSize(usd("1"), usd("1"))
POOL = budget("10 USD", name="pool", window="total")
DAILY = budget("10 USD", name="daily", window="day")
BOOT = "boot"


@pytest.fixture
def ledger(url: str) -> Iterator[SqlLedger]:
    with closing(open_ledger(url, journals=())) as opened:
        yield cast(SqlLedger, opened)


def lend(ledger: SqlLedger, lease: str, *of: Account, user: str = "alice", sign_in: str = "", now: int = NOON) -> Lease:
    origin = replace(ALICE, user=user)
    turn = OpenTurn(lease, origin, "s1", now, borrower(sign_in), "opus")
    lent = ledger.lend(turn, [(each, SIZE) for each in of], TERMS, now)
    return Lease(lease, BOOT, 0, HOUR, lent)


def lent(ledger: SqlLedger, of: Budget = POOL, now: int = NOON) -> int:
    """In whole dollars."""
    (standing,) = ledger.standing([account(of, at=now)], now)
    return standing.held // usd("1")


def spent(ledger: SqlLedger, of: Budget = POOL, now: int = NOON) -> int:
    (standing,) = ledger.standing([account(of, at=now)], now)
    return standing.spent // usd("1")


def pay(ledger: SqlLedger, lease: str, *ids: str, at: int = NOON, user: str = "alice") -> None:
    """Rows of a dollar each arrive that say that a lease has paid for them."""
    made = [row(line(cost="1"), id=each, at=at, origin=replace(ALICE, user=user)) for each in ids]
    ledger.charge_leases([replace(each, lease=lease) for each in made], at + EXPIRY)
    ledger.append(made)


def test_who_leaves_has_nothing_lent_any_more_and_others_keep_theirs(ledger: SqlLedger) -> None:
    people = Store(ledger.tables, "default").people
    people.keep(Person("alice"), "root", NOW)
    for name, user in (("lease-a", "alice"), ("lease-b", "alice"), ("lease-c", "bob")):
        lend(ledger, name, account(POOL), user=user)
    assert lent(ledger) == 9
    people.keep(Person("alice", active=False), "root", NOW)
    assert lent(ledger) == 3


def test_a_machine_that_an_administrator_signs_out_has_nothing_lent_any_more(ledger: SqlLedger) -> None:
    store = Store(ledger.tables, "default")
    store.people.arrive(Person("alice"), "alice", NOW)
    families = []
    for _ in range(2):
        device, code = store.devices.begin((None, None), "192.0.2.1", NOW)
        store.devices.decide(code, "alice", None, NOW, allow=True)
        found = store.devices.ask(device, NOW)
        assert isinstance(found, Granted)
        families.append(found.family.id)
    for number, family in enumerate(families):
        lend(ledger, f"lease-{number}", account(POOL), sign_in=family)
    store.families.revoke(families[0], "root", NOW)
    assert lent(ledger) == 3


def test_a_machine_that_signs_out_itself_keeps_what_rows_still_wait_for(ledger: SqlLedger) -> None:
    """It gives back the rest by name; the hub does not know which rows are on their way."""
    store = Store(ledger.tables, "default")
    store.people.arrive(Person("alice"), "alice", NOW)
    device, code = store.devices.begin((None, None), "192.0.2.1", NOW)
    store.devices.decide(code, "alice", None, NOW, allow=True)
    found = store.devices.ask(device, NOW)
    assert isinstance(found, Granted)
    lend(ledger, "lease-1", account(POOL), sign_in=found.family.id)
    store.families.revoke(found.family.id, "alice", NOW, leases_end=False)
    assert lent(ledger) == 3


def test_with_a_token_end_its_leases_and_those_of_what_it_has_signed_in(ledger: SqlLedger) -> None:
    store = Store(ledger.tables, "default")
    _, token = store.tokens.make(Asked("ci", "alice"), "root", NOW)
    device, code = store.devices.begin((None, None), "192.0.2.1", NOW)
    store.devices.decide(code, "alice", token.id, NOW, allow=True)
    found = store.devices.ask(device, NOW)
    assert isinstance(found, Granted)
    lend(ledger, "lease-1", account(POOL), sign_in=token.id)
    lend(ledger, "lease-2", account(POOL), sign_in=found.family.id)
    lend(ledger, "lease-3", account(POOL), sign_in="another")
    store.tokens.revoke(token.id, "root", NOW)
    assert lent(ledger) == 3


def test_what_was_lent_of_one_day_pays_for_no_turn_of_another(ledger: SqlLedger) -> None:
    today, tomorrow = account(DAILY), account(DAILY, at=NOON + DAY)
    lease = lend(ledger, "lease-1", today)
    assert lease.draw("t1", {today.key: SIZE}, BOOT, 1) is not None
    assert lease.draw("t1", {tomorrow.key: SIZE}, BOOT, 1) is None
    assert (lent(ledger, DAILY), lent(ledger, DAILY, NOON + DAY)) == (3, 0)
    pay(ledger, "lease-1", "of-tomorrow", at=NOON + DAY)  # a machine that says so all the same
    assert (lent(ledger, DAILY), spent(ledger, DAILY)) == (3, 0)
    assert (lent(ledger, DAILY, NOON + DAY), spent(ledger, DAILY, NOON + DAY)) == (0, 1)


def test_a_turn_of_yesterday_that_arrives_today_is_paid_by_the_lease_of_yesterday(ledger: SqlLedger) -> None:
    lend(ledger, "lease-1", account(DAILY))
    (before,) = ledger.standing([account(DAILY)], NOON)
    pay(ledger, "lease-1", "late")
    (after,) = ledger.standing([account(DAILY)], NOON + DAY)
    assert after.spent + after.held == before.spent + before.held


def test_a_lease_of_one_session_pays_for_no_other(ledger: SqlLedger) -> None:
    of_session = budget("10 USD", name="each", window="session")
    this = account(of_session)
    other = replace(this, key=this.key.replace('"s1"', '"s2"'))
    assert this.key != other.key
    lease = lend(ledger, "lease-1", this, account(POOL))
    assert lease.draw("t1", {this.key: SIZE, account(POOL).key: SIZE}, BOOT, 1) is not None
    assert lease.draw("t1", {other.key: SIZE, account(POOL).key: SIZE}, BOOT, 1) is None
    assert other.key not in lease.left


def test_a_return_that_is_sent_again_frees_nothing_twice(ledger: SqlLedger) -> None:
    lend(ledger, "lease-1", account(POOL))
    lend(ledger, "lease-2", account(POOL))
    for _ in range(2):
        ledger.give_back("default", "alice", ["lease-1"])
        assert (lent(ledger), spent(ledger)) == (3, 0)
    pay(ledger, "lease-1", "t1")
    assert (lent(ledger), spent(ledger)) == (3, 1)


def test_a_lease_that_two_machines_have_spent_pays_once_and_all_their_rows_are_booked(ledger: SqlLedger) -> None:
    """As after a copy of the file that somebody has made to hold on the other machine."""
    lend(ledger, "lease-1", account(POOL))
    lend(ledger, "lease-2", account(POOL), user="bob")
    pay(ledger, "lease-1", *(f"laptop-{n}" for n in range(3)))
    pay(ledger, "lease-1", *(f"desktop-{n}" for n in range(3)))
    assert (lent(ledger), spent(ledger)) == (3, 6)


def test_more_than_was_lent_is_never_taken_out_of_what_others_hold(ledger: SqlLedger) -> None:
    """As of a machine that has written a larger amount into its file."""
    lend(ledger, "lease-1", account(POOL))
    others = OpenTurn("of-bob", replace(ALICE, user="bob"), "s9", NOON, borrower("elsewhere"), "opus")
    ledger.hold(others, [(account(POOL), HoldSize(usd("2"), 1))], NOON, NOON + DAY)
    pay(ledger, "lease-1", *(f"t{n}" for n in range(7)))
    assert (lent(ledger), spent(ledger)) == (2, 7)
    two = HoldSize(usd("2"), usd("2"))
    assert not ledger.hold(replace(others, id="next"), [(account(POOL), two)], NOON, NOON + DAY).admitted


def test_the_same_rows_sent_again_take_nothing_more_out_of_a_lease(ledger: SqlLedger) -> None:
    lend(ledger, "lease-1", account(POOL))
    for _ in range(3):
        pay(ledger, "lease-1", "t1")
    assert (lent(ledger), spent(ledger)) == (2, 1)


def test_a_row_beside_a_turn_takes_its_cost_out_of_the_same_lease(ledger: SqlLedger) -> None:
    lend(ledger, "lease-1", account(POOL))
    ids = {"turn": "t1", "autonomous": "t2"}
    made = [
        replace(row(line(cost="1"), id=each, kind=kind), lease="lease-1")  # type: ignore[arg-type]
        for kind, each in ids.items()
    ]
    ledger.charge_leases(made, NOON + EXPIRY)
    ledger.append(made)
    assert (lent(ledger), spent(ledger)) == (1, 2)
