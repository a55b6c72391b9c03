"""Sessions of agents that go on with their cost in each new process, through kills, crashes, cancels and loads.

What budgets must have counted is worked out here from what the agent's calls cost: what it tells once, and of a turn
that was killed before it told anything the larger of what the turn held and what is told of it later. More is counted
only where nobody can tell both apart: at most what such a turn held.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Counters, Event, Turn, TurnMetered, TurnStarted
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.journal.recovery import recover
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, NOON
from tests.core.accounts import budget
from tests.core.story import CLAUDE, OPENCODE, PRICES, UNKNOWN_AGENT, Story
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import account, held
from tests.ledger.warned import Warnings

pytestmark = ONE_AT_A_TIME

MODEL = "claude-opus-5-5"
SMALL, LARGE = account(budget("100 USD", "total", "small")), account(budget("9000 USD", "total", "large"))
TENTH = 10**8  # of a dollar
SHORT, LONG = [4000, 4000], [60_000, 4000]
numbers = itertools.count(1)

Step = tuple[str, list[int], int]  # what happens; the sizes of the turn's calls; after how many a cost is told


def usage(size: int) -> Usage:
    return Usage(input=size, output=size // 10)


def price(size: int) -> int:
    cost = PRICES.price(MODEL, usage(size), 0).cost
    assert cost is not None
    return cost.nano


class Proxy(Story):
    """One process, with its rows in a ledger, and a journal that is left behind when it is killed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.journal = open_journal([session.directory], session.ledger.url, Warnings())
        self.unfinished = Unfinished()
        self.slots: dict[str, int | None] = {}
        super().__init__(session.agent, estimate=session.estimate)

    def _name(self, what: str) -> str:
        return f"{next(numbers):08} {what}"

    def now(self) -> int:
        return NOON + next(numbers)

    def tell(self, event: Event) -> list[Entry]:
        before, origin = len(self.events), self.session.origin
        rows = super().tell(event)
        for each in (event, *self.events[before:]):
            if (unfinished := self.unfinished.on_event(each)) is not None:
                row = Row(origin, unfinished, self.unfinished.state_of(each))
                self.slots[unfinished.id] = self.journal.write_open(row, self.slots.get(unfinished.id))
            if isinstance(each, TurnMetered):
                self.session.ledger.append([Row(origin, each.entry, each.state)], in_order=True)
                if (slot := self.slots.pop(each.entry.id, None)) is not None:
                    self.journal.done(slot)
        return rows

    def prompt(self) -> Turn:
        turn = Turn(self._name("turn"), "s", "turn", self.now())
        opened = OpenTurn(turn.id, self.session.origin, "s", turn.started_at, Owner.this(), MODEL)
        wants = [(each, HoldSize(size, 1)) for each, size in self.session.holds]
        assert self.session.ledger.hold(opened, wants, turn.started_at, turn.started_at + EXPIRY).admitted
        self.tell(TurnStarted(turn.started_at, "s", turn))
        return turn


@dataclass
class Session:
    """With what its agent has spent, and what budgets must have counted of that; amounts are nano-dollars."""

    agent: tuple[str, str]
    ledger: BudgetLedger
    directory: Path
    smaller: int  # what each turn holds of one budget
    more: int  # and of the other beyond that
    estimate: bool = False
    stands: int = 0  # the agent's cost
    told: int = 0  # ... as it was told last
    counted: int = 0
    presumed: int = 0  # of that, for turns that were killed since a cost was told
    unsure: int = 0  # all that was ever booked of turns that told nothing
    beside: int = 0  # what the larger budget counts beyond the smaller
    loaded: bool = False  # and nothing was told since
    older: int = 0  # what it had cost before there was a ledger

    def __post_init__(self) -> None:
        self.origin = replace(ALICE, organisation=f"org {next(numbers)}", agent=self.agent[0])
        own = [account(each.budget, self.origin) for each in (SMALL, LARGE)]
        self.holds: list[tuple[Account, int]] = [(own[0], self.smaller), (own[1], self.smaller + self.more)]
        self.proxy = Proxy(self)
        self.proxy.open("load" if self.older else "new", model=MODEL)
        self.stands = self.told = self.older

    @property
    def spent(self) -> tuple[int, int]:
        small, large = [held(self.ledger, of) for of, _ in self.holds]
        assert small[1] == large[1] == 0
        return small[0], large[0]

    def live(self, conversation: Sequence[Step]) -> None:
        """At the end all is told that its agent spent."""
        for step in (*conversation, ("loads", [], 0), ("turns", [4000], 0)):
            self.take(step)

    def take(self, step: Step) -> None:
        match step:
            case "turns", used, told:
                self.turn(used, told)
            case "fails", *_:
                self.proxy.end(self.proxy.prompt(), stop="error", updates=0)
            case "is silent", used, _:  # cancelled: its last call does not end, its cost comes with the next turn
                self.cut_short(used, 0)
            case "is killed", used, told:
                self.kill(used, told)
            case "crashes", used, told:
                self.crash(used, told)
            case "loads", *_:
                self.load()
            case "loads and tells", *_:
                self.load()
                self.tell(None)
                if self.stands > self.told:
                    self.counted += max(0, self.stands - self.told - self.presumed)
                    self.presumed = 0
                self.told, self.loaded = self.stands, False
            case "loads slowly", used, told:
                state = self.load(slowly=True)
                self.turn(used, told)
                self.proxy.restore(state)

    def turn(self, used: Sequence[int], told: int) -> None:
        turn = self.proxy.prompt()
        self.call(turn, used, told)
        self.tell(turn)
        of_turn = used[-1:] if self.agent == OPENCODE else used
        whole = sum(map(usage, of_turn), NOTHING)
        counters = Counters(whole.input, whole.output, whole.total)
        self.proxy.end(turn, counters, tool_calls=len(used) - 1)
        own, grown = sum(map(price, used)), self.stands - self.told
        apart = self.loaded and of_turn == used  # else nobody knows how much of it was spent before
        self.counted += own + max(0, grown - own - self.presumed) if apart else grown
        self.told, self.presumed, self.loaded = self.stands, 0, False

    def call(self, turn: Turn, used: Sequence[int], told: int) -> None:
        for number, size in enumerate(used):
            self.stands += price(size)
            if number < told:
                self.tell(turn)

    def tell(self, turn: Turn | None) -> None:
        self.proxy.report(turn, used=5000, size=200_000, cost=Money(self.stands, "USD"))

    def cut_short(self, used: Sequence[int], told: int, stop: str = "cancelled") -> list[Entry]:
        turn = self.proxy.prompt()
        self.call(turn, used[:-1], told)
        rows = self.proxy.end(turn, stop=stop)
        self.unsure += sum(cost.nano for row in rows if row.cost_source == "estimated" for cost in row.costs)
        return rows

    def kill(self, used: Sequence[int], told: int) -> None:
        before, known = self.stands, min(told, len(used) - 1)
        self.call(self.proxy.prompt(), used[:-1], known)
        if known:
            now = before + sum(map(price, used[:known]))
            self.counted += now - self.told
            self.told, self.presumed = now, 0
        else:
            self.counted += self.smaller
            self.presumed += self.smaller
            self.unsure += self.smaller
            self.beside += self.more
        self.load()

    def crash(self, used: Sequence[int], told: int) -> None:
        """Its agent alone: a row that knows nothing says so, and the turn is charged what it held."""
        if not any(row.costs for row in self.cut_short(used, told, "crashed")):
            self.unsure += self.smaller
            self.beside += self.more
        self.load()

    def load(self, *, slowly: bool = False) -> SessionState | None:
        """In a new process; what a ledger knew that answers slowly."""
        self.proxy.journal.close()
        recover(self.ledger, [self.directory], Warnings())
        self.proxy = Proxy(self)
        self.loaded = True
        self.proxy.open("load", model=MODEL)
        state = self.ledger.state_of(self.origin, "s")
        if not slowly:
            self.proxy.restore(state)
        return state


# None is less than a hundredth of three others: so far apart may two price lists be.
calls = st.lists(st.sampled_from([4000, 10_000, 60_000]), min_size=1, max_size=3)
small_holds = st.sampled_from([TENTH // 5, TENTH, 9 * TENTH])
larger_by = st.sampled_from([0, TENTH // 2, 20 * TENTH])


def examples(ledger: BudgetLedger) -> int:
    return 60 if ledger.url.startswith("sqlite") else 5


def conversations(*what: str) -> st.SearchStrategy[list[Step]]:
    """That a session began here no ledger knows before it has a row."""
    steps = st.tuples(st.sampled_from(what), calls, st.integers(0, 2))
    return st.lists(steps, max_size=8).filter(lambda made: not made or not made[0][0].startswith("loads"))


@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE])
def test_budgets_have_counted_each_unit_once_and_of_a_killed_turn_the_larger_count(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str]
) -> None:
    @settings(max_examples=examples(ledger))
    @example(
        [("is killed", SHORT, 0), ("loads and tells", SHORT, 0), ("is silent", LONG, 0), ("loads", SHORT, 0)], TENTH, 0
    )
    @example([("is silent", SHORT, 0)], TENTH, 0)
    @example([("is killed", SHORT, 0), ("is silent", SHORT, 0), ("loads", SHORT, 0)], TENTH, 0)
    @given(
        conversations("turns", "turns", "is silent", "fails", "is killed", "is killed", "loads", "loads and tells"),
        small_holds,
        larger_by,
    )
    def counts(conversation: Sequence[Step], smaller: int, more: int) -> None:
        session = Session(agent, ledger, tmp_path, smaller, more)
        session.live(conversation)
        assert session.spent == (session.counted, session.counted + session.beside)

    counts()


@pytest.mark.parametrize("estimate", [False, True])
@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE, UNKNOWN_AGENT])
def test_budgets_have_never_counted_less_than_was_spent_nor_more_than_turns_held_or_were_estimated_at_beside_it(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str], estimate: bool
) -> None:
    @settings(max_examples=examples(ledger))
    @example([("is killed", [4000], 0), ("loads slowly", LONG, 0), ("is silent", LONG, 0)], 5 * TENTH, 0)
    @example([("turns", SHORT, 0), ("is silent", SHORT, 0), ("loads slowly", SHORT, 1)], TENTH, 0)
    @given(
        conversations(
            "turns", "is silent", "fails", "is killed", "crashes", "loads", "loads and tells", "loads slowly"
        ),
        small_holds,
        larger_by,
    )
    def counts(conversation: Sequence[Step], smaller: int, more: int) -> None:
        session = Session(agent, ledger, tmp_path, smaller, more, estimate)
        session.live(conversation)
        small, large = session.spent
        assert session.stands <= small <= session.stands + session.unsure
        assert large == small + session.beside

    counts()


@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE])
def test_what_a_session_had_cost_before_its_ledger_is_not_booked_behind_a_first_turn_that_was_killed(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str]
) -> None:
    session = Session(agent, ledger, tmp_path, TENTH, 0, older=500 * TENTH)
    session.proxy.restore(None)
    session.take(("is killed", SHORT, 0))
    session.take(("turns", [4000], 0))
    assert session.spent[0] == TENTH + price(4000)


@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE, UNKNOWN_AGENT])
def test_what_a_sessions_first_turn_cost_is_not_booked_again_where_the_one_that_waited_behind_it_was_killed(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str]
) -> None:
    session = Session(agent, ledger, tmp_path, TENTH, 0)
    first, second = session.proxy.prompt(), session.proxy.prompt()
    session.call(first, [60_000], 1)
    session.proxy.end(first, Counters(60_000, 6000, 66_000))
    ledger.beat(session.origin.organisation, [second.id], session.proxy.now() + EXPIRY)
    session.load()
    session.take(("turns", [4000], 0))
    assert session.spent[0] == session.stands + TENTH


@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE, UNKNOWN_AGENT])
def test_what_a_killed_turn_had_told_is_not_booked_again_where_one_that_waited_behind_it_was_killed_with_it(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str]
) -> None:
    session = Session(agent, ledger, tmp_path, TENTH, 0)
    first, second = session.proxy.prompt(), session.proxy.prompt()
    session.call(first, [60_000], 1)
    ledger.beat(session.origin.organisation, [first.id, second.id], session.proxy.now() + EXPIRY)
    session.load()
    session.take(("turns", [4000], 0))
    assert session.spent[0] == session.stands + TENTH


@pytest.mark.parametrize("agent", [CLAUDE, OPENCODE, UNKNOWN_AGENT])
def test_of_a_killed_turn_the_larger_counts_under_a_budget_in_another_currency_too(
    ledger: BudgetLedger, tmp_path: Path, agent: tuple[str, str]
) -> None:
    session = Session(agent, ledger, tmp_path, TENTH, 0)
    euros = account(budget("100 EUR", "total", rates=(("GBP", NANO), ("USD", NANO // 2))), session.origin)
    session.holds = [(euros, TENTH)] * 2
    session.take(("is killed", [60_000, 4000], 0))
    assert session.spent[0] == TENTH
    session.take(("turns", [4000], 0))
    assert session.spent[0] == session.stands // 2
