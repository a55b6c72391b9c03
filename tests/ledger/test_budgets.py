"""What every ledger does for budgets, on a real database of each backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Budget
from acp_proxy.core.budget.charge import charge
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY, HOUR, Window
from acp_proxy.ledger import Query
from acp_proxy.ledger.accounts.live_standings import live_standings
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, DecisionCount, Grant
from acp_proxy.ledger.open_turns import ABANDONED
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.ledger.sums.buckets import LEVELS, QUARTER_HOUR
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import AND_HUB, EVERYWHERE, ONE_AT_A_TIME, Open
from tests.ledger.holds import (
    CAP,
    ELSEWHERE,
    GONE,
    NOTHING_KNOWN,
    _moments,
    account,
    any_rows,
    ended,
    held,
    hold,
    unique,
)

OF_ALICE, OF_BOB = (budget("1 USD", scope=Scope(user=(name,))) for name in ("alice", "bob"))


@EVERYWHERE
class TestHolds:
    def test_a_hold_counts_until_its_row_is_appended_and_the_row_from_then_on(self, ledger: BudgetLedger) -> None:
        assert hold(ledger, "a", (CAP, "0.4")).admitted
        assert held(ledger, CAP) == (0, usd("0.4"))
        ledger.append([row(line(cost="0.3"), id="a")])
        assert held(ledger, CAP) == (usd("0.3"), 0)

    def test_it_shrinks_to_what_is_left_and_is_refused_when_that_is_nothing(self, ledger: BudgetLedger) -> None:
        assert [amount for _, amount in hold(ledger, "a", (CAP, "0.7")).verdict.holds] == [usd("0.7")]
        assert [amount for _, amount in hold(ledger, "b", (CAP, "0.7")).verdict.holds] == [usd("0.3")]
        refused = hold(ledger, "c", (CAP, "0.7"))
        assert refused.verdict.binding is not None
        assert refused.verdict.binding.held == usd("1")
        assert held(ledger, CAP) == (0, usd("1"))

    def test_a_rolling_window_counts_what_a_clock_dated_up_to_an_hour_ahead_and_nothing_later(
        self, ledger: BudgetLedger
    ) -> None:
        rolling = account(budget("9 USD", window="rolling:24h"), at=NOON)
        for at in (NOON - 24 * HOUR - 1, NOON - MINUTE, NOON + HOUR - 1, NOON + HOUR, NOON + 365 * 24 * HOUR):
            ledger.append([row(line("opus", "1"), at=at)])
        assert held(ledger, rolling) == (usd("2"), 0)
        later = account(budget("9 USD", window="rolling:24h"), at=NOON + HOUR)
        assert held(ledger, later) == (usd("3"), 0)

    def test_rows_of_any_spelling_of_a_currency_count_in_a_budget(self, ledger: BudgetLedger) -> None:
        for spelling in ("USD", "usd", "Usd", " USD", "credits"):
            ledger.append([row(line("opus", "1", spelling))])
        assert held(ledger, CAP) == (usd("4"), 0)

    def test_turns_that_ask_for_one_account_together_all_see_what_is_held(self, ledger: BudgetLedger) -> None:
        rolling = budget("1 USD", window="rolling:24h")
        now, soon = account(rolling), account(rolling, at=NOON + MINUTE)
        assert hold(ledger, "a", (now, "0.4")).admitted
        assert [each.held for each in ledger.standing([now, soon, now], NOON)] == [usd("0.4")] * 3
        assert [each.held for each in ledger.standing([now, soon], NOON + 2 * EXPIRY)] == [0, 0]

    def test_what_is_held_in_one_unit_is_nothing_in_another(self, ledger: BudgetLedger) -> None:
        in_tokens = account(budget("2000 tokens"))
        assert hold(ledger, "a", (account(budget("1 USD")), "0.4")).admitted
        assert held(ledger, in_tokens) == (0, 0)

    def test_what_a_user_holds_under_a_budget_of_their_own_is_nothing_under_anothers_of_that_name(
        self, ledger: BudgetLedger
    ) -> None:
        mine, his = account(OF_ALICE), account(OF_BOB, BOB)
        assert hold(ledger, "a", (mine, "0.4")).admitted
        assert (held(ledger, mine), held(ledger, his)) == ((0, usd("0.4")), (0, 0))
        ledger.append([ended("crashed", NOTHING_KNOWN)])
        assert (held(ledger, mine), held(ledger, his)) == ((usd("0.4"), 0), (0, 0))

    def test_a_week_from_another_day_has_rows_and_holds_of_its_own(self, ledger: BudgetLedger) -> None:
        monday, sunday = (
            account(replace(budget("99 USD"), window=Window("week", week_start=day))) for day in ("monday", "sunday")
        )
        midnight = NOON + 12 * HOUR  # with which a Sunday begins
        ledger.append([row(line(cost="1"), at=midnight - 7 * DAY - 1), row(line(cost="2"), at=midnight - 7 * DAY)])
        ledger.append([row(line(cost="4"), at=midnight - 1), row(line(cost="8"), at=midnight)])
        assert (held(ledger, monday), held(ledger, sunday)) == ((usd("12"), 0), (usd("6"), 0))
        assert hold(ledger, "a", (sunday, "0.4")).admitted
        assert (held(ledger, monday), held(ledger, sunday)) == ((usd("12"), 0), (usd("6"), usd("0.4")))
        ledger.append([row(line(cost="0.3"), id="a")])
        assert (held(ledger, monday), held(ledger, sunday)) == ((usd("12.3"), 0), (usd("6.3"), 0))

    def test_all_accounts_are_held_against_or_none(self, ledger: BudgetLedger) -> None:
        full = account(budget("0 USD", name="nothing"))
        assert not hold(ledger, "a", (CAP, "0.1"), (full, "0.1")).admitted
        assert [standing.held for standing in ledger.standing([CAP, full], NOON)] == [0, 0]

    def test_the_same_turn_holds_once_and_is_answered_as_it_was(self, ledger: BudgetLedger) -> None:
        first = hold(ledger, "a", (CAP, "0.6"))
        again = hold(ledger, "a", (CAP, "0.6"))
        assert again.verdict.holds == first.verdict.holds
        assert held(ledger, CAP) == (0, usd("0.6"))

    def test_a_turn_that_has_its_row_holds_nothing_more(self, ledger: BudgetLedger) -> None:
        ledger.append([row(id="a")])
        assert hold(ledger, "a", (CAP, "0.6")).admitted
        assert held(ledger, CAP) == (usd("0.01"), 0)

    def test_a_turn_that_used_nothing_gives_its_hold_up(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"))
        ledger.release("default", "a")
        assert held(ledger, CAP) == (0, 0)

    def test_a_row_that_came_before_ends_the_hold_all_the_same(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"))
        ledger.append([row(id="b"), row(id="a")])
        ledger.append([row(id="a")])
        assert held(ledger, CAP) == (usd("0.02"), 0)

    def test_budgets_of_other_subjects_are_not_concerned(self, ledger: BudgetLedger) -> None:
        each = budget("1 USD", per="user")
        hold(ledger, "a", (account(each), "1"))
        assert hold(ledger, "b", (account(each, BOB), "1")).admitted
        assert not hold(ledger, "c", (account(each), "1")).admitted

    def test_warning_and_shadow_budgets_refuse_nothing_and_count_what_they_would(self, ledger: BudgetLedger) -> None:
        shadow, warn = (account(budget("1 USD", name=mode, mode=mode)) for mode in ("shadow", "warn"))
        for turn in "ab":
            assert hold(ledger, turn, (shadow, "1"), (warn, "1"), (CAP, "0.1")).admitted
        hold(ledger, "b", (shadow, "1"), (warn, "1"), (CAP, "0.1"))  # asked again
        hold(ledger, "c", (CAP, "2"))
        hold(ledger, "d", (CAP, "2"))
        counts = {(each.budget, each.decision): each.count for each in ledger.decision_counts("default")}
        assert counts == {
            ("shadow", "allow"): 1,
            ("shadow", "shadow_deny"): 1,
            ("warn", "allow"): 1,
            ("warn", "warn"): 1,
            ("daily", "allow"): 3,
            ("daily", "deny"): 1,
        }

    def test_decisions_made_elsewhere_are_counted_too(self, ledger: BudgetLedger) -> None:
        ledger.count_decisions([(CAP, "cancel"), (CAP, "cancel"), (CAP, "fail_open")])
        counts = [(each.decision, each.count) for each in ledger.decision_counts("default")]
        assert counts == [("cancel", 2), ("fail_open", 1)]

    def test_decisions_of_a_budget_for_each_user_are_counted_together(self, ledger: BudgetLedger) -> None:
        each = budget("1 USD", per="user")
        ledger.count_decisions([(account(each), "cancel"), (account(each), "cancel"), (account(each, BOB), "cancel")])
        assert [one.count for one in ledger.decision_counts("default")] == [3]


@EVERYWHERE
class TestExpiry:
    def test_a_hold_counts_until_it_expires_and_longer_with_a_beat(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"), owner=ELSEWHERE)
        assert held(ledger, CAP, NOON + EXPIRY - 1) == (0, usd("0.6"))
        assert held(ledger, CAP, NOON + EXPIRY) == (0, 0)
        ledger.beat("default", ["a", "unknown"], NOON + 2 * EXPIRY)
        assert held(ledger, CAP, NOON + EXPIRY) == (0, usd("0.6"))

    def test_one_that_expired_leaves_others_as_they_are(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.3"), owner=ELSEWHERE)
        hold(ledger, "b", (CAP, "0.5"), now=NOON + 1, owner=ELSEWHERE)
        assert held(ledger, CAP, NOON + EXPIRY) == (0, usd("0.5"))

    def test_a_late_row_still_books(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"), owner=ELSEWHERE)
        ledger.settle_dead(NOON + 2 * EXPIRY)
        ledger.append([row(line(cost="0.5"), id="a")])
        assert held(ledger, CAP, NOON + 2 * EXPIRY) == (usd("0.5"), 0)

    def test_a_turn_of_a_dead_owner_is_booked_once_at_what_it_held(self, ledger: BudgetLedger, another: Open) -> None:
        more, in_credits = account(budget("2 USD", name="more")), account(budget("9 credits", name="credits"))
        hold(ledger, "a", (CAP, "0.6"), (more, "0.7"), (in_credits, "3"), owner=GONE)
        other = another()  # whoever opens a ledger settles
        assert [held(other, each) for each in (CAP, more)] == [(usd("0.6"), 0), (usd("0.7"), 0)]
        assert ledger.settle_dead(NOON) == 0
        (found,) = ledger.rows(Query())
        assert (found.entry.id, found.entry.cost_source, found.entry.model) == ("a", "estimated", "opus")
        assert found.entry.costs == (Money.of("0.6", "USD"), Money.of("3", "credits"))

    def test_held_tokens_are_booked_as_tokens(self, ledger: BudgetLedger) -> None:
        tokens = account(budget("1000 tokens"))
        hold(ledger, "a", (tokens, 300), owner=GONE)
        ledger.settle_dead(NOON)
        assert held(ledger, tokens) == (300, 0)

    def test_a_dead_turn_whose_row_is_refused_bars_nobody_from_the_ledger(
        self, ledger: BudgetLedger, another: Open
    ) -> None:
        most = 2**62
        first, second = (account(budget(f"{most} tokens", name=name)) for name in "ab")
        for turn, tokens in (("a", first), ("b", second)):  # together more than a column holds
            assert hold(ledger, turn, (tokens, most), owner=GONE).admitted
        other = another()
        assert [found.entry.usage.total for found in other.rows(Query())] == [most]
        assert other.settle_dead(NOON) == 0
        assert held(other, second) == (most, 0)

    def test_a_dead_owners_hold_refuses_nobody(self, ledger: BudgetLedger) -> None:
        turns = account(budget("2 turns"))
        hold(ledger, "a", (turns, 1), (CAP, "1"), owner=GONE)
        small = hold(ledger, "b", (turns, 1))
        assert small.admitted
        assert not hold(ledger, "c", (turns, 1)).admitted  # for the dead one's turn was begun, and is booked
        assert held(ledger, turns) == (1, 1)

    def test_a_living_owners_turn_is_never_booked_for_it(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"))
        assert ledger.settle_dead(NOON + EXPIRY) == 0
        assert ledger.settle_dead(NOON + EXPIRY + ABANDONED + 1) == 0  # the machine slept, or its clock was set
        assert list(ledger.rows(Query())) == []

    def test_a_machine_that_sleeps_over_a_long_weekend_books_its_own_turn(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"), owner=ELSEWHERE)
        assert ledger.settle_dead(NOON + 90 * HOUR) == 0  # from Friday at six to Tuesday at noon
        ledger.append([row(line(cost="0.2"), id="a")])
        assert held(ledger, CAP) == (usd("0.2"), 0)

    def test_of_another_host_only_what_was_abandoned_long_ago_is_booked(self, ledger: BudgetLedger) -> None:
        hold(ledger, "a", (CAP, "0.6"), owner=ELSEWHERE)
        assert ledger.settle_dead(NOON + EXPIRY + ABANDONED) == 0
        assert ledger.settle_dead(NOON + EXPIRY + ABANDONED + 1) == 1


@AND_HUB
class TestStandings:
    @pytest.mark.parametrize(
        "of",
        [
            budget("9 USD"),
            budget("9 USD", per="user"),
            budget("9 EUR", "month", zone="Europe/Berlin"),
            budget("9 EUR", "quarter", rates=(("USD", 2 * 10**9),)),
            budget("9 tokens", "rolling:5h"),
            budget("9 USD", "rolling:1h", per="team"),
            budget("9 turns", "week", zone="Asia/Kathmandu"),
            budget("9 turns", "total", scope=Scope(model=("op*", "haiku"))),
            budget("9 USD", "quarter", scope=Scope(model=("op*",), user=("alice", "carol"))),
            budget("9 USD", "session"),
            budget("9 USD", "turn"),
            budget("9 USD", "total", scope=Scope(project=("w[e]b", "*eb"), agent=("claude*",))),
            budget("9 USD", "total", layer="flag"),
        ],
        ids=lambda of: f"{of.limit.unit} {of.window.text} {of.per} {dict(of.scope.texts)} {of.layer}",
    )
    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_spend_is_what_all_rows_charge(self, ledger: BudgetLedger, of: Budget, data: st.DataObject) -> None:
        organisation = f"org {sum(1 for _ in ledger.rows(Query()))}"  # examples share the ledger
        rows = [unique(each, number, organisation) for number, each in enumerate(data.draw(any_rows))]
        ledger.append(rows)
        origin = replace(ALICE, organisation=organisation)
        one = account(of, origin, at=data.draw(_moments), turn=rows[0].entry.id if rows else "t")
        (standing,) = ledger.standing([one], NOON)
        assert standing.spent == sum(charge(one, each.origin, each.entry, process=each.process) for each in rows)

    def test_other_currencies_and_unknown_prices_are_reported_beside_the_sum(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(cost="1")), row(line(cost="2", currency="credits")), row(line(cost=None))])
        ledger.append([row(line(cost=None), cost_source="parent", kind="subagent")])
        (standing,) = ledger.standing([account(budget("9 USD"))], NOON)
        assert (standing.spent, standing.not_counted) == (usd("1"), (Money.of("2", "credits"),))
        assert standing.unpriced == 1

    @pytest.mark.parametrize("window", ["day", "session"])  # from totals, and from rows
    def test_a_rate_is_that_of_the_configuration_also_for_what_was_spent_before(
        self, ledger: BudgetLedger, window: str
    ) -> None:
        ledger.append([row(line(cost="1"), line("haiku", "2", "EUR")), row(line(cost="3", currency="credits"))])
        for nano, spent in ((900_000_000, "2.9"), (1_100_000_000, "3.1")):
            one = account(budget("9 EUR", window, rates=(("USD", nano),)))
            hold(ledger, "first", (one, 1))  # from now on its sum is kept
            ledger.release("default", "first")
            (found,) = ledger.standing([one], NOON)
            assert (found.spent, found.not_counted) == (usd(spent), (Money.of("3", "credits"),))

    @pytest.mark.parametrize("window", ["day", "session"])  # from totals, and from rows
    @pytest.mark.parametrize(("models", "unpriced"), [((), 1), (("op*",), 2)])
    def test_only_what_used_tokens_of_its_own_lacks_a_price(
        self, ledger: BudgetLedger, window: str, models: tuple[str, ...], unpriced: int
    ) -> None:
        ledger.append([row(line("opus", None), line("opera", None), line("haiku")), row(line("opus", None, input=0))])
        ledger.append([row(line("opus", None), cost_source="parent", kind="subagent")])
        (standing,) = ledger.standing([account(budget("9 USD", window, scope=Scope(model=models)))], NOON)
        assert standing.unpriced == unpriced

    @pytest.mark.parametrize("window", ["day", "rolling:1h", "session", "total"])
    def test_rows_of_which_not_all_was_told_are_reported_beside_the_sum(
        self, ledger: BudgetLedger, window: str
    ) -> None:
        """From totals, from rows and, once something is held, from sums that are kept."""
        accounts = [
            account(budget(limit, window, f"{limit} {models}", scope=Scope(model=models)))
            for limit in ("9 USD", "9000 tokens", "9 turns")
            for models in ((), ("opus",))
        ]
        told = ledger.standing(accounts, NOON)
        assert [each.untold for each in told] == [0] * 6
        ledger.append([row(line("opus"), line("opus", "1", "credits"), line("haiku"), usage_source="partial")])
        ledger.append([row(line("haiku"), usage_source="partial", cost_source="agent")])
        ledger.append([row(line(None, None, input=0), usage_source="none", cost_source="unknown"), row()])
        for _ in range(2):
            assert [each.untold for each in ledger.standing(accounts, NOON)] == [2, 1, 3, 1, 0, 0]
            for each in accounts:
                hold(ledger, "kept", (each, 1), owner=ELSEWHERE)
            ledger.release("default", "kept")
        ledger.append([row(line("opus"), line("haiku"), usage_source="partial")])
        assert [each.untold for each in ledger.standing(accounts, NOON)] == [3, 2, 4, 2, 0, 0]

    def test_many_accounts_are_answered_one_by_one(self, ledger: BudgetLedger) -> None:
        ledger.append([row(), row(origin=BOB)])
        each = budget("9 USD", per="user")
        found = ledger.standing([account(each), account(budget("9 turns")), account(each, BOB)], NOON)
        assert [standing.spent for standing in found] == [usd("0.01"), 2, usd("0.01")]
        assert ledger.standing([], NOON) == []

    def test_any_number_of_accounts_is_answered(self, ledger: BudgetLedger) -> None:
        ledger.append([row(), row(origin=BOB)])
        each = [account(budget("9 USD", per="user"), origin) for origin in (ALICE, BOB)]
        found = ledger.standing([*each[:1] * 600, *each[1:]], NOON)
        assert [standing.spent for standing in found] == [usd("0.01")] * 601

    def test_where_estimates_count_a_turn_without_a_price_charges_its_hold(self, ledger: BudgetLedger) -> None:
        estimating = account(budget("9 USD", name="estimating", on_unpriced="estimate"))
        hold(ledger, "a", (estimating, "0.6"), (CAP, "0.6"))
        hold(ledger, "b", (estimating, "0.6"), (CAP, "0.4"))
        ledger.append([row(line(cost=None), id="a"), row(line(cost="0.2"), id="b")])
        assert held(ledger, estimating) == (usd("0.8"), 0)
        assert held(ledger, CAP) == (usd("0.2"), 0)

    def test_what_it_cost_in_a_currency_that_has_a_rate_is_part_of_that_hold(self, ledger: BudgetLedger) -> None:
        estimating = account(budget("9 EUR", on_unpriced="estimate", rates=(("USD", 10**9 // 2),)))
        for turn, cost in (("a", "0.4"), ("b", "2")):
            hold(ledger, turn, (estimating, "0.6"))
            ledger.append([row(line(cost=cost), line("new", None), id=turn)])
        assert held(ledger, estimating) == (usd("0.6") + usd("1"), 0)

    def test_what_such_a_turn_charges_counts_in_the_window_in_which_it_began(self, ledger: BudgetLedger) -> None:
        of = account(budget("99 USD", on_unpriced="estimate"))
        midnight, next_one = NOON - 12 * HOUR, NOON + 12 * HOUR
        for amount, at in (("1", midnight - 1), ("2.5", midnight), ("4.5", next_one - 1), ("8", next_one)):
            hold(ledger, amount, (of, amount), owner=ELSEWHERE)
            ledger.append([row(line(cost=None), id=amount, at=at)])
        assert held(ledger, of) == (usd("7"), 0)

    @pytest.mark.parametrize("models", [("opus",), ("op*",), ("opus", "haiku"), ("*",)])
    @pytest.mark.parametrize("of", [{"window": "total"}, {"zone": "Asia/Kathmandu"}, {"window": "rolling:9h"}])
    def test_a_turn_of_several_models_is_one_turn_of_those_in_scope(
        self, ledger: BudgetLedger, of: dict[str, str], models: tuple[str, ...]
    ) -> None:
        """Also at both ends of a window, wherever it cuts the days and hours of UTC, and of time."""
        now = NOON + 7 * MINUTE
        one = account(budget("99 turns", scope=Scope(model=models), **of), at=now)
        first, last = -(2**63), 2**63 - 1 - MINUTE
        start, end = one.bounds.start or first, one.bounds.end or last
        times = [start, start + 1, start + 15 * MINUTE, NOON - 1, now, end - 15 * MINUTE, end - 1, end]
        times += [first, first + 24 * HOUR, NOON - 24 * HOUR, last - 24 * HOUR, last]
        several = [line("opera"), line("opus"), line("opus", "1", "EUR"), line("haiku"), line(None)]
        rows = [row(*several[number:], *several[:number], at=at) for at in times for number in range(5)]
        rows += [row(*several, at=NOON, kind="side"), row(*several, at=NOON, origin=replace(ALICE, organisation="b"))]
        rows += [row(each, at=NOON) for each in several]
        ledger.append(rows)
        assert held(ledger, one, now) == (sum(charge(one, each.origin, each.entry) for each in rows), 0)

    def test_sums_beyond_a_column_are_exact(self, ledger: BudgetLedger) -> None:
        most = Money(2**63 - 1, "USD").text
        ledger.append([row(line(cost=most)), row(line(cost=most)), row(line(cost="0.000000003"))])
        assert held(ledger, CAP) == (2**64 + 1, 0)
        assert ledger.summed(Query(), ("user",))[0].costs == (Money(2**64 + 1, "USD"),)

    def test_totals_made_anew_are_those_that_were_counted(self, ledger: BudgetLedger) -> None:
        ledger.append(
            [
                row(
                    line("opus", f"0.{number}"),
                    line(None, None),
                    at=NOON - number**4 * MINUTE,
                    origin=(ALICE, BOB)[number % 2],
                )
                for number in range(1, 40)
            ]
        )
        tokens: dict[str, Any] = {"input": 1, "cached_read": 2, "cached_write": 3, "output": 4, "thought": 5}
        alike = (line("new", None, **tokens), line("opus", "1.5", **tokens))  # and in one quarter hour
        ledger.append([row(*alike) for _ in range(2)])
        ledger.append([row(line(kind, None, **{kind: tokens[kind]})) for kind in tokens])
        questions = (("model",), ("quarter_hour",), ("user", "kind"), ())
        counted = [sorted(ledger.summed(Query(), by), key=repr) for by in questions]
        ledger.rebuild()
        assert [sorted(ledger.summed(Query(), by), key=repr) for by in questions] == counted
        ledger.append([row(line("opus", "0.5"))])
        assert ledger.summed(Query(), ())[0].rows == 47

    def test_made_anew_they_count_a_row_once_that_begins_where_a_bucket_does(self, ledger: BudgetLedger) -> None:
        four_weeks = LEVELS[-1] * QUARTER_HOUR
        for start in (NOON // four_weeks * four_weeks, 0, -four_weeks):
            ledger.append([row(at=start), row(at=start - 1)])
        assert ledger.rebuild()
        assert [sums.rows for sums in ledger.summed(Query(), ())] == [6]

    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_sums_are_those_of_the_rows_whatever_the_interval(self, ledger: BudgetLedger, data: st.DataObject) -> None:
        organisation = f"org {sum(1 for _ in ledger.rows(Query()))}"
        rows = [unique(each, number, organisation) for number, each in enumerate(data.draw(any_rows))]
        ledger.append(rows)
        since, until = data.draw(st.none() | _moments), data.draw(st.none() | _moments)
        model = data.draw(st.sampled_from([(), (("model", "opus"),), (("team", None),)]))
        by = data.draw(
            st.sampled_from([(), ("model",), ("user", "agent"), ("quarter_hour",), ("usage_source", "team")])
        )
        query = Query(since, until, (("organisation", organisation), *model))
        # By host nothing is in the totals: that is counted from the rows.
        from_rows = ledger.summed(replace(query, where=(*query.where, ("host", "laptop"))), by)
        assert sorted(map(comparable, ledger.summed(query, by))) == sorted(map(comparable, from_rows))


def comparable(sums: Any) -> str:
    return repr(replace(sums, costs=tuple(sorted(sums.costs, key=lambda cost: cost.currency))))


@EVERYWHERE
class TestGrants:
    def grant(self, name: str, **rest: Any) -> Grant:
        fields = {"value": None, "amount": usd("5"), "unit": "USD", "at": NOON, "until": NOON + 2 * HOUR}
        return Grant(name, "default", "user", "daily", **{**fields, **rest}, who="carol", why="a deadline")

    def test_they_add_up_while_they_last_and_leave_the_limit_alone(self, ledger: BudgetLedger) -> None:
        for name in ("a", "b", "b"):
            ledger.grant(self.grant(name))
        granted = [ledger.standing([CAP], NOON + at)[0].granted for at in (-1, 0, 2 * HOUR - 1, 2 * HOUR)]
        assert granted == [0, usd("10"), usd("10"), 0]
        assert hold(ledger, "t", (CAP, "11")).verdict.holds[0][1] == usd("11")

    def test_each_is_counted_once_as_a_decision(self, ledger: BudgetLedger) -> None:
        for name in ("a", "a", "b"):
            ledger.grant(self.grant(name))
        ledger.grant(self.grant("c", value="alice"))
        assert ledger.decision_counts("default") == [DecisionCount("user", "daily", "grant", 3)]

    def test_one_for_a_value_is_that_values(self, ledger: BudgetLedger) -> None:
        each = budget("1 USD", per="user")
        ledger.grant(self.grant("a", value="alice"))
        found = ledger.standing([account(each), account(each, BOB)], NOON)
        assert [standing.granted for standing in found] == [usd("5"), 0]

    def test_one_for_no_value_is_everybodys(self, ledger: BudgetLedger) -> None:
        each = budget("1 USD", per="user")
        ledger.grant(self.grant("a"))
        found = ledger.standing([account(each), account(each, BOB)], NOON)
        assert [standing.granted for standing in found] == [usd("5"), usd("5")]

    def test_one_for_a_users_own_budget_is_not_anothers_who_has_one_of_that_name(self, ledger: BudgetLedger) -> None:
        ledger.grant(self.grant("a", value="alice"))
        found = ledger.standing([account(OF_ALICE), account(OF_BOB, BOB)], NOON)
        assert [standing.granted for standing in found] == [usd("5"), 0]
        ledger.grant(self.grant("b"))  # by an acp-proxy that knew no owners
        found = ledger.standing([account(OF_ALICE), account(OF_BOB, BOB)], NOON)
        assert [standing.granted for standing in found] == [usd("10"), usd("5")]

    def test_of_another_budget_layer_or_unit_they_do_not_count(self, ledger: BudgetLedger) -> None:
        ledger.grant(self.grant("a", unit="tokens"))
        ledger.grant(replace(self.grant("b"), layer="admin"))
        ledger.grant(replace(self.grant("c"), budget="other"))
        ledger.grant(replace(self.grant("d"), organisation="other"))
        assert ledger.standing([CAP], NOON)[0].granted == 0

    def test_all_are_kept_with_who_and_why(self, ledger: BudgetLedger) -> None:
        late, early = self.grant("a", at=NOON + 1), self.grant("b", until=NOON + 1)
        ledger.grant(late)
        ledger.grant(early)
        assert ledger.grants("default") == [early, late]
        assert ledger.grants("default", NOON) == [early]
        assert ledger.grants("other") == []


class TestAnnouncements:
    def test_a_threshold_is_announced_by_one_caller_ever(self, ledger: BudgetLedger, another: Open) -> None:
        assert [each.announce(CAP, 80) for each in (ledger, another(), ledger)] == [True, False, False]
        assert ledger.announce(CAP, 90)
        assert another().announce(account(budget("1 USD"), at=NOON + 24 * HOUR), 80)


class TestRecentCosts:
    def test_the_latest_come_first_by_agent_or_by_model_and_user_too(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(cost=f"0.{number}"), at=NOON + number) for number in range(1, 5)])
        ledger.append(
            [row(line("haiku", "7"), origin=replace(BOB, agent=ALICE.agent)), row(origin=replace(ALICE, agent="x"))]
        )
        dimes = [usd("0.4"), usd("0.3"), usd("0.2"), usd("0.1")]
        assert ledger.recent_costs("default", ALICE.agent, "USD") == [*dimes, usd("7")]
        assert ledger.recent_costs("default", ALICE.agent, "USD", n=2) == dimes[:2]
        assert ledger.recent_costs("default", ALICE.agent, "USD", model="opus", user="alice") == dimes
        assert ledger.recent_costs("default", ALICE.agent, "USD", model="haiku", user="alice") == []
        assert ledger.recent_costs("default", ALICE.agent, "tokens", n=1) == [110]

    def test_a_turn_of_two_models_took_what_both_did(self, ledger: BudgetLedger) -> None:
        tokens: dict[str, Any] = {"input": 1, "cached_read": 20, "cached_write": 300, "output": 4000, "thought": 50_000}
        ledger.append([row(line("opus", "0.3", **tokens), line("haiku", "0.2", input=6), line("haiku", "9", "EUR"))])
        assert ledger.recent_costs("default", ALICE.agent, "USD", model="haiku") == [usd("0.5")]
        assert ledger.recent_costs("default", ALICE.agent, "tokens") == [54_321 + 6 + 110]

    def test_what_has_no_price_and_what_is_no_turn_is_left_out(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(cost=None)), row(kind="side"), row(line(cost="1", currency="EUR"))])
        assert ledger.recent_costs("default", ALICE.agent, "USD") == []
        assert ledger.recent_costs("default", ALICE.agent, "EUR") == [usd("1")]

    def test_a_turn_whose_tokens_nobody_told_and_one_that_failed_at_once_say_nothing_of_tokens(
        self, ledger: BudgetLedger
    ) -> None:
        ledger.append([row(line(input=0), usage_source="partial"), row(line(cost=None, input=0)), row(line(cost="0"))])
        assert ledger.recent_costs("default", ALICE.agent, "tokens") == [110]
        assert sorted(ledger.recent_costs("default", ALICE.agent, "USD")) == [0, usd("0.01")]

    def test_only_the_last_thousand_are_looked_through(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line("rare"), at=NOON), *(row(at=NOON + number) for number in range(1, 1000))])
        assert len(ledger.recent_costs("default", ALICE.agent, "USD", model="rare")) == 1
        ledger.append([row(at=NOON + 1000)])
        assert ledger.recent_costs("default", ALICE.agent, "USD", model="rare") == []


@ONE_AT_A_TIME
def test_no_question_grows_with_the_number_of_accounts_that_are_held_against(ledger: BudgetLedger) -> None:
    assert isinstance(ledger, SqlLedger)
    one = account(budget("9 USD", "turn"))
    hold(ledger, "t", (one, "1"))

    def longest(number: int) -> int:
        """How many values a statement has; PostgreSQL takes 32,767."""
        asked: list[int] = []

        def read(sql: str, values: Sequence[Any]) -> list[Any]:
            asked.append(len(values))
            return ledger._read(sql, values)

        live_standings(read, [one] * number, NOON, ledger.dialect, ledger.settle_dead)
        return max(asked)

    assert longest(600) == longest(50)
