"""What every reader does: hear what an agent tells of a session's tokens, and say what a turn used when it has ended.

There is one reader for each way of counting, with the state that only this way needs.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.entry import SessionState, UsageSource
from acp_proxy.core.events import Counters, Meta, Turn, TurnEnded, UpdateSeen, UsageReported
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.counters import Reading, partition
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.meter.observations import Observation
from acp_proxy.core.meter.readers.baseline import Baseline
from acp_proxy.core.meter.subagents import Subagents
from acp_proxy.core.usage import NOTHING, Usage

Share = tuple[str | None, Usage]  # a model and what it used


class TurnUsage(Struct, frozen=True):
    """What a turn's own model calls used.

    Not `priceable`: the counters contradict each other, so that no price follows from them. `repeated`: what the
    message says, its rows by model too, is the turn's before. `by_model` is of each call, where calls were told.
    """

    usage: Usage
    source: UsageSource
    detail: str = ""
    priceable: bool = True
    repeated: bool = False
    by_model: tuple[Share, ...] = ()


class Told(Struct):
    """What was told of the turn that runs."""


class EndOfTurn(Struct, frozen=True):
    """`waited`: it was asked for before the turn before it had told what it used."""

    ended: TurnEnded
    seen: Observation
    waited: bool = False


class Reader:
    """Of one session. `told` is of the oldest turn that is open."""

    __slots__ = ("profile", "tokens", "told")

    of_session = False  # all that it tells are counters of the session
    of_one_call = False  # the usage of a turn is that of one call

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.tokens: Baseline | None = None  # for counters that go on from turn to turn
        self.told = self._nothing_told(None)

    # -- the session

    def begin_anew(self) -> None:
        """Another session of the same id."""
        if self.tokens is not None:
            self.tokens.begin(at_zero=True)

    def reopen(self) -> None:
        """Loaded or resumed in a process that did not have it."""
        if self.tokens is not None:
            self.tokens.reopen()

    def fork_of(self, parent: Reader | None) -> None:
        if self.tokens is not None:
            self.tokens.fork_of(None if parent is None else parent.tokens, known=parent is not None)

    def restore(self, state: SessionState, *, forked: bool) -> None:
        if self.tokens is not None:
            self.tokens.recover(state, forked=forked)

    def settle(self, state: SessionState, *, booked: bool) -> Usage:
        """What the first counters held beyond all rows, when the ledger has answered late."""
        held = None if self.tokens is None else self.tokens.make_good(state, booked=booked)
        return self.usage_of(held)

    def close(self) -> None:
        """The agent lets go of it."""
        if self.tokens is not None:
            self.tokens.close()

    def choose_model(self) -> None:
        """A model was chosen, perhaps the same one."""

    def take_over(self, before: Reader) -> None:
        """Go on for a reader of agents that nobody has described, when what the agent says gives it away."""
        if self.tokens is not None and before.tokens is not None:
            self.tokens.take_over(before.tokens)

    def counters(self, *, running: bool) -> Counters | None:
        """Where the session's counters stand, for the ledger; `running`: while a turn is open."""
        return None if self.tokens is None else self.tokens.last

    # -- what is told

    def session_counters(self, meta: Meta) -> Counters | None:
        """The session's counters, where an agent that counts so tells them beside a context."""
        return None

    def is_news(self, now: Counters | None) -> bool:
        """Whether the session's counters are others than those before."""
        return False

    def count(self, now: Counters) -> None:
        """Counters of the session that an update carries."""

    def stand_at(self, now: Counters) -> None:
        """The session's counters stood there before anything was used."""

    def fell(self, now: Counters) -> bool:
        """Whether the session's counters stand lower than before."""
        return self.tokens is not None and self.tokens.fell(now)

    def come_with_cost(self, now: Counters | None) -> bool:
        """Whether the session's counters moved since the cost before: while they stand still no call was made."""
        return True

    def advance(self, now: Counters | None) -> tuple[Usage, bool]:
        """What the session's counters grew by while no turn ran; and whether that is only the least."""
        return NOTHING, False

    def call_in(self, event: UpdateSeen | UsageReported) -> Call | None:
        """The model call, or the subagent, that an update tells of."""
        return dialects.child_usage(event) if isinstance(event, UpdateSeen) else None

    def add_call(self, reading: Reading) -> None:
        """A call of the turn's own."""

    def hear(self, event: UpdateSeen | UsageReported, model: str | None) -> bool:
        """What else an update tells of the turn that runs; whether the turn's counters moved."""
        return False

    def so_far(self, subagents: Subagents | None) -> Reading | None:
        """What was told of the turn that runs, at least; None where nothing is in mid-turn."""
        return None

    @property
    def calls_so_far(self) -> tuple[Share, ...] | None:
        """The calls of the turn that runs, by model; None where calls are not told."""
        return None

    # -- turns

    def begin(self, turn: Turn, at: int, model: str | None, *, alone: bool) -> None:
        """A turn begins; `alone`: no other one runs."""
        if alone:
            self.told = self._nothing_told(model)

    def end(self, ended: TurnEnded, seen: Observation, model: str | None) -> TurnUsage | None:
        """What the agent said of a turn; None when it said nothing that can be counted."""
        waited = self._has_waited(ended)
        if not ended.behind:
            used = self._used(EndOfTurn(ended, seen, waited))
            self.told = self._nothing_told(model)
            return used
        told, self.told = self.told, self._nothing_told(model)  # what was told is of the one that goes on
        used = self._used(EndOfTurn(ended, seen))
        self.told = told
        return used

    def late_usage(self, counters: Counters, booked: Usage) -> Usage:
        """What a turn used beyond what was booked of it, by the answer to a prompt whose session was closed."""
        return self.usage_of(counters).minus(booked)

    @property
    def cumulative(self) -> bool:
        """Whether the counters of the next turn hold what is not told of this one."""
        return False

    @property
    def told_none(self) -> bool:
        """Whether the agent tells no usage, as far as is known by now."""
        return self.profile.tokens.often_silent

    def usage_of(self, counters: Counters | None) -> Usage:
        return NOTHING if counters is None else partition(counters, self.profile.overlap).usage

    def _nothing_told(self, model: str | None) -> Told:
        return Told()

    def _has_waited(self, ended: TurnEnded) -> bool:
        return False

    def _used(self, end: EndOfTurn) -> TurnUsage | None:
        raise NotImplementedError


def as_read(reading: Reading) -> TurnUsage:
    source: UsageSource = "agent" if reading.certain and reading.whole else "partial"
    if reading.guessed:
        source = "estimated"
    return TurnUsage(reading.usage, source, reading.detail, reading.certain)
