"""The outbox of every ledger: what is noted in it by itself, and that senders share it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Budget, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin
from acp_proxy.core.notice import KINDS, Notice, ledger_is, stopped, threshold_reached
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import OpenTurn, Query, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.notices import RESULTS, Claimed, DeliveryCount, Outbox, Result, Subscription, Undelivered
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME, Open
from tests.ledger.holds import GONE, account, hold
from tests.notify.house import channel, desk
from tests.notify.receiver import receiving

LEASE = MINUTE
ALL = Subscription("default", "team", KINDS)


def refuse(ledger: BudgetLedger, turn: str, of: Budget, origin: Origin = ALICE, now: int = NOON, **rest: Any) -> None:
    opened = OpenTurn(turn, origin, "s1", now, Owner.this(), rest.pop("model", "opus"))
    wants = [(account(of, origin, at=now, turn=turn), HoldSize(1, 1))]
    assert not ledger.hold(opened, wants, now, now + EXPIRY, **rest).admitted


def noted(ledger: BudgetLedger, wanted: Subscription = ALL, now: int = NOON + DAY - 1) -> list[Notice]:
    """What a channel would be sent; it is then claimed for long."""
    found = []
    while claimed := ledger.outbox.claim(wanted, now, now + DAY):
        found.append(claimed.notice)
    return found


def a_notice(number: int = 1, at: int = NOON, of: Budget | None = None) -> Notice:
    return threshold_reached(Standing(account(of or budget("1 USD")), spent=usd("0.5")), number, at)


def claim(ledger: BudgetLedger, now: int, wanted: Subscription = ALL) -> Claimed:
    claimed = ledger.outbox.claim(wanted, now, now + LEASE)
    assert claimed
    return claimed


@ONE_AT_A_TIME
class TestWhatIsNoted:
    def test_a_refusal_once_for_a_user_in_a_window(self, ledger: BudgetLedger) -> None:
        empty = budget("0 USD", per="team", zone="Europe/Berlin")
        carol = replace(ALICE, user="carol")
        for turn, origin in (("a", ALICE), ("b", ALICE), ("c", carol)):
            refuse(ledger, turn, empty, origin)
        assert sorted(str(notice.user) for notice in noted(ledger)) == ["alice", "carol"]
        refuse(ledger, "d", empty, now=NOON + DAY)
        (notice,) = noted(ledger, now=NOON + DAY)
        assert notice == Notice(
            notice.id,
            "refusal",
            "default",
            NOON + DAY,
            detail="used_up",
            budget="daily",
            layer="user",
            per="team",
            value="core",
            unit="USD",
            spent=0,
            held=0,
            limit=0,
            mode="enforce",
            window="day",
            zone="Europe/Berlin",
            resets_at=NOON + DAY + 11 * 60 * MINUTE,
            user="alice",
            team="core",
            project="web",
            agent="claude-agent-acp",
            model="opus",
        )

    def test_a_refusal_for_want_of_a_price_says_so_and_no_other_does(self, ledger: BudgetLedger) -> None:
        refuse(ledger, "a", budget("1 USD", on_unpriced="deny"), unpriced=True, model="made-up")
        refuse(ledger, "b", budget("0 USD", name="denies", on_unpriced="deny"))
        refuse(ledger, "c", budget("0 USD", name="warns"), unpriced=True)
        found = sorted((notice.budget, notice.detail, notice.model) for notice in noted(ledger))
        assert found == [("daily", "unpriced", "made-up"), ("denies", "used_up", "opus"), ("warns", "used_up", "opus")]

    def test_budgets_of_each_turn_are_told_of_once_a_day(self, ledger: BudgetLedger) -> None:
        for turn in "abc":
            refuse(ledger, turn, budget("0 USD", "turn"))
        assert len(noted(ledger)) == 1

    @pytest.mark.parametrize("mode", ["shadow", "warn"])
    def test_what_only_would_be_refused_is_not_told(self, ledger: BudgetLedger, mode: str) -> None:
        opened = OpenTurn("a", ALICE, "s1", NOON, Owner.this(), "opus")
        ledger.hold(opened, [(account(budget("0 USD", mode=mode)), HoldSize(1, 1))], NOON, NOON + EXPIRY)
        assert noted(ledger) == []

    def test_a_model_without_a_price_once_a_day(self, ledger: BudgetLedger) -> None:
        unpriced = row(line("new", cost=None), line("opus"))
        ledger.append([unpriced, row(line("new", cost=None)), row(line(cost=None), cost_source="parent")])
        ledger.append([unpriced, row(line("new", cost=None), at=NOON + DAY), row(line("new", cost=None, input=0))])
        found = noted(ledger, now=NOON + DAY)
        assert [(notice.kind, notice.model, notice.user, notice.at) for notice in found] == [
            ("unpriced", "new", "alice", NOON + MINUTE),
            ("unpriced", "new", "alice", NOON + DAY + MINUTE),
        ]

    def test_no_model_of_a_killed_turn_for_nobody_looked_for_the_price_of_what_it_held(
        self, ledger: BudgetLedger
    ) -> None:
        hold(ledger, "a", (account(budget("1000 tokens")), 300), owner=GONE)
        ledger.settle_dead(NOON)
        (found,) = ledger.rows(Query())
        assert (found.entry.usage.total, found.entry.costs) == (300, ())
        assert noted(ledger) == []

    def test_of_models_that_are_made_up_only_some_are_told_a_day(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(f"{number}" * 10_000, cost=None)) for number in range(100, 150)])
        found = noted(ledger)
        assert len(found) == 20
        assert all(len(notice.model or "") == 200 for notice in found)

    def test_of_these_a_day_goes_from_midnight_to_midnight_and_nothing_else_counts(self, ledger: BudgetLedger) -> None:
        end = NOON + DAY // 2
        ledger.outbox.note(a_notice(number) for number in range(30))
        times = [end, end - DAY - 1, *(end - DAY + number * DAY // 25 for number in range(25))]
        for number, at in enumerate(times):
            ledger.append([row(line(f"{number:02}", cost=None), at=at - MINUTE)])
        found = noted(ledger, replace(ALL, kinds=("unpriced",)), now=end - DAY)
        assert sorted(str(notice.model) for notice in found) == [f"{number:02}" for number in range(22)]

    def test_a_threshold_is_noted_where_it_is_announced(self, ledger: BudgetLedger, another: Open) -> None:
        cap = account(budget("1 USD"))
        assert ledger.announce(cap, 50, a_notice(50))
        assert not another().announce(cap, 50, a_notice(50))
        assert noted(ledger) == [a_notice(50)]

    def test_anything_else_is_noted_once(self, ledger: BudgetLedger, another: Open) -> None:
        standing = Standing(account(budget("1 USD")), spent=usd("2"))
        cancelled = stopped(standing, ALICE, "opus", NOON, "cancel")
        ledger.outbox.note([cancelled, stopped(standing, BOB, "opus", NOON, "cancel")])
        another().outbox.note([cancelled, ledger_is("away", "default", "laptop", NOON, NOON)])
        assert sorted((notice.kind, notice.user) for notice in noted(ledger)) == [
            ("ledger", None),
            ("stop", "alice"),
            ("stop", "bob"),
        ]


class TestWhoSends:
    def test_a_claim_is_for_one_sender_until_it_runs_out(self, ledger: BudgetLedger, another: Open) -> None:
        other = another()
        ledger.outbox.note([a_notice()])
        first = claim(ledger, NOON)
        assert other.outbox.claim(ALL, NOON + LEASE - 1, NOON + 9 * LEASE) is None
        second = claim(other, NOON + LEASE)
        assert (first.tries, second.tries, second.notice) == (1, 2, first.notice)

    def test_of_many_senders_at_once_each_notice_is_claimed_by_one(self, ledger: BudgetLedger, url: str) -> None:
        ledger.outbox.note(a_notice(number) for number in range(12))
        claimed: list[str] = []
        start = threading.Barrier(3)

        def send() -> None:
            with closing(open_ledger(url, journals=())) as own:  # a ledger is of one thread
                start.wait(30)
                claimed.extend(notice.id for notice in noted(own))

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(claimed) == sorted(a_notice(number).id for number in range(12))

    async def test_of_two_notifiers_one_sends(self, url: str) -> None:
        async with receiving() as receiver:
            to = channel(receiver.url)
            async with desk(url, to) as one, desk(url, to) as other:
                await asyncio.to_thread(one.note, *map(a_notice, range(4)))  # PostgreSQL brings its loop
                await asyncio.gather(one.round(), other.round())
                await asyncio.gather(one.round(), other.round())
                assert sorted(body["threshold"] for body in receiver.bodies) == [0, 1, 2, 3]
                assert await asyncio.to_thread(one.counts) == {"sent": 4}

    def test_what_was_sent_or_given_up_is_never_due_again(self, ledger: BudgetLedger) -> None:
        ledger.outbox.note([a_notice(1), a_notice(2)])
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "sent", NOON)
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "failed", NOON, "HTTP 404")
        assert noted(ledger) == []

    def test_what_is_to_be_tried_again_is_due_when_its_time_has_come(self, ledger: BudgetLedger) -> None:
        ledger.outbox.note([a_notice()])
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "retried", NOON + 9 * MINUTE, "HTTP 500")
        assert ledger.outbox.claim(ALL, NOON + 9 * MINUTE - 1, NOON + DAY) is None
        assert claim(ledger, NOON + 9 * MINUTE).tries == 2

    def test_who_lost_a_claim_cannot_undo_what_another_did(self, ledger: BudgetLedger, another: Open) -> None:
        ledger.outbox.note([a_notice()])
        lost = claim(ledger, NOON)
        claim(another(), NOON + LEASE)
        ledger.outbox.settle(ALL, "team", lost, "retried", NOON, "timed out")
        assert ledger.outbox.claim(ALL, NOON + LEASE, NOON + DAY) is None
        assert ledger.delivery_counts("default") == [DeliveryCount("team", "retried", 1)]

    def test_who_looked_before_another_sent_it_gets_nothing_to_send(self, ledger: BudgetLedger, another: Open) -> None:
        ledger.outbox.note([a_notice()])
        other = another()
        assert isinstance(ledger, SqlLedger)

        def read(sql: str, values: Sequence[Any]) -> list[Any]:
            found = ledger._read(sql, values)
            other.outbox.settle(ALL, "team", claim(other, NOON), "sent", NOON)
            return found

        assert Outbox(read, ledger._write, ledger.dialect).claim(ALL, NOON, NOON + LEASE) is None

    def test_what_was_never_tried_goes_before_what_failed_before(self, ledger: BudgetLedger) -> None:
        ledger.outbox.note([a_notice(1)])
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "retried", NOON + 2, "HTTP 500")
        ledger.outbox.note([a_notice(2, NOON + 1)])
        assert [notice.percent for notice in noted(ledger)] == [2, 1]

    def test_what_another_version_noted_and_this_one_does_not_know_is_left_to_it(self, ledger: BudgetLedger) -> None:
        unknown = replace(a_notice(1, NOON - 1), id="unknown", detail="of tomorrow")
        ledger.outbox.note([unknown, a_notice(2)])
        assert [notice.percent for notice in noted(ledger)] == [2]

    def test_what_is_a_day_old_is_no_news(self, ledger: BudgetLedger) -> None:
        ledger.outbox.note([a_notice()])
        assert ledger.outbox.claim(ALL, NOON + DAY, NOON + 2 * DAY) is None

    def test_a_channel_gets_what_it_wants_whatever_others_got(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line("new", cost=None))])
        of_web, of_core = budget("1 USD", name="[web] 100%"), budget("1 USD", name="core")
        ledger.outbox.note([a_notice(1, of=of_web), a_notice(2, of=of_core)])
        for name, kinds, budgets, expected in (
            ("a", KINDS, (), [None, "[web] 100%", "core"]),
            ("b", ("threshold",), (), ["[web] 100%", "core"]),
            ("c", KINDS, ("[web]*",), [None, "[web] 100%"]),
            ("d", ("threshold",), ("c?re", "CORE", "[cd]ore", "%"), []),
            ("e", ("threshold",), ("core", "x*"), ["core"]),
            ("f", ("ledger",), (), []),
        ):
            found = noted(ledger, Subscription("default", name, kinds, budgets))  # type: ignore[arg-type]  # kinds are not texts to mypy
            assert sorted((notice.budget for notice in found), key=str) == sorted(expected, key=str)
        assert noted(ledger, Subscription("another", ALL.channel, ALL.kinds)) == []


@ONE_AT_A_TIME
class TestCounts:
    def test_every_attempt_counts_once(self, ledger: BudgetLedger) -> None:
        ledger.outbox.note([a_notice(1), a_notice(2)])
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "retried", NOON, "HTTP 500")
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "sent", NOON)
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "sent", NOON)
        ledger.outbox.count("default", "team", "failed", 2)
        ledger.outbox.count("default", "another", "sent")
        assert ledger.delivery_counts("default") == [
            DeliveryCount("another", "sent", 1),
            DeliveryCount("team", "failed", 2),
            DeliveryCount("team", "retried", 1),
            DeliveryCount("team", "sent", 2),
        ]
        assert ledger.delivery_counts("another") == []

    @pytest.mark.parametrize("result", RESULTS)
    def test_an_attempt_that_is_told_again_counts_once(self, ledger: BudgetLedger, result: Result) -> None:
        """The ledger's answer may be lost on the way, and what it did not."""
        ledger.outbox.note([a_notice()])
        claimed = claim(ledger, NOON)
        for _ in range(2):
            ledger.outbox.settle(ALL, "team", claimed, result, NOON + MINUTE // 2, "HTTP 500")
        assert ledger.outbox.counts("default") == [DeliveryCount("team", result, 1)]

    def test_a_backlog_is_what_was_not_sent(self, ledger: BudgetLedger) -> None:
        assert ledger.outbox.undelivered(ALL, NOON, NOON) == Undelivered()
        ledger.outbox.note(a_notice(number, NOON + number) for number in range(5))
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "sent", NOON)
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "failed", NOON, "HTTP 404")
        assert ledger.outbox.undelivered(ALL, NOON + DAY, NOON + 4) == Undelivered(waiting=2, failed=("HTTP 404",))
        ledger.outbox.settle(ALL, "team", claim(ledger, NOON), "retried", NOON, "timed out")
        assert ledger.outbox.undelivered(ALL, NOON + 9, NOON + 9) == Undelivered(2, ("timed out",), ("HTTP 404",))
        assert ledger.outbox.undelivered(ALL, NOON + 2 * DAY, NOON + 2 * DAY) == Undelivered()
