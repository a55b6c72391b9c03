"""Windows of plans on their way to the ledger, and to the user whose plan it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import (
    Event,
    Implementation,
    Initialized,
    PlanReported,
    SessionClosed,
    Turn,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.plans import FULL, PlanChange, PlanState, PlanWindow
from acp_proxy.core.windows import HOUR
from acp_proxy.interceptors.plans import Plans
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.notices import Subscription
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.text.plans import warning
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, MINUTE, NOON, row
from tests.ends import Ends, answer, prompt, update
from tests.ledger.warned import Warnings

FIVE = PlanWindow("five_hour", FULL // 2, "allowed", NOON + 5 * HOUR, None, NOON)
LIMIT = {"rateLimitType": "five_hour", "utilization": 0.96, "status": "allowed_warning"}


def used(percent: int, minutes: int = 0, **others: Any) -> PlanWindow:
    return replace(FIVE, used=percent * FULL // 100, seen_at=NOON + minutes * MINUTE, **others)


class Proxy:
    """One interceptor on a ledger, and what it has its client told."""

    def __init__(self, url: str, home: Path, *, notices: bool = True, **settings: Any) -> None:
        self.worker = LedgerWorker.at(url, {"HOME": str(home)}, Warnings())
        self.plans = Plans(self.worker, lambda _: ALICE, self._say, clock=lambda: NOON, **settings)
        self.see(Initialized(NOON, 1, Implementation(), Implementation(), notices))

    @staticmethod
    def _say(state: PlanState, percent: int, now: int) -> str:
        return warning(state, percent, now, UTC_ZONE)

    def see(self, *events: Event) -> list[bytes]:
        return [effect.line for event in events for effect in self.plans.on_event(event)]  # type: ignore[union-attr]

    async def report(self, *windows: PlanWindow, session: str = "s1") -> None:
        """Until the ledger has it, and this knows what to say."""
        self.see(PlanReported(windows[0].seen_at, session, windows))
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        self.worker.do(lambda _: loop.call_soon_threadsafe(done.set))
        await done.wait()

    def turn_ends(self, session: str = "s1") -> list[bytes]:
        entry = row(session=session).entry
        return self.see(TurnMetered(NOON, entry, SessionState(), reported_usage=False, reported_cost=False))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@asynccontextmanager
async def proxy(url: str, home: Path, **options: Any) -> AsyncIterator[Proxy]:
    made = Proxy(url, home, **options)
    try:
        yield made
    finally:
        await asyncio.to_thread(made.worker.close, 30)


def ledger_at(url: str) -> closing[BudgetLedger]:
    return closing(open_ledger(url, journals=()))


def history(url: str) -> list[PlanChange]:
    with ledger_at(url) as ledger:
        return ledger.plan_changes("default")


async def test_what_is_told_is_kept_for_the_user_and_the_agent(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        await made.report(FIVE)
        assert made.turn_ends() == []
    with ledger_at(url) as ledger:
        assert ledger.plans("default") == [PlanState("alice", ALICE.agent, FIVE, NOON, FULL // 2)]


async def test_what_is_no_news_is_noted_once_a_minute(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        for second in range(59):
            await made.report(replace(FIVE, seen_at=NOON + second * 10**9))
        with ledger_at(url) as ledger:
            assert [state.told for state in ledger.plans("default")] == [FIVE]
        await made.report(used(50, 1))
        with ledger_at(url) as ledger:
            assert [state.told for state in ledger.plans("default")] == [used(50, 1)]
    assert len(history(url)) == 1


async def test_a_threshold_is_told_at_the_end_of_the_turn_once(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        await made.report(used(74))
        assert made.turn_ends() == []
        await made.report(used(76, 1))
        (line,) = made.turn_ends()
        assert b'"session/update"' in line
        assert b"75 % of your plan's window (5 h) is reached: 76 % is used." in line
        assert b"It resets at 17:00." in line
        await made.report(used(77, 2))
        assert made.turn_ends() == []
        await made.report(used(96, 3))
        (line,) = made.turn_ends()
        assert b"95 % of" in line  # and not 90 % as well
        await made.report(used(80, 4, resets_at=NOON + 10 * HOUR))
        assert len(made.turn_ends()) == 1  # of the next window


async def test_what_the_ledger_says_later_is_told_with_the_next_prompt_of_the_session(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path, notices=False) as made:
        await made.report(used(91))
        assert made.turn_ends("s2") == []
        started = TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON))
        (line,) = made.see(started)
        assert b"agent_message_chunk" in line
        assert b"90 % of" in line
        assert made.see(started) == []


async def test_a_session_that_was_closed_is_told_nothing(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        await made.report(used(91))
        assert made.see(SessionClosed(NOON, "s1")) == []
        assert made.turn_ends() == []


async def test_of_several_proxies_one_tells_it(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path / "a") as one, proxy(url, tmp_path / "b") as other:
        await one.report(used(91))
        await other.report(used(92, 1))
        assert (len(one.turn_ends()), len(other.turn_ends())) == (1, 0)


async def test_people_elsewhere_are_told_the_highest(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        await made.report(used(96))
    with ledger_at(url) as ledger:
        wanted = Subscription("default", "c", ("plan",))
        claimed = [ledger.outbox.claim(wanted, NOON + 1, NOON + HOUR) for _ in range(2)]
    assert [each.notice.percent for each in claimed if each] == [95]


async def test_a_window_that_is_over_is_no_reason_to_warn(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path) as made:
        await made.report(used(96, resets_at=NOON))
        assert made.turn_ends() == []


async def test_it_is_told_between_whole_lines_before_the_answer_that_ends_the_turn(url: str, tmp_path: Path) -> None:
    worker = LedgerWorker.at(url, {"HOME": str(tmp_path)}, Warnings())
    ends = Ends([Plans(worker, lambda _: ALICE, Proxy._say)])
    try:
        ends.open_session()
        ends.client_says(prompt(7))
        told = update("usage_update", used=1, size=9, _meta={"_claude/rateLimit": LIMIT})
        ends.agent_says(told)
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        worker.do(lambda _: loop.call_soon_threadsafe(done.set))
        await done.wait()
        ends.agent_says(answer(7, stopReason="end_turn"))
        first, warned, last = ends.client.messages
        assert first == told
        assert "95 % of your plan's window" in str(warned)
        assert last["id"] == 7
    finally:
        await asyncio.to_thread(worker.close, 30)


async def test_the_configuration_says_when_and_where_people_are_told(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path, thresholds=(40, 60)) as made:
        await made.report(used(30))
        assert made.turn_ends() == []
        await made.report(used(45, 1))
        (line,) = made.turn_ends()
        assert b"40 % of your plan" in line
        await made.report(used(97, 2))
        (line,) = made.turn_ends()
        assert b"60 % of your plan" in line
    async with proxy(url, tmp_path, thresholds=()) as made:
        await made.report(used(99, 3))
        assert made.turn_ends() == []


async def test_without_the_editor_only_people_elsewhere_are_told(url: str, tmp_path: Path) -> None:
    async with proxy(url, tmp_path, in_editor=False) as made:
        await made.report(used(80))
        assert made.turn_ends() == []
    with closing(open_ledger(url, journals=())) as ledger:
        assert not ledger.announce_plan("default", ledger.plans("default")[0], 75)
