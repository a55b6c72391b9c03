"""A lease as its machine spends it: never more than was lent, never after its time, and what is unused comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease, Terms
from acp_proxy.core.windows import HOUR

BOOT = "boot"
LEASE = Lease("lease-1", BOOT, 0, HOUR, {"pool": 10, "seat": 5})


def drawn(lease: Lease, turn: str, now: int = 1, boot: str = BOOT, **sizes: int) -> Lease | None:
    found = lease.draw(turn, {account: HoldSize(size, 1) for account, size in sizes.items()}, boot, now)
    return found[0] if found else None


def test_a_turn_draws_of_all_its_accounts_or_of_none() -> None:
    one = drawn(LEASE, "t1", pool=4, seat=4)
    assert one is not None
    assert (one.left, one.drawn) == ({"pool": 6, "seat": 1}, {"t1": {"pool": 4, "seat": 4}})
    two = drawn(one, "t2", pool=4, seat=4)
    assert two is not None
    assert two.left == {"pool": 2, "seat": 0}
    assert drawn(two, "t3", pool=1, seat=1) is None
    assert drawn(two, "t3", pool=1, other=1) is None


@pytest.mark.parametrize(("now", "boot"), [(HOUR, BOOT), (-1, BOOT), (1, "another")])
def test_after_its_time_or_a_restart_nothing_is_drawn(now: int, boot: str) -> None:
    assert drawn(LEASE, "t1", now, boot, pool=1) is None


def test_what_a_turn_did_not_use_may_be_drawn_again_and_what_it_used_beyond_is_gone() -> None:
    lease = drawn(LEASE, "t1", pool=4, seat=4)
    assert lease is not None
    ended = lease.charge("t1", {"pool": 1, "seat": 9})
    assert ended.left == {"pool": 9, "seat": 0}
    assert ended.charge("t1", {}).left == ended.left


def test_another_is_due_after_half_its_time_after_use_and_for_a_new_account() -> None:
    assert not LEASE.is_due(["pool"], BOOT, 1)
    assert LEASE.is_due(["pool"], BOOT, HOUR // 2)
    assert LEASE.is_due(["pool", "other"], BOOT, 1)
    assert LEASE.is_due(["pool"], "another", 1)
    used = drawn(LEASE, "t1", pool=1)
    assert used is not None
    assert not used.is_due(["pool"], BOOT, 1)  # the hub does not have its row
    assert used.settled("t1").is_due(["pool"], BOOT, 1)


@given(st.integers(-5, 10_000), st.integers(1, 500), st.integers(1, 100), st.integers(0, 20))
def test_what_is_lent_is_never_more_than_is_left(left: int, turn: int, share: int, turns: int) -> None:
    assert 0 <= Terms(share=share, turns=turns).portion(left, turn) <= max(0, left)


@pytest.mark.parametrize(("left", "lent"), [(1000, 50), (200, 20), (15, 7), (1, 0), (0, 0), (-3, 0)])
def test_a_share_of_what_is_left_but_few_turns_and_of_a_small_rest_one(left: int, lent: int) -> None:
    assert Terms(share=10, turns=5).portion(left, turn=10) == lent


@given(
    st.lists(
        st.tuples(st.sampled_from(["draw", "charge", "settled"]), st.sampled_from("abc"), st.integers(0, 6)),
        max_size=30,
    )
)
def test_what_turns_used_and_may_still_use_is_never_more_than_was_lent(steps: list[tuple[str, str, int]]) -> None:
    """As long as no turn uses more than it drew."""
    lease, used, seen = LEASE, 0, set[str]()
    for step, turn, amount in steps:
        open_amounts = lease.drawn.get(turn, {})
        if step == "draw" and turn not in seen:
            lease = drawn(lease, turn, pool=max(1, amount)) or lease
            seen.add(turn)
        elif step == "charge" and open_amounts:
            cost = min(amount, open_amounts["pool"])
            lease, used = lease.charge(turn, {"pool": cost}), used + cost
        elif step == "settled" and not open_amounts:
            lease = lease.settled(turn)
        held = sum(amounts.get("pool", 0) for amounts in lease.drawn.values())
        assert used + held + lease.left["pool"] == 10


def test_a_hub_that_says_nothing_lends_a_tenth_for_half_a_day_and_waits_a_week_for_the_rows() -> None:
    terms = Terms()
    assert terms.portion(500, turn=20) == 50
    assert terms.portion(10_000, turn=20) == 100
    assert (terms.usable, terms.kept) == (12 * HOUR, 12 * HOUR + 7 * 24 * HOUR)
    assert (Terms(hours=1).usable, Terms(hours=1, kept_days=2).kept) == (HOUR, 49 * HOUR)


def test_a_lease_is_new_until_a_turn_has_drawn_from_it() -> None:
    assert not Lease("lease-1", BOOT, 0, HOUR, {}).used
    lease = drawn(LEASE, "t1", pool=1)
    assert lease is not None
    assert lease.used


def test_what_a_turn_of_an_account_does_not_tell_it_used_comes_back_and_no_account_is_below_nothing() -> None:
    lease = drawn(LEASE, "t1", pool=4, seat=4)
    assert lease is not None
    assert lease.charge("t1", {"pool": 1}).left == {"pool": 9, "seat": 5}
    assert lease.charge("t1", {"pool": 100, "seat": 4}).left == {"pool": 0, "seat": 1}
    without = Lease("lease-1", BOOT, 0, HOUR, {"seat": 1}, {"t1": {"pool": 4}})
    assert without.charge("t1", {"pool": 1}).left == {"seat": 1, "pool": 3}
    assert lease.charge("t2", {"pool": 1}) == lease
