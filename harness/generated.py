"""Generated agents that tell what their model calls used, in every way of counting, beside what they really used.

A case is an agent (known or not, with a way to count) and its sessions: turns of one or more calls, turns that fail or
are cancelled, forks, loads in a new process, sessions that are closed and loaded again. Each row of the meter is
compared with the calls that were made. Everything follows from a seed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from acp_proxy.core import acp
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import (
    Event,
    Implementation,
    Initialized,
    Opening,
    SessionClosed,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    Turn,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UsageReported,
)
from acp_proxy.core.meter import Meter
from acp_proxy.core.usage import NOTHING, Usage
from harness.prices import PRICES, FixedPrices

MODEL = "claude-opus-5-5"
Covers = Literal["turn", "last_call", "session", "none"]
Caches = Literal["beside", "inside", "untold"]
Context = Literal["none", "total", "prompt"]
Goes = Literal["on", "from 0"]


@dataclass(frozen=True, slots=True)
class Way:
    """How an agent counts, and what it tells. `on_load` and `on_fork` are of its cumulative figures.

    `known` is its name and version in the table. `scope_told`: the user's configuration says what its usage covers.
    """

    covers: Covers
    caches: Caches = "beside"
    context: Context = "total"
    costs: bool = False
    on_load: Goes = "from 0"
    on_close: Goes = "on"
    on_fork: Goes = "from 0"
    corrects: bool = False  # a cost is too high for a moment in mid-turn
    strings: bool = False  # numbers are told in quotes
    priced: bool = True  # its model is in the catalog
    factor: int = 100  # its prices, in percent of the catalog's
    known: tuple[str, str] | None = None
    scope_told: bool = False


KNOWN = {
    "claude-agent-acp 0.100.0": Way(
        "turn", costs=True, on_load="on", known=("@agentclientprotocol/claude-agent-acp", "0.100.0")
    ),
    "claude-agent-acp 0.49.0": Way(
        "turn", costs=True, on_close="from 0", known=("@agentclientprotocol/claude-agent-acp", "0.49.0")
    ),
    "codex-acp 2.6.0": Way("turn", known=("@agentclientprotocol/codex-acp", "2.6.0")),
    "OpenCode 1.18.33": Way(
        "last_call", context="prompt", costs=True, on_load="on", on_fork="on", known=("OpenCode", "1.18.33")
    ),
    "OpenCode, forks from 0": Way(
        "last_call", context="prompt", costs=True, on_load="on", known=("OpenCode", "1.18.33")
    ),
    "Copilot 1.0.102": Way("session", "inside", "prompt", on_close="from 0", known=("Copilot", "1.0.102")),
    "dirac 0.4.37": Way("session", costs=True, on_load="on", known=("dirac", "0.4.37")),
    "cline 3.0.65": Way("none", known=("cline", "3.0.65")),
}


def unknown(rng: random.Random) -> Way:
    """An agent that is not in the table."""
    covers: Covers = rng.choice(("turn", "last_call", "session", "none"))
    return Way(
        covers,
        rng.choice(("beside", "inside", "untold")),
        rng.choice(("none", "total", "prompt")),
        rng.random() < 0.6,
        rng.choice(("on", "from 0")),
        rng.choice(("on", "on", "from 0")),
        rng.choice(("on", "from 0")),
        rng.random() < 0.2,
        rng.random() < 0.2,
        rng.random() < 0.7,
        rng.choice((100, 100, 70, 130)),
        scope_told=rng.random() < 0.25,
    )


@dataclass(slots=True)
class Truth:
    """What a session really used and what its agent tells: `usage` and `nano` are cumulative, as the agent has them."""

    usage: Usage = NOTHING
    nano: int = 0
    context: int = 6000
    owed: Usage = NOTHING  # used by turns of which the agent told no tokens
    owed_nano: int = 0  # the same of cost


@dataclass(frozen=True, slots=True)
class Checked:
    """A row beside the truth: of tokens and of cost, whether they are said to be exact, and whether they are wrong.

    A row may hold what earlier turns used of which nothing was told then. `above`: a lower bound that is too high.
    """

    row: Entry
    usage: Usage
    nano: int
    tokens_exact: bool
    tokens_wrong: bool
    above: bool
    cost_exact: bool
    cost_wrong: bool


@dataclass(slots=True)
class Case:
    """One agent with its sessions; `log` says what happened, for people."""

    way: Way
    rng: random.Random
    log: list[str] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _at: int = 0
    _meter: Meter | None = None
    _truth: dict[str, Truth] = field(default_factory=dict)
    _states: dict[str, SessionState] = field(default_factory=dict)

    def play(self, steps: int) -> None:
        self._start()
        session = self._opened("new", "s1")
        for _ in range(steps):
            step = self.rng.choices(("turn", "cancel", "error", "fork", "load", "close"), (12, 1, 1, 2, 2, 1))[0]
            match step:
                case "fork":
                    session = self._fork(session)
                case "load":
                    self._start()
                    self._loaded(session)
                case "close":
                    self._tell(SessionClosed(self._now(), session))
                    self._loaded(session, closed=True)
                case _:
                    self._turn(session, step)

    # -- sessions

    def _start(self) -> None:
        way = self.way
        name, version = way.known or ("some-agent", "1.0")
        scope = {name: ProfileOverride(scope=way.covers)} if way.scope_told else {}
        prices = PRICES if way.priced else FixedPrices({})
        self._meter = Meter(prices, lambda at: f"row{next(self._numbers)}", profiles=scope)
        self.log.append("process")
        self._tell(Initialized(self._now(), 1, Implementation(), Implementation(name, version), False))

    def _opened(self, how: Opening, session: str, parent: str | None = None) -> str:
        self.log.append(f"{how} {session}")
        self._truth.setdefault(session, Truth())
        self._tell(SessionOpened(self._now(), how, session, parent, model=MODEL))
        return session

    def _loaded(self, session: str, *, closed: bool = False) -> None:
        truth = self._truth[session]
        self._tell(SessionRequested(self._now(), "load", session))
        if (self.way.on_close if closed else self.way.on_load) == "from 0":
            truth.usage, truth.nano = NOTHING, 0
            truth.owed, truth.owed_nano = NOTHING, 0
        self._opened("load", session)
        if not closed:
            self._tell(SessionRestored(self._now(), session, self._states.get(session)))

    def _fork(self, parent: str) -> str:
        session, before = f"s{next(self._numbers)}", self._truth[parent]
        truth = self._truth[session] = Truth(context=before.context)
        if self.way.on_fork == "on":
            truth.usage, truth.nano, truth.owed, truth.owed_nano = (
                before.usage,
                before.nano,
                before.owed,
                before.owed_nano,
            )
        self._tell(SessionRequested(self._now(), "fork", parent))
        self._opened("fork", session, parent)
        return session

    # -- turns

    def _turn(self, session: str, step: str) -> None:
        rng, truth, way = self.rng, self._truth[session], self.way
        asked = rng.randint(20, 900)
        tools = rng.choice((0, 0, 0, 1, 2))
        turn = Turn(f"turn{next(self._numbers)}", session, "turn", self._now(), 4 * asked)
        self._tell(TurnStarted(turn.started_at, session, turn))
        truth.context += asked
        used, last, tool_chars, said = NOTHING, NOTHING, 0, 0
        for number in range(tools + 1):
            written = rng.randint(30, 400)
            read = int(truth.context * rng.uniform(0.5, 0.9)) if truth.usage.total or number else 0
            last = Usage(truth.context - read, read, 0, written)
            used += last
            truth.context += written
            said += 4 * written
            if number < tools:
                result = rng.randint(20, 900)
                truth.context += result
                tool_chars += 4 * result
        nano = self._cost(used)
        truth.usage, truth.nano = truth.usage + used, truth.nano + nano
        silent = step != "turn"
        self.log.append(f"{step} {session}: {tools + 1} calls, {used.prompt}+{used.completion}, {nano}")
        if not silent or way.context != "none":
            self._report(turn, last, truth, silent=silent)
        told = {"turn": used, "last_call": last, "session": truth.usage, "none": NOTHING}[way.covers]
        counters = None if silent or way.covers == "none" else acp.counters(self._words(told))
        rows = self._tell(
            TurnEnded(
                self._now(),
                session,
                turn,
                {"turn": "end_turn", "cancel": "cancelled"}.get(step, step),
                counters,
                updates=3,
                tool_calls=tools,
                output_chars=said,
                tool_chars=tool_chars,
            )
        )
        for row in rows:
            self._check(row, used, nano, truth)
        if counters is not None:
            truth.owed = NOTHING
        if way.costs and not silent:
            truth.owed_nano = 0
        if silent:
            truth.owed, truth.owed_nano = truth.owed + used, truth.owed_nano + nano

    def _report(self, turn: Turn, last: Usage, truth: Truth, *, silent: bool) -> None:
        way = self.way
        used = {"none": None, "total": last.total, "prompt": last.prompt}[way.context]
        if way.costs and not silent and way.corrects:
            self._told(turn, used, truth.nano + 5_000_000)
        if way.costs and not silent:
            self._told(turn, used, truth.nano)
        elif used is not None:
            self._told(turn, used, None)

    def _told(self, turn: Turn, used: int | None, nano: int | None) -> None:
        amount = None if nano is None else Decimal(nano) / 10**9
        cost = (
            {}
            if amount is None
            else {"cost": {"amount": str(amount) if self.way.strings else amount, "currency": "USD"}}
        )
        self._tell(UsageReported(self._now(), turn.session, turn, used, 200_000, acp.cost_of(cost)))

    def _cost(self, usage: Usage) -> int:
        cost = PRICES.price(MODEL, usage, 0).cost
        return 0 if cost is None else cost.nano * self.way.factor // 100

    def _words(self, usage: Usage) -> dict[str, object]:
        sent = usage.input if self.way.caches == "beside" else usage.prompt
        words = {"inputTokens": sent, "outputTokens": usage.completion, "totalTokens": usage.total}
        if self.way.caches != "untold":
            words["cachedReadTokens"] = usage.cached_read
        return {name: str(value) if self.way.strings else value for name, value in words.items()}

    # -- what comes of it

    def _now(self) -> int:
        self._at += 10**9
        return self._at

    def _tell(self, event: Event) -> list[Entry]:
        assert self._meter is not None
        rows = []
        for made in self._meter.on_event(event):
            if isinstance(made, TurnMetered):
                self._states[made.entry.session] = made.state
                rows.append(made.entry)
        return rows

    def _check(self, row: Entry, used: Usage, nano: int, truth: Truth) -> None:
        with_owed = used + truth.owed
        pairs = {(each.prompt, each.completion) for each in (used, with_owed)}
        tokens_exact = row.usage_source == "agent"
        tokens_wrong = tokens_exact and (row.usage.prompt, row.usage.completion) not in pairs
        above = row.usage_source == "partial" and row.usage.total > with_owed.total
        cost_exact = row.cost_source == "agent"
        booked = sum(cost.nano for cost in row.costs)
        right = (nano, nano + truth.owed_nano) if row.kind == "turn" else (truth.owed_nano,)
        cost_wrong = cost_exact and not any(abs(booked - each) <= 2 for each in right)
        self.checked.append(Checked(row, used, nano, tokens_exact, tokens_wrong, above, cost_exact, cost_wrong))
        self.log.append(
            f"   row {row.kind} {row.usage_source} {row.usage.prompt}+{row.usage.completion} "
            f"{row.cost_source} {booked}: {row.detail}{'  <-- WRONG' if tokens_wrong or cost_wrong else ''}"
        )


def case(seed: int, known: str | None = None) -> Case:
    """A case that has been played."""
    rng = random.Random(f"{seed} {known}")  # noqa: S311 - a case, no secret
    made = Case(unknown(rng) if known is None else KNOWN[known], rng)
    made.play(rng.randint(3, 14))
    return made


def main() -> None:
    """Print how many rows are said to be exact, and how many of these are wrong, over as many cases as asked for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=2000, metavar="N", help="of each kind of agent (default: 2000)")
    number = parser.parse_args().cases
    sys.stdout.write(
        f"{'agent':28}{'rows':>8}{'tokens exact':>14}{'wrong':>7}{'cost exact':>12}{'wrong':>7}{'too high':>10}\n"
    )
    for known in (None, *KNOWN):
        rows = [row for seed in range(number) for row in case(seed, known).checked]
        exact, paid = sum(row.tokens_exact for row in rows), sum(row.cost_exact for row in rows)
        sys.stdout.write(
            f"{known or 'unknown agents':28}{len(rows):8}"
            f"{exact / len(rows):14.1%}{sum(row.tokens_wrong for row in rows):7}"
            f"{paid / len(rows):12.1%}{sum(row.cost_wrong for row in rows):7}{sum(row.above for row in rows):10}\n"
        )


if __name__ == "__main__":
    main()
