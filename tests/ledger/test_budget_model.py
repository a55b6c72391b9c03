"""Any sequence of prompts, settles, crashes, windows, limits and grants, against a model that forgets nothing.

The model keeps plain lists and adds them up each time; the ledger has totals, kept sums, holds and transactions.
"""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import OpenTurn, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.open_turns import ABANDONED
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget
from tests.ledger.holds import ELSEWHERE, GONE

USERS = ("alice", "bob")
DAY = 24 * HOUR


@dataclass
class Turn:
    id: str
    user: str
    at: int
    until: int
    accounts: tuple[Account, ...]
    held: dict[str, int]  # by account


@dataclass
class Model:
    """Amounts are tokens. Spent turns and grants are kept for ever, and added up when asked."""

    limits: dict[str, int] = field(default_factory=lambda: {"each": 40, "all": 60, "opus": 10**6})
    spent: list[tuple[str, int, int, str]] = field(default_factory=list)  # user, start, tokens, model
    beyond_rows: list[tuple[str, int, int]] = field(default_factory=list)  # account, start, tokens
    open: dict[str, Turn] = field(default_factory=dict)
    grants: list[tuple[str, int, int, int]] = field(default_factory=list)  # budget, tokens, from, until
    overshot: dict[str, int] = field(default_factory=dict)

    def used(self, account: Account) -> int:
        whose, which = account.value, account.filter.scope.model
        rows = sum(
            tokens
            for user, at, tokens, model in self.spent
            if whose in (None, user) and (not which or model in which) and account.bounds.cover(at)
        )
        extras = (tokens for key, at, tokens in self.beyond_rows if key == account.key and account.bounds.cover(at))
        return rows + sum(extras)

    def held(self, account: Account, now: int) -> int:
        return sum(turn.held.get(account.key, 0) for turn in self.open.values() if turn.until > now)

    def granted(self, name: str, now: int) -> int:
        return sum(tokens for of, tokens, start, end in self.grants if of == name and start <= now < end)

    def left(self, account: Account, now: int) -> int:
        allowed = self.limits[account.budget.name] + self.granted(account.budget.name, now)
        return allowed - self.used(account) - self.held(account, now)

    def book(self, turn: Turn, tokens: int, ended_at: int, charges: dict[str, int] | None = None) -> None:
        """`charges`, by account, where they are more than what the row says."""
        charges = charges or {}
        del self.open[turn.id]
        self.spent.append((turn.user, turn.at, tokens, "opus"))
        self.beyond_rows += [(key, turn.at, amount - tokens) for key, amount in charges.items()]
        for account in turn.accounts:  # by the limit that it was admitted under
            beyond = self.used(account) - account.limit - self.granted(account.budget.name, ended_at)
            if (over := min(charges.get(account.key, tokens), beyond)) > 0:
                self.overshot[account.budget.name] = self.overshot.get(account.budget.name, 0) + over


class Machine(RuleBasedStateMachine):
    ledger: BudgetLedger
    other: BudgetLedger  # the same, as another process has it open
    numbers = itertools.count(1)
    turns: Bundle[str] = Bundle("turns")

    @initialize()
    def begin(self) -> None:
        self.organisation = f"org {next(self.numbers)}"
        self.model = Model()
        self.now = NOON

    def origin(self, user: str) -> Origin:
        return replace(ALICE, organisation=self.organisation, user=user)

    def accounts(self, user: str, at: int) -> tuple[Account, ...]:
        return accounts_for(self.budgets(), self.origin(user).subject("opus", "s1"), at, ZoneInfo, "t")

    def budgets(self) -> list[Budget]:
        limits = self.model.limits
        return [
            budget(f"{limits['each']} tokens", "day", "each", per="user"),
            budget(f"{limits['all']} tokens", "rolling:48h", "all"),
            budget(f"{limits['opus']} tokens", "total", "opus", scope=Scope(model=("opus",))),
        ]

    def prompt(self, user: str, size: int, owner: Owner) -> Turn | None:
        """In both; None when both refuse."""
        model, now = self.model, self.now
        accounts = self.accounts(user, now)
        turn = OpenTurn(f"{self.organisation} {next(self.numbers)}", self.origin(user), "s1", now, owner, "opus")
        left = [model.left(account, now) for account in accounts]
        held = self.ledger.hold(turn, [(account, HoldSize(size, 1)) for account in accounts], now, now + EXPIRY)
        assert held.admitted == all(amount >= 1 for amount in left)
        if not held.admitted:
            return None
        holds = {account.key: min(size, amount) for account, amount in zip(accounts, left, strict=True)}
        assert {account.key: amount for account, amount in held.verdict.holds} == holds
        model.open[turn.id] = Turn(turn.id, user, now, now + EXPIRY, accounts, holds)
        return model.open[turn.id]

    @rule(target=turns, user=st.sampled_from(USERS), size=st.integers(1, 20))
    def prompts(self, user: str, size: int) -> Any:
        turn = self.prompt(user, size, ELSEWHERE)
        return turn.id if turn else ""

    @rule(id=consumes(turns), tokens=st.integers(0, 40), again=st.booleans())
    def settles(self, id: str, tokens: int, again: bool) -> None:
        """Also late, after its hold has expired, and perhaps twice, as from a journal."""
        if (turn := self.model.open.get(id)) is None:
            return
        took = self.now - turn.at
        made = row(line(input=tokens), id=id, origin=self.origin(turn.user), at=turn.at, took=took)
        self.ledger.append([made, made] if again else [made])
        if again:
            self.ledger.append([made])
        self.model.book(turn, tokens, self.now)

    @rule(user=st.sampled_from(USERS), tokens=st.integers(0, 20), model=st.sampled_from(["opus", "haiku"]))
    def works_unasked(self, user: str, tokens: int, model: str) -> None:
        """A row of a turn that held nothing: its process knows other budgets, or none."""
        name = f"{self.organisation} {next(self.numbers)}"
        made = row(line(model, input=tokens), id=name, origin=self.origin(user), at=self.now, kind="autonomous")
        self.other.append([made])
        self.model.spent.append((user, self.now, tokens, model))

    @rule()
    def is_rebuilt(self) -> None:
        """All sums are made anew from the rows."""
        self.other.rebuild()

    @rule(id=consumes(turns))
    def is_dropped(self, id: str) -> None:
        self.used_nothing(id)

    def used_nothing(self, id: str) -> None:
        if self.model.open.pop(id, None):
            self.ledger.release(self.organisation, id)

    @rule(user=st.sampled_from(USERS), size=st.integers(1, 20))
    def crashes(self, user: str, size: int) -> None:
        """Its process is gone without a word: each budget is charged what it held."""
        if turn := self.prompt(user, size, GONE):
            assert self.ledger.settle_dead(self.now) == 1
            self.model.book(turn, min(turn.held.values()), self.now, turn.held)

    @rule(id=turns)
    def beats(self, id: str) -> None:
        if turn := self.model.open.get(id):
            self.ledger.beat(self.organisation, [id], self.now + EXPIRY)
            turn.until = max(turn.until, self.now + EXPIRY)

    @rule(time=st.sampled_from([1, EXPIRY // 2, EXPIRY, HOUR, 13 * HOUR, DAY, 5 * DAY, -HOUR]))
    def time_passes(self, time: int) -> None:
        """Holds expire, windows end, and clocks are set back. No turn runs for more than a day."""
        self.now += time
        for turn in list(self.model.open.values()):
            if turn.until < self.now - ABANDONED:
                self.used_nothing(turn.id)

    def teardown(self) -> None:
        """What is left open would be booked in the next example."""
        for turn in list(self.model.open.values()):
            self.used_nothing(turn.id)

    @rule(name=st.sampled_from(["each", "all"]), limit=st.integers(0, 80))
    def limit_changes(self, name: str, limit: int) -> None:
        self.model.limits[name] = limit

    @rule(
        name=st.sampled_from(["each", "all"]), tokens=st.integers(1, 30), time=st.sampled_from([EXPIRY, HOUR, 2 * DAY])
    )
    def grants(self, name: str, tokens: int, time: int) -> None:
        number = f"{self.organisation} {next(self.numbers)}"
        until = self.now + time
        grant = Grant(number, self.organisation, "user", name, None, tokens, "tokens", self.now, until, "carol", "why")
        self.ledger.grant(grant)
        self.model.grants.append((name, tokens, self.now, until))

    @invariant()
    def all_stands_as_the_model_says(self) -> None:
        for user in USERS:
            accounts = self.accounts(user, self.now)
            for account, standing in zip(accounts, self.ledger.standing(accounts, self.now), strict=True):
                expected = (self.model.used(account), self.model.held(account, self.now))
                assert (standing.spent, standing.held) == expected, account.budget.name
                assert standing.granted == self.model.granted(account.budget.name, self.now)
        counted = {each.budget: each.amount for each in self.ledger.overshoots(self.organisation)}
        assert counted == self.model.overshot


def test_the_ledger_stands_as_the_model_says(url: str) -> None:
    with closing(open_ledger(url, journals=())) as opened, closing(open_ledger(url, journals=())) as again:

        class OnLedger(Machine):
            ledger = opened
            other = again

        examples = 40 if url.startswith("sqlite") else 5
        run_machine(
            OnLedger,
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )
