"""People, tokens, refreshes, devices, keys and limits, as they are kept on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from acp_proxy.hub.store import Store, schema
from acp_proxy.hub.store.families import IDLE, LIFETIME, Granted, Refused
from acp_proxy.hub.store.limits import SECONDS, network
from acp_proxy.hub.store.people import Person
from acp_proxy.hub.store.secrets import canonical_code, digest
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import LedgerError, open_ledger
from tests.hub.conftest import NOW

HOUR = 3600
LAPTOP = ("0123abcd", "laptop")


def _signed_in(store: Store, user: str = "alice@example.com") -> str:
    """A refresh token of a machine."""
    store.people.arrive(Person(user, team="core"), user, NOW)
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    assert store.devices.decide(code, user, None, NOW, allow=True)
    return _let_in(store, device)


def _let_in(store: Store, device: str) -> str:
    found = store.devices.ask(device, NOW)
    assert isinstance(found, Granted)
    return found.refresh


def _next(store: Store, refresh: str, now: int = NOW) -> str:
    found = store.families.refresh(refresh, now)
    assert isinstance(found, Granted), found
    return found.refresh


def _actions(store: Store) -> list[str]:
    assert store.audit.verify().fault is None
    return [line["action"] for line in store.audit.lines()]


def test_a_machine_waits_until_it_is_let_in_and_is_let_in_once(store: Store) -> None:
    store.people.arrive(Person("alice"), "alice", NOW)
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    assert store.devices.ask(device, NOW) == "authorization_pending"
    assert store.devices.decide(code, "alice", None, NOW + 1, allow=True)
    assert not store.devices.decide(code, "mallory", None, NOW + 1, allow=True)
    assert isinstance(store.devices.ask(device, NOW + 5), Granted)
    assert store.devices.ask(device, NOW + 10) == "expired_token"
    assert _actions(store) == ["person.added", "device.allowed", "machine.signed_in"]


def test_a_machine_that_asks_too_often_is_told_to_slow_down(store: Store) -> None:
    device, _ = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    asked = [store.devices.ask(device, NOW + second) for second in (0, 5, 9, 18, 28, 48)]
    assert asked == ["authorization_pending"] * 2 + ["slow_down"] * 3 + ["authorization_pending"]


def test_a_code_that_is_denied_or_late_lets_nobody_in(store: Store) -> None:
    store.people.arrive(Person("alice"), "alice", NOW)
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    assert store.devices.decide(code, "alice", None, NOW, allow=False)
    assert store.devices.ask(device, NOW) == "access_denied"
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    assert store.devices.waiting(code, NOW + 599) is not None
    assert store.devices.waiting(code, NOW + 600) is None
    assert not store.devices.decide(code, "alice", None, NOW + 600, allow=True)
    assert store.devices.ask(device, NOW + 600) == "expired_token"
    assert store.devices.ask("guessed", NOW) == "expired_token"


@pytest.mark.parametrize("typed", ["wdjb-mjht", "WDJBMJHT", " wdjb mjht "])
def test_a_code_is_known_however_it_is_typed(typed: str) -> None:
    assert canonical_code(typed) == "WDJB-MJHT"


def test_each_refresh_gives_the_next_and_none_is_good_for_two(store: Store) -> None:
    first = _signed_in(store)
    second = _next(store, first, NOW + HOUR)
    third = _next(store, second, NOW + 2 * HOUR)
    assert store.families.refresh(first, NOW + 2 * HOUR) == Refused(
        "this refresh token was used before: its sign-in has ended"
    )
    assert store.families.refresh(third, NOW + 2 * HOUR) == Refused("this sign-in has ended")
    assert _actions(store)[-1] == "refresh.reused"


def test_an_answer_that_was_lost_on_the_way_can_be_asked_for_again(store: Store) -> None:
    first = _signed_in(store)
    lost = _next(store, first, NOW)
    got = _next(store, first, NOW + 60)
    assert _next(store, got, NOW + HOUR)
    assert isinstance(store.families.refresh(lost, NOW + HOUR), Refused)  # somebody else has it
    assert store.families.all() == []


def test_of_refreshes_at_one_moment_one_answer_goes_on_and_nobody_is_signed_out(url: str, store: Store) -> None:
    """As of a machine that asked again when no answer came: two hubs have both requests at once."""
    first = _signed_in(store)
    ready = Barrier(4)

    def refreshes(_: int) -> Granted | Refused:
        with closing(open_ledger(url, journals=(), patience=60)) as ledger:
            hub = Store(ledger.tables, "acme")
            ready.wait(60)
            return hub.families.refresh(first, NOW)

    with ThreadPoolExecutor(4) as threads:
        made = [found.refresh for found in threads.map(refreshes, range(4)) if isinstance(found, Granted)]
    assert len(set(made)) == 4
    assert len(store.families.all()) == 1
    sql = "SELECT digest FROM hub_refresh WHERE used_at IS NULL"
    with closing(open_ledger(url, journals=())) as ledger:
        unused = {found for (found,) in ledger.tables.rows(sql)}
    (last,) = [refresh for refresh in made if digest(refresh) in unused]
    assert _next(store, last, NOW + HOUR)
    assert "refresh.reused" not in _actions(store)


def test_a_laptop_that_was_closed_on_an_answer_goes_on_the_next_day(store: Store) -> None:
    first = _signed_in(store)
    _next(store, first, NOW)
    again = _next(store, first, NOW + 24 * HOUR)
    assert _next(store, again, NOW + 25 * HOUR)


def test_a_sign_in_ends_after_a_while_and_where_a_machine_is_not_used(store: Store) -> None:
    refresh = _signed_in(store)
    assert store.families.refresh(refresh, NOW + IDLE) == Refused("this sign-in has expired")
    day, now = 86400, NOW
    while now + 20 * day < NOW + LIFETIME:
        now += 20 * day
        refresh = _next(store, refresh, now)
    assert store.families.refresh(refresh, NOW + LIFETIME) == Refused("this sign-in has expired")
    assert store.families.refresh("acpr_guessed", NOW) == Refused("this refresh token is not known")


def test_who_leaves_can_do_nothing_any_more_and_comes_back_by_nothing(store: Store) -> None:
    refresh = _signed_in(store)
    session, _ = store.tokens.begin_session("alice@example.com", None, NOW, NOW + HOUR)
    personal, _ = store.tokens.make(Asked("laptop", "alice@example.com"), "admin", NOW)
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    store.devices.decide(code, "alice@example.com", None, NOW, allow=True)
    store.people.keep(Person("alice@example.com", team="core", active=False), "scim", NOW + 1)
    assert store.families.refresh(refresh, NOW + 1) == Refused("this sign-in has ended")
    for shown in (session, personal):
        found = store.tokens.find(shown, NOW + 1)
        assert found is not None
        assert found[1] is None
    assert store.devices.ask(device, NOW + 1) == "expired_token"
    assert not store.people.arrive(Person("alice@example.com"), "alice@example.com", NOW + 2).active
    assert len(store.families.ended_since(NOW)) == 1


def test_what_a_token_began_ends_with_it(store: Store) -> None:
    _, token = store.tokens.make(Asked("bob's", "bob", "lead", "core", ("core",)), "admin", NOW)
    session, _ = store.tokens.begin_session("bob", token.id, NOW, NOW + HOUR)
    found = store.tokens.find(session, NOW)
    assert found is not None
    assert found[1] is not None
    assert (found[1].role, found[1].leads) == ("lead", ("core",))
    device, code = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    store.devices.decide(code, "bob", token.id, NOW, allow=True)
    refresh = _next(store, _let_in(store, device))
    assert store.tokens.revoke(token.id, "admin", NOW)
    assert not store.tokens.revoke(token.id, "admin", NOW)
    found = store.tokens.find(session, NOW)
    assert found is not None
    assert found[1] is None
    assert store.families.refresh(refresh, NOW) == Refused("its user may not sign in any more")


def test_the_first_token_is_made_once_by_whichever_hub_starts(url: str, store: Store) -> None:
    def starts(_: int) -> str | None:
        with closing(open_ledger(url, journals=(), patience=60)) as ledger:
            return Store(ledger.tables, "acme").tokens.first(NOW)

    with ThreadPoolExecutor(4) as threads:
        made = [token for token in threads.map(starts, range(4)) if token]
    assert len(made) == 1
    found = store.tokens.find(made[0], NOW)
    assert found is not None
    assert found[1] is not None
    assert found[1].role == "administrator"


def test_no_secret_is_kept(store: Store) -> None:
    refresh = _signed_in(store)
    made, _ = store.tokens.make(Asked("ci", "ci"), "admin", NOW)
    device, _ = store.devices.begin(LAPTOP, "192.0.2.1", NOW)
    tables = store.audit._tables
    kept = [row for name in ("token", "refresh", "device", "audit") for row in tables.rows(f"SELECT * FROM hub_{name}")]
    assert len(kept) >= 5
    for secret in (refresh, made, device):
        assert secret not in str(kept)


def test_keys_are_made_once_replaced_when_old_and_verify_for_a_while(url: str, store: Store) -> None:
    def starts(_: int) -> str:
        with closing(open_ledger(url, journals=(), patience=60)) as ledger:
            return Store(ledger.tables, "acme").keys.current(NOW)[0].id

    with ThreadPoolExecutor(4) as threads:
        (first,) = set(threads.map(starts, range(4)))
    assert [key.id for key in store.keys.current(NOW + 90 * 86400 - 1)] == [first]
    second, *others = store.keys.current(NOW + 90 * 86400)
    assert [key.id for key in others] == [first]
    third, *others = store.keys.rotate(NOW + 91 * 86400, "admin")
    assert [key.id for key in others] == [second.id]
    assert [key.id for key in store.keys.rotate(NOW + 92 * 86400, "admin", forget=True)] != [third.id]
    assert len(store.keys.all()) == 1


def test_an_address_may_try_so_often_and_then_waits(store: Store) -> None:
    waits = [store.limits.wait("verification", "192.0.2.1", NOW + second) for second in range(12)]
    assert waits == [0] * 10 + [SECONDS - 10, SECONDS - 11]
    assert store.limits.wait("verification", "192.0.2.2", NOW) == 0
    assert store.limits.wait("authorization", "192.0.2.1", NOW) == 0
    assert store.limits.wait("verification", "192.0.2.1", NOW + SECONDS) == 0


def test_an_address_is_what_one_party_has() -> None:
    assert network("2001:db8::1") == network("2001:db8::ffff") != network("2001:db8:0:1::1")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1") == "192.0.2.1"


def test_what_ended_long_ago_is_forgotten_and_the_log_stays(store: Store) -> None:
    _signed_in(store)
    store.tokens.begin_session("alice@example.com", None, NOW, NOW + HOUR)
    store.tokens.make(Asked("ci", "ci"), "admin", NOW)
    store.limits.wait("verification", "192.0.2.1", NOW)
    lines = store.audit.verify().lines
    store.tidy(NOW + LIFETIME + 2 * 86400)
    tables = store.audit._tables
    left = {name: len(tables.rows(f"SELECT 1 FROM hub_{name}")) for name in ("family", "refresh", "attempt", "token")}
    assert left == {"family": 0, "refresh": 0, "attempt": 0, "token": 1}
    assert store.audit.verify().lines == lines


def test_tables_of_a_newer_version_are_refused(url: str, store: Store) -> None:
    store.audit._tables.write(lambda run: run("UPDATE hub_schema SET version = ?", (len(schema._STEPS) + 1,)))
    with closing(open_ledger(url, journals=())) as ledger, pytest.raises(LedgerError, match="newer acp-proxy"):
        Store(ledger.tables, "acme")
