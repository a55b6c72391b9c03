"""Windows of plans in a ledger, on a real database of each backend."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.notice import plan_reached
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import DAY, HOUR, SECOND
from acp_proxy.ledger import open_ledger, open_reader
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.notices import Subscription
from acp_proxy.ledger.plans import KEPT, MOST_CHANGES, MOST_WINDOWS
from harness.rows import ALICE, BOB, MINUTE, NOON
from tests.ledger.conftest import AND_HUB, ONE_AT_A_TIME, PATIENCE, Open

END = NOON + 5 * HOUR
FIVE = PlanWindow("five_hour", FULL // 10, "allowed", END, "rejected", NOON)
WEEK = PlanWindow("seven_day", FULL // 4, "allowed", NOON + 3 * DAY, "rejected", NOON)


def after(minutes: int, used: int | None = None, window: PlanWindow = FIVE) -> PlanWindow:
    """The window as it is told later, with so many percent used."""
    each = window.used if used is None else used * FULL // 100
    return replace(window, seen_at=NOON + minutes * MINUTE, used=each)


def kept(ledger: BudgetLedger, user: str | None = None) -> list[PlanWindow]:
    return [state.told for state in ledger.plans("default", user)]


@AND_HUB
def test_the_latest_of_each_window_agent_and_user_is_kept(ledger: BudgetLedger, another: Open) -> None:
    ledger.note_plan(ALICE, [WEEK, FIVE])
    ledger.note_plan(BOB, [FIVE])
    ledger.note_plan(replace(ALICE, agent="other", host="tower"), [FIVE])
    another().note_plan(replace(ALICE, host="tower"), [after(5, 20)])  # of the same plan
    states = ledger.plans("default")
    assert [(state.user, state.agent, state.told) for state in states] == [
        ("alice", ALICE.agent, after(5, 20)),
        ("alice", ALICE.agent, WEEK),
        ("alice", "other", FIVE),
        ("bob", BOB.agent, FIVE),
    ]
    assert kept(ledger, "bob") == [FIVE]
    assert ledger.plans("another") == []


@AND_HUB
def test_an_older_message_changes_nothing(ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [after(5, 20)])
    (state,) = ledger.note_plan(ALICE, [after(4, 90)])
    assert state.told == after(5, 20)
    assert kept(ledger) == [after(5, 20)]
    assert [change.told for change in ledger.plan_changes("default")] == [after(5, 20)]


@AND_HUB
def test_a_message_that_is_noted_twice_is_there_once(ledger: BudgetLedger) -> None:
    assert ledger.note_plan(ALICE, [FIVE]) == ledger.note_plan(ALICE, [FIVE])
    assert len(ledger.plan_changes("default")) == 1


@AND_HUB
def test_a_message_that_tells_a_part_leaves_the_rest_of_the_same_window(ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [after(0, 40)])
    ledger.note_plan(ALICE, [PlanWindow("five_hour", None, "rejected", None, None, NOON + MINUTE)])
    assert kept(ledger) == [PlanWindow("five_hour", FULL * 40 // 100, "rejected", END, None, NOON + MINUTE)]


@AND_HUB
def test_what_was_used_of_a_window_that_was_reset_says_nothing_of_the_next(ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [after(0, 40)])
    ledger.note_plan(ALICE, [replace(FIVE, used=None, resets_at=None, seen_at=END)])
    (state,) = ledger.plans("default")
    assert (state.told.used, state.told.resets_at, state.first_at) == (None, None, END)


@AND_HUB
def test_a_reset_that_is_told_a_second_later_is_that_of_the_same_window(ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [FIVE])
    ledger.note_plan(ALICE, [replace(after(9, 30), resets_at=END + SECOND)])
    (state,) = ledger.plans("default")
    assert (state.told.resets_at, state.first_at, state.first_used) == (END, NOON, FULL // 10)
    ledger.note_plan(ALICE, [replace(after(10, 5), resets_at=END + 5 * HOUR)])
    (state,) = ledger.plans("default")
    assert (state.told.resets_at, state.first_at) == (END + 5 * HOUR, NOON + 10 * MINUTE)


@AND_HUB
def test_history_has_what_was_news(ledger: BudgetLedger, url: str) -> None:
    tenths = [replace(FIVE, used=FULL // 10 + step * 1000, seen_at=NOON + step * SECOND) for step in range(25)]
    for told in tenths:  # a tenth of a percent each time
        ledger.note_plan(ALICE, [told])
    rejected = replace(tenths[-1], status="rejected", seen_at=NOON + HOUR)
    ledger.note_plan(ALICE, [rejected])
    found = [change.told for change in ledger.plan_changes("default")]
    assert found == [tenths[0], tenths[10], tenths[20], rejected]
    some = ledger.plan_changes("default", NOON + 10 * SECOND, NOON + HOUR, "alice")
    assert [change.told for change in some] == [tenths[10], tenths[20]]
    assert ledger.plan_changes("default", user="bob") == []
    with closing(open_reader(url, journals=())) as reader:
        assert reader.plan_changes("default") == ledger.plan_changes("default")
        assert reader.plans("default") == ledger.plans("default")


def test_history_is_bounded(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        for step in range(MOST_CHANGES + 20):
            told = replace(FIVE, status=str(step % 2), seen_at=NOON + step, resets_at=NOON + DAY)
            ledger.note_plan(ALICE, [told])
        found = ledger.plan_changes("default")
        assert len(found) == MOST_CHANGES
        assert found[-1].told.seen_at == NOON + MOST_CHANGES + 19


@AND_HUB
def test_windows_that_an_agent_makes_up_are_bounded(ledger: BudgetLedger) -> None:
    ledger.note_plan(BOB, [FIVE])
    for step in range(MOST_WINDOWS + 5):
        ledger.note_plan(ALICE, [replace(FIVE, window=f"w{step}", seen_at=NOON + step)])
    assert {told.window for told in kept(ledger, "alice")} == {f"w{step}" for step in range(5, MOST_WINDOWS + 5)}
    assert {change.told.window for change in ledger.plan_changes("default", user="alice")} == {
        told.window for told in kept(ledger, "alice")
    }
    assert kept(ledger, "bob") == [FIVE]


@AND_HUB
def test_a_window_that_nobody_tells_any_more_is_forgotten(ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [FIVE, WEEK])
    ledger.note_plan(ALICE, [replace(WEEK, window="month", seen_at=NOON + KEPT)])
    assert len(kept(ledger)) == 3
    late = replace(WEEK, window="year", seen_at=NOON + KEPT + 1)
    ledger.note_plan(ALICE, [late])
    assert [told.window for told in kept(ledger)] == ["month", "year"]
    assert [change.told.window for change in ledger.plan_changes("default")] == ["month", "year"]


@ONE_AT_A_TIME
def test_each_threshold_is_announced_once_in_each_window(ledger: BudgetLedger, another: Open) -> None:
    def announce(which: BudgetLedger, told: PlanWindow, percent: int) -> bool:
        (state,) = which.note_plan(ALICE, [told])
        return which.announce_plan("default", state, percent, plan_reached("default", state, percent))

    assert announce(ledger, after(1, 76), 75)
    assert not announce(another(), replace(after(2, 77), resets_at=END + SECOND), 75)
    assert announce(another(), after(3, 95), 95)
    following = replace(after(4, 80), resets_at=END + 5 * HOUR)
    assert announce(ledger, following, 75)
    wanted = Subscription("default", "c", ("plan",))
    found = [ledger.outbox.claim(wanted, NOON + HOUR, NOON + 2 * HOUR) for _ in range(4)]
    told = [(claimed.notice.percent, claimed.notice.resets_at) for claimed in found if claimed]
    assert sorted(told) == [(75, END), (75, END + 5 * HOUR), (95, END)]


def test_of_proxies_that_are_told_at_once_the_latest_stands(ledger: BudgetLedger, url: str) -> None:
    def tell(first: int) -> None:
        with closing(open_ledger(url, journals=(), patience=PATIENCE)) as own:
            for step in range(first, 40, 4):
                own.note_plan(ALICE, [after(step, step), replace(WEEK, seen_at=NOON + step)])

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept(ledger) == [after(39, 39), replace(WEEK, seen_at=NOON + 39)]


TOLD = st.builds(
    PlanWindow,
    st.sampled_from(["five_hour", "seven_day"]),
    st.none() | st.integers(0, 2 * FULL),
    st.sampled_from([None, "allowed", "rejected"]),
    st.none() | st.integers(NOON, NOON + 10 * DAY),
    st.sampled_from([None, "in_use"]),
    st.integers(NOON, NOON + 20 * DAY),
)


@given(st.lists(TOLD, max_size=12))
@settings(max_examples=30, deadline=None)
def test_whatever_comes_in_whatever_order_what_stands_was_seen_last(told: list[PlanWindow]) -> None:
    with TemporaryDirectory() as place, closing(open_ledger(f"sqlite:///{place}/ledger.db", journals=())) as ledger:
        for each in told:
            ledger.note_plan(ALICE, [each])
        latest = {name: max(each.seen_at for each in told if each.window == name) for name in {x.window for x in told}}
        assert {each.window: each.seen_at for each in kept(ledger)} == latest
        for change in ledger.plan_changes("default"):
            assert change.told.seen_at <= latest[change.told.window]
