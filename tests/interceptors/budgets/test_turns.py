"""Prompts that were admitted: what each holds, has cost and leaves to others, whichever of them ends first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.charge import SoFar
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import ContextChanged
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Scope
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import CAP, NOTHING_KNOWN, account, ended

OF_RUN = account(budget("1 USD", "total", "--budget", layer="flag"))  # of process p1


def running(id: str, *accounts: Account, held: str = "0.5", until: int = NOON + 1, session: str = "s1") -> Running:
    some = accounts or (CAP,)
    held_by = {each.key: usd(held) for each in some}
    return Running(id, session, ALICE, "opus", some, until, tuple(map(Standing, some)), held_by)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def cost(turns: Turns, amount: str) -> dict[str, int]:
    """What the turn of the session has cost, when the session has cost so much."""
    turns.costs.hear(ContextChanged(NOON, "s1", SessionState(costs=(Money.of(amount, "USD"),))))
    return turns.costs.of("s1")


def begun(turns: Turns, *some: Running) -> None:
    for turn in some:
        turns.add(turn)
        turns.start(turn.id)


class TestCosts:
    def test_of_two_turns_the_older_one_has_what_the_session_costs_until_it_ends(self, turns: Turns) -> None:
        older, newer = running("a"), running("b")
        begun(turns, older)
        assert cost(turns, "0.1") == {"USD": usd("0.1")}
        begun(turns, newer)
        assert cost(turns, "0.3") == {"USD": usd("0.3")}
        turns.end(older)
        assert cost(turns, "0.4") == {"USD": usd("0.1")}

    def test_a_newer_turn_that_ends_leaves_it_to_the_older_one(self, turns: Turns) -> None:
        older, newer = running("a"), running("b")
        begun(turns, older, newer)
        assert cost(turns, "0.1") == {"USD": usd("0.1")}
        turns.end(newer)
        assert cost(turns, "0.3") == {"USD": usd("0.3")}

    def test_what_a_session_costs_between_its_turns_is_of_neither(self, turns: Turns) -> None:
        first = running("a")
        begun(turns, first)
        turns.end(first)
        cost(turns, "0.4")
        begun(turns, running("b"))
        assert cost(turns, "0.5") == {"USD": usd("0.1")}


class TestStandings:
    def test_the_ledgers_word_has_the_turns_own_holds_among_the_rest(self) -> None:
        other = account(budget("9 USD", name="other"))
        turn = running("a", CAP)
        turn.stand([Standing(CAP, held=usd("0.7")), Standing(other, held=usd("0.2"))])
        assert [each.held for each in turn.standings] == [usd("0.2"), usd("0.2")]
        turn.stand([Standing(CAP, held=usd("0.1"))])
        assert [each.held for each in turn.standings] == [0]

    def test_what_other_turns_are_charged_counts_until_the_ledger_says_it(self, turns: Turns) -> None:
        turn, other = running("a"), running("b")
        begun(turns, turn, other)
        turns.charge(other, row(line(cost="0.3"), id="b").entry, None)
        assert [(each.spent, own) for each, own in turn.with_spend()] == [(usd("0.3"), 0)]
        assert [(each.spent, own) for each, own in other.with_spend()] == [(0, usd("0.3"))]
        turn.stand([Standing(CAP, spent=usd("0.3"))])
        assert [(each.spent, own) for each, own in turn.with_spend(lambda _: {"USD": 7})] == [(usd("0.3"), 7)]

    def test_a_row_beside_a_turn_counts_with_what_is_told_of_it_until_the_ledger_says_it(self, turns: Turns) -> None:
        turn = running("a", account(budget("1 USD", on_exceed="cancel")))
        begun(turns, turn)
        cost(turns, "0.6")
        turns.charge(turn, row(line(cost="0.4"), id="beside", kind="autonomous").entry, None)

        def told(scope: Scope) -> dict[str, int]:
            return turns.costs.of("s1", scope)

        def used_up(total: str) -> bool:
            cost(turns, total)
            assert [each.spent + own for each, own in turn.with_spend(told)] == [usd(total)]
            return turn.exceeded(lambda of: SoFar(told(of.filter.scope)["USD"])) is not None

        assert [used_up("0.6"), used_up("1"), used_up("1.01")] == [False, False, True]
        turn.stand([Standing(turn.accounts[0], spent=usd("0.4"))])
        assert [used_up("0.6"), used_up("1"), used_up("1.01")] == [False, False, True]

    def test_what_a_turn_cost_that_ended_before_an_older_one_is_not_told_of_that_one_too(self, turns: Turns) -> None:
        older, newer = running("a"), running("b")
        begun(turns, older, newer)
        cost(turns, "0.1")
        told = cost(turns, "0.4")  # and 0.3 of it are in the row of the newer one, as it was cancelled
        assert told == {"USD": usd("0.4")}
        turns.charge(newer, row(line(cost="0.3"), id="b").entry, None)
        turns.end(newer)
        assert [(each.spent, own) for each, own in older.with_spend(lambda _: turns.costs.of("s1"))] == [
            (usd("0.3"), usd("0.1"))
        ]

    @pytest.mark.parametrize(("process", "charged"), [("p1", "0.3"), ("p2", "0"), (None, "0")])
    def test_a_budget_of_a_run_is_charged_for_that_run(self, process: str | None, charged: str) -> None:
        turn = running("a", OF_RUN)
        assert turn.charge(row(line(cost="0.3"), id="a").entry, process) == {OF_RUN.key: usd(charged)}

    def test_a_turn_is_charged_what_it_held_where_nobody_will_tell_its_cost(self) -> None:
        estimating = account(budget("1 USD", name="estimating", on_unpriced="estimate"))
        turn = running("a", estimating, CAP)
        unpriced, lost = row(line("new", None), id="a").entry, ended("crashed", NOTHING_KNOWN).entry
        assert turn.charge(unpriced, None) == {estimating.key: usd("0.5"), CAP.key: 0}
        assert turn.charge(lost, None) == {estimating.key: usd("0.5"), CAP.key: usd("0.5")}
        turn.held.clear()
        assert turn.charge(lost, None) == {estimating.key: 0, CAP.key: 0}

    def test_what_a_turn_held_is_charged_for_its_own_row_alone(self) -> None:
        estimating = account(budget("1 USD", name="estimating", on_unpriced="estimate"))
        turn = running("a", estimating)
        beside = row(line("new", None), id="beside", kind="side").entry
        assert turn.charge(beside, None) == {estimating.key: 0}

    def test_a_budget_that_lets_turns_end_hides_none_that_stops_them(self) -> None:
        patient = account(budget("1 USD", name="patient"))
        strict = account(budget("1 USD", name="strict", on_exceed="cancel"))
        turn = running("a", patient, strict)
        exceeded = turn.exceeded(lambda _: SoFar(usd("1.5")))
        assert exceeded
        assert (exceeded.verdict, exceeded.standing.account) == ("cancel", strict)
        assert running("b", patient).exceeded(lambda _: SoFar(usd("1.5"))) is None
        assert [some.may_be_stopped for some in (turn, running("b", patient))] == [True, False]

    @pytest.mark.parametrize(
        ("so_far", "spent", "estimated"),
        [("0", "1.5", False), ("1.499999999", "1.5", False), ("1.5", "1.5", True), ("1.6", "1.6", True)],
    )
    def test_a_turn_has_cost_what_its_rows_charge_or_what_is_told_whichever_is_more(
        self, so_far: str, spent: str, estimated: bool
    ) -> None:
        strict = account(budget("1 USD", on_exceed="cancel"))
        turn = running("a", strict)
        turn.charge(row(line(cost="1.5"), kind="subagent").entry, None)
        exceeded = turn.exceeded(lambda _: SoFar(usd(so_far), estimated=True))
        assert exceeded
        assert (exceeded.standing.spent, exceeded.estimated) == (usd(spent), estimated)

    def test_the_current_turn_is_the_sessions_own_that_has_begun_and_not_ended(self, turns: Turns) -> None:
        ended, other, waiting, mine = running("a"), running("b", session="s2"), running("c"), running("d")
        turns.add(waiting)
        begun(turns, ended, other)
        turns.end(ended)
        assert turns.current("s1") is None
        begun(turns, mine)
        assert turns.current("s1") is mine


class TestLease:
    def test_it_is_what_ended_turns_hold_and_did_not_use_less_what_others_took_of_it(self, turns: Turns) -> None:
        ended, runs = running("a"), running("b", held="0.9")
        begun(turns, ended, runs)
        assert turns.lease(CAP.key, NOON) == 0
        turns.charge(ended, row(line(cost="0.2"), id="a").entry, None)
        turns.end(ended)
        assert turns.lease(CAP.key, NOON) == usd("0.3")
        runs.leased[CAP.key] = usd("0.1")
        assert turns.lease(CAP.key, NOON) == usd("0.2")
        assert turns.lease("another", NOON) == 0
        turns.add(replace(running("c", held="0.05"), ended=True))
        assert turns.lease(CAP.key, NOON) == usd("0.25")

    def test_a_look_at_the_ledger_gives_nothing_back_of_what_an_ended_turn_used(self, turns: Turns) -> None:
        ended = running("a")
        begun(turns, ended)
        turns.charge(ended, row(line(cost="0.2"), id="a").entry, None)
        turns.end(ended)
        ended.stand([Standing(CAP, held=usd("0.5"))])  # its row is still on its way
        assert turns.lease(CAP.key, NOON) == usd("0.3")

    def test_what_has_expired_in_the_ledger_is_no_lease(self, turns: Turns) -> None:
        ended = replace(running("a"), ended=True)
        turns.add(ended)
        assert [turns.lease(CAP.key, ended.until + late) for late in (-1, 0)] == [usd("0.5"), 0]
