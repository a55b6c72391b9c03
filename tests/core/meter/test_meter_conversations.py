"""Whole conversations of agents that count in different ways: whatever happens, nothing is lost or counted twice.

What an agent tells is made here from what its calls used, by how `docs/agents.md` says that it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Counters, Turn
from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import CLAUDE, CLAUDE_049, COPILOT, HERMES, OPENCODE, PRICES, VIBE, Story

MODEL = "claude-opus-5-5"
SESSION_SO_FAR = (COPILOT, HERMES, VIBE)  # what their counters cover
NEW_PROCESS_AT_ZERO = (COPILOT, HERMES, CLAUDE_049)

Step = tuple[Literal["turn", "cancel", "reload", "resume"], list[Usage]]

# Of very different sizes, so that counters that began anew may pass where they stood.
calls = st.sampled_from([500, 3000, 60_000]).map(lambda size: Usage(size, 2 * size, 0, size // 10, 0))
some_calls = st.lists(calls, min_size=1, max_size=3)
steps = st.tuples(st.sampled_from(["turn", "turn", "cancel", "reload", "resume"]), some_calls)
conversations = st.tuples(some_calls.map(lambda used: ("turn", used)), st.lists(steps, max_size=8)).map(
    lambda both: [both[0], *both[1]]
)


@dataclass
class Session:
    """One session of an agent, over processes that a ledger sees."""

    agent: tuple[str, str]
    rows: list[Entry] = field(default_factory=list)
    finished: list[Usage] = field(default_factory=list)  # all calls that came to an end
    untold: list[Usage] = field(default_factory=list)  # those of them that the counters have not told yet
    unheard: list[Usage] = field(default_factory=list)  # those that they never will, as their process is gone
    so_far: Usage = NOTHING  # what the agent's counters stand at
    spent: int = 0  # and its cost, in nano-dollars
    state: SessionState | None = None

    def __post_init__(self) -> None:
        self.story = Story(self.agent)
        self.story.open(model=MODEL)

    def take(self, step: Step) -> None:
        match step:
            case ("reload", _):
                self.reload()
            case ("resume", _):
                self.story.open("resume", model=MODEL)
            case (what, used):
                self.turn(used, cancelled=what == "cancel")

    def reload(self) -> None:
        self.story = Story(self.agent)
        if self.agent in NEW_PROCESS_AT_ZERO:
            self.so_far, self.spent = NOTHING, 0
            self.unheard, self.untold = self.unheard + self.untold, []
        self.story.open("load", model=MODEL)
        self.story.restore(self.state)

    def turn(self, used: list[Usage], *, cancelled: bool) -> None:
        """The last call of one that is cancelled never ends."""
        turn, ended = self.story.begin(), used[:-1] if cancelled else used
        for call in ended:
            self.end_call(turn, call)
        if self.agent in (CLAUDE, CLAUDE_049, OPENCODE) and self.spent:
            self.story.report(turn, used=used[-1].prompt, size=200_000, cost=Money(self.spent, "USD"))
        counters = None if cancelled and self.agent == COPILOT else self.counters(ended)
        self.untold = self.untold if counters is None else []
        stop = "cancelled" if cancelled else "end_turn"
        self.rows += self.story.end(turn, counters, stop=stop, tool_calls=len(used) - 1)
        self.state = self.story.metered.state

    def end_call(self, turn: Turn, call: Usage) -> None:
        cost = PRICES.price(MODEL, call, 0).cost
        assert cost is not None
        self.finished.append(call)
        self.untold.append(call)
        self.so_far += call
        self.spent += cost.nano
        if self.agent == VIBE:
            prompt, cached = self.so_far.prompt, self.so_far.cached_read
            meta = {"promptTokens": prompt, "completionTokens": self.so_far.output, "cachedTokens": cached}
            self.story.report(turn, used=call.total, size=200_000, cost=Money(self.spent, "USD"), meta=meta)

    def counters(self, ended: list[Usage]) -> Counters | None:
        if self.agent in SESSION_SO_FAR:
            now = self.so_far
            return Counters(now.prompt, now.output, now.total, None, now.cached_read) if now.total else None
        last = sum(ended[-1:] if self.agent == OPENCODE else ended, NOTHING)
        return Counters(last.input, last.output, last.total, None, last.cached_read)


def told(agent: tuple[str, str], conversation: Sequence[Step]) -> Session:
    session = Session(agent)
    for step in conversation:
        session.take(step)
    return session


def price(used: Sequence[Usage]) -> int:
    return sum(cost.nano for usage in used if (cost := PRICES.price(MODEL, usage, 0).cost) is not None)


@given(conversations)
def test_each_call_that_an_agent_tells_of_is_in_one_row(conversation: list[Step]) -> None:
    for agent in (CLAUDE, CLAUDE_049, COPILOT, HERMES, VIBE):
        session = told(agent, conversation)
        missing = session.untold + session.unheard  # of cancelled turns at the end of a process
        assert sum((row.usage for row in session.rows), sum(missing, NOTHING)) == sum(session.finished, NOTHING)


@given(conversations)
def test_what_an_agent_says_that_its_calls_cost_is_booked_once(conversation: list[Step]) -> None:
    for agent in (CLAUDE, CLAUDE_049, OPENCODE, VIBE):
        session = told(agent, conversation)
        assert sum(cost.nano for row in session.rows for cost in row.costs) == price(session.finished)
