"""What the meter keeps of one session, however its agent counts: cost, context, model, and what was booked.

Its tokens are with its reader. Bounded: observations end with their turn, and nothing grows with the number of turns.
"""

from __future__ import annotations

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Counters, EarlierReport, Turn
from acp_proxy.core.meter.agent_cost import AgentCost, Increase
from acp_proxy.core.meter.observations import Observation, TurnObservations
from acp_proxy.core.meter.readers.reader import Reader
from acp_proxy.core.meter.session_context import SessionContext, TurnContexts
from acp_proxy.core.money import Money, plus
from acp_proxy.core.usage import Usage


class SessionAccount:
    """One session. `open` are its turns that run, oldest first: what the agent reports belongs to the oldest."""

    def __init__(self, session: str, profile: Profile, reader: Reader, option: str | None) -> None:
        self.session = session
        self.profile = profile
        self.reader = reader
        self.observed = TurnObservations()
        self.open: list[str] = []
        self.cost = AgentCost(profile.cost)
        self.context = SessionContext(profile.context)
        self.history: tuple[Money | None, Counters | None] | None = None  # the last word of a load's, to be judged yet
        self.owed: dict[str, Usage] = {}  # what was booked of turns that ended before their answers
        self.here = False  # opened or used in this process, not only named
        self.deleted = False  # the next session of this id is another one
        self.from_start = True  # every turn of it was seen: it began here
        self.option = option  # the model as chosen, often an alias
        self.concrete: str | None = None  # ... as usage named it since
        self.title: str | None = None  # as told here: the ledger keeps an earlier one, and a later one of others
        self.titled_at: int | None = None
        self.compacted = False  # between turns, and what it used is not booked yet
        self.paid_otherwise = False  # what its agent tells next of the last turn, the user's prices have paid
        self.paid_perhaps: Money | None = None  # ... or the catalog's, if it never told a cost before
        self.restorable = True  # nothing was booked here that the ledger's answer would hold too
        self.awaited = False  # ... but it was asked for before anything was
        self._booked: tuple[Money, ...] = ()  # in other processes, too

    # -- what happens to it

    def begin_anew(self) -> None:
        """Agents reuse ids: what another session of this id had, here or in the ledger, is no baseline of this one."""
        if self.here:
            self.cost.begin(at_zero=True)
            self.reader.begin_anew()
            self.context.forget()
            self.history, self.awaited, self.from_start, self._booked = None, False, True, ()

    def reopen(self) -> None:
        """Loaded or resumed. Had by another process before, its counters stand where the agent or the ledger says."""
        if self.here:
            return
        self.here, self.from_start, self.awaited = True, False, self.restorable
        self.cost.begin(at_zero=self.profile.cost.counter in ("restarts", "turn"))
        self.reader.reopen()

    def fork_of(self, parent: SessionAccount | None) -> None:
        """A fork has its parent's context; its counters and its cost begin where the agent is known to begin them.

        Of an agent that is not in the table they may go on from where its parent's stood.
        """
        self.begin_anew()
        self.here, self.from_start = True, False
        if parent is not None:
            self.context.go_on_from(parent.context)
        if self.profile.cost.fork_inherits is not False:
            self.cost.begin_perhaps_at(None if parent is None else parent.cost.stood)
        self.reader.fork_of(None if parent is None else parent.reader)

    def restore(self, state: SessionState, *, forked: bool) -> None:
        """The ledger's word on it (of a fork: on its parent), as far as the agent has not spoken yet."""
        self.context.restore(state, from_start=self.from_start)
        self.option = self.option or state.model
        stood = _stood(state)
        if forked and self.profile.cost.fork_inherits is not False and stood is not None:
            self.cost.restore_parent(stood)
        elif not forked and stood is not None:
            self.cost.restore(stood, state.presumed)
        self.reader.restore(state, forked=forked)
        if not forked:
            self._booked = state.costs

    def catch_up(self, state: SessionState | None) -> None:
        """What another process has booked meanwhile, which is in the cost that some agents tell next."""
        if self.profile.cost.shared and state is not None and state.agent_cost is not None:
            self.cost.catch_up(state.agent_cost)

    def settle(self, state: SessionState) -> tuple[Usage, Money | None]:
        """The ledger's word, when the agent has spoken without it: what its first figures held beyond all rows."""
        stood, booked = _stood(state), not self.restorable
        usage = self.reader.settle(state, booked=booked)
        cost = self.cost.settle(stood, state.presumed) if stood else None
        if booked:
            self._booked = plus(state.costs, self._booked)
            if stood is not None:
                self.cost.restore(stood, state.presumed)
        return usage, cost

    def begin_turn(self, turn: Turn, at: int) -> None:
        alone = not self.open
        if alone:
            self.observed = TurnObservations(self.model, context=TurnContexts(self.context.last))
        self.reader.begin(turn, at, self.model, alone=alone)
        self.open.append(turn.id)
        self.here = True
        self.compacted = self.paid_otherwise = False
        self.paid_perhaps = None

    def end_turn(self, turn: Turn, *, behind: bool = False) -> tuple[TurnObservations, Increase]:
        """What was seen during a turn, and what it cost by the agent's word. Nothing, `behind` one that runs."""
        if behind:
            self.open = [each for each in self.open if each != turn.id]
            return TurnObservations(), Increase()
        if turn.id in self.open:
            del self.open[: self.open.index(turn.id) + 1]  # and those that it has overtaken
        observed, self.observed = self.observed, TurnObservations(self.model)
        return observed, self.cost.take()

    def observation(self, observed: TurnObservations, increase: Increase) -> Observation:
        """What its reader may look at when a turn has ended."""
        return Observation(
            observed.context,
            self.context.used,
            self.option,
            bool(increase.amounts),
            observed.reported_cost,
            self.cost.resumed,
            self._tells_cost,
            self.from_start,
            bool(self.open),
        )

    def close(self, *, deleted: bool) -> None:
        """The agent lets go of it: some count from 0 when they take it up again."""
        self.deleted = deleted
        self.cost.close()
        self.reader.close()

    def charge(self, cost: Money, counters: Counters | None) -> None:
        """The agent's cost so far, and the counters that came with it: no call was made while they stand still."""
        if self.paid_perhaps is not None and self.may_tell_cost and cost.nano:
            self.cost.book_ahead(self.paid_perhaps)
        moved = self.reader.come_with_cost(counters)
        if "model" in self.profile.cost.moves and not moved:
            self.cost.stand_at(cost)
        else:
            self.cost.report(cost)

    def stand_at(self, cost: Money | None, counters: Counters | None) -> None:
        """Where its counters stood before anything was used here."""
        if cost is not None:
            self.cost.stand_at(cost)
        if counters is not None:
            self.reader.stand_at(counters)

    def recall(self, cost: Money | None, counters: Counters | None) -> None:
        """What is told of its counters before it is opened. A fork's are its parent's.

        A history may tell them again from their beginning: where they stand is in its last word. Unless they go on
        from one process to the next they were those of another.
        """
        if not self.here:
            self.stand_at(cost, counters)
        elif self.profile.cost.counter == "carried" and (cost is not None or counters is not None):
            old_cost, old = self.history or (None, None)
            self.history = (old_cost if cost is None else cost, old if counters is None else counters)

    def end_history(self) -> Counters | None:
        """Take its last word like a report: what is more than is known was spent where nobody saw it.

        Returns counters that are to be booked. If they fell, they were rolled back; a cost alone that is less than is
        known is an old one.
        """
        (cost, counters), self.history = self.history or (None, None), None
        if counters is not None and self.reader.fell(counters):
            self.stand_at(cost, counters)
            return None
        if cost is not None and ("model" in self.profile.cost.moves or self.cost.is_news(cost)):
            self.charge(cost, counters)
        if counters is not None:
            self.reader.count(counters)
        return counters

    def hear(self, used: int | None, size: int | None) -> bool:
        """Take in a context. Whether anything changed."""
        if used == 0:
            self.cost.doubt()
        return self.context.hear(used, size, self.observed.context)

    def hear_of(self, report: EarlierReport, size: int | None, *, replayed: bool) -> bool:
        """The same of a report that came with nothing but figures, and its cost."""
        before = self.cost.last
        changed = self.hear(report.used, size)
        if report.cost is not None and not replayed:
            self.charge(report.cost, None)
        return changed or self.cost.last != before

    def shrink(self, used: int) -> None:
        """The context after a compaction, by the agent's own estimate."""
        self.context.set(used, estimated=True)
        self.observed.context.compacted = True

    def set_title(self, title: str | None, at: int) -> None:
        self.title, self.titled_at = title, at

    def choose(self, model: str, *, again: bool = False) -> None:
        if not again:
            self.observed.leave(self.model)
            self.option, self.concrete = model, None
        self.reader.choose_model()

    def count_like(self, profile: Profile, reader: Reader) -> None:
        """What the agent says gives away who it is."""
        reader.take_over(self.reader)
        self.profile, self.reader = profile, reader

    def hear_model(self, model: str) -> None:
        """The model by its own name, with what it used."""
        self.concrete = self.observed.model = model

    def book(self, entry: Entry) -> None:
        self._booked = plus(self._booked, entry.costs)
        self.restorable = False

    def correct(self, by: tuple[Money, ...]) -> None:
        self._booked = plus(self._booked, by)

    # -- what is known of it

    @property
    def model(self) -> str | None:
        return self.concrete or self.option

    @property
    def agent_tells_cost(self) -> bool:
        return self._tells_cost()

    def _tells_cost(self) -> bool:
        """Whether money that the agent has not reported yet is still to come: it knows prices, or may."""
        if self.profile.cost.counter == "turn":
            return False  # it comes with its turn, or never
        if self.cost.last is None and self.cost.told is None:
            return self.profile.cost.counter not in ("unknown", "none")
        return self.cost.told is not None

    @property
    def may_tell_cost(self) -> bool:
        """Whether it never told one of all that it cost, which was booked, and nobody knows whether it will."""
        return (
            self.cost.told is None
            and self.cost.last is None
            and self.profile.cost.counter == "unknown"
            and self.cost.from_zero
        )

    def state(self, context_size: int | None, model: str | None) -> SessionState:
        """`context_size` is the model's where the agent says none, `model` as rows name it.

        What is reported but not booked is included.
        """
        return SessionState(
            context_used=self.context.used,
            context_size=context_size,
            context_estimated=self.context.estimated,
            costs=plus(self._booked, self.cost.pending),
            agent_cost=self.cost.told,
            from_zero=self.cost.from_zero,
            counters=self.reader.counters(running=bool(self.open)),
            model=model,
            title=self.title,
            titled_at=self.titled_at,
        )


def _stood(state: SessionState) -> Money | None:
    """Where the agent's cost stood: at 0 of no currency if it told nothing yet of a session that began here.

    At 0, too, if turns were priced without it. Of another nobody knows: it may have cost something before there was a
    ledger. What is presumed to have been spent says nothing of that.
    """
    if state.agent_cost is not None:
        return state.agent_cost
    if state.costs != state.presumed:
        return Money(0, state.costs[0].currency)
    return Money(0, "") if state.from_zero else None
