"""What the meter keeps of one session: its counters, what was booked, and its context.

Bounded: observations end with their turn, and nothing grows with the number of turns.
"""

from __future__ import annotations

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Compacted, Counters, EarlierReport, Turn
from acp_proxy.core.meter.agent_cost import AgentCost, Increase
from acp_proxy.core.meter.counters import Cumulative, covers
from acp_proxy.core.meter.observations import ReportedTurn, TurnObservations
from acp_proxy.core.meter.one_call import Known
from acp_proxy.core.money import Money, plus
from acp_proxy.core.usage import Usage


class SessionAccount:
    """One session. `open` are its turns that run, oldest first: what the agent reports belongs to the oldest."""

    def __init__(self, session: str, profile: Profile) -> None:
        self.session = session
        self.profile = profile
        self.observed = TurnObservations()
        self.open: list[str] = []
        self.cost = AgentCost(profile.cost)
        self.tokens = Cumulative()
        self.heard: Counters | None = None  # the last cumulative ones, booked or not
        self.charged_at: Counters | None = None  # those that came with the last cost
        self.history: tuple[Money | None, Counters | None] | None = None  # the last word of a load's, to be judged yet
        self.before: ReportedTurn | None = None
        self.owed: dict[str, Usage] = {}  # what was booked of turns that ended before their answers
        self.before_close: ReportedTurn | None = None  # the same of a session that was closed since
        self._before: dict[str, ReportedTurn | None] = {}  # the same when an open turn began
        self.sure: Known | None = None  # a turn by which others are judged, of agents that nobody has described
        self.passed = 0  # characters of all its turns, for the same
        self.calls = 0  # model calls, at most, since its agent told what it used, for the same
        self.called: tuple[int | None, int | None] | None = None  # input and output of the last call that was told
        self.context_used: int | None = None
        self.context_size: int | None = None
        self.context_estimated = False  # `context_used` is
        self.grounded = False  # ... though it goes on from a figure that the agent told
        self.last_context: int | None = None  # the last one of the agent's own: the same again is no news
        self.here = False  # opened or used in this process, not only named
        self.deleted = False  # the next session of this id is another one
        self.from_start = True  # every turn of it was seen: it began here
        self.option: str | None = None  # the model as chosen, often an alias
        self.concrete: str | None = None  # ... as usage named it since
        self.title: str | None = None  # as told here: the ledger keeps an earlier one, and a later one of others
        self.titled_at: int | None = None
        self.restarts = False  # its counters do with the next turn; one that runs goes on with those that it began with
        self.may_restart = False  # its counters may have, by a command of the agent's own since they were told
        self.smallest_call: int | None = None  # tokens that each of its calls sent at least, for the same
        self.closed = False  # since its last turn began
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
            self.tokens.begin(at_zero=True)
            self.heard = self.charged_at = self.history = self.before = self.before_close = self.sure = None
            self.context_used = self.last_context = None
            self.context_estimated = self.grounded = self.awaited = False
            self.calls, self.called, self.from_start, self._booked = 0, None, True, ()
            self.may_restart, self.smallest_call = False, None

    def reopen(self) -> None:
        """Loaded or resumed. Had by another process before, its counters stand where the agent or the ledger says."""
        if self.here:
            return
        self.here, self.from_start, self.awaited = True, False, self.restorable
        self.cost.begin(at_zero=self.profile.cost.counter in ("restarts", "turn"))
        self.tokens.begin(at_zero="process" in self.profile.tokens.restarts)

    def fork_of(self, parent: SessionAccount | None) -> None:
        """A fork has its parent's context; its counters and its cost begin where the agent is known to begin them.

        Of an agent that is not in the table they may go on from where its parent's stood.
        """
        self.begin_anew()
        self.here, self.from_start = True, False
        if parent is not None:
            self.context_used, self.context_size = parent.context_used, parent.context_size
            self.context_estimated = parent.context_estimated
            self.grounded, self.last_context = parent.grounded, parent.last_context
        if self.profile.cost.fork_inherits is not False:
            self.cost.begin_perhaps_at(None if parent is None else parent.cost.stood)
        if self.profile.cost.fork_inherits is None:
            tokens = Cumulative() if parent is None else parent.tokens
            self.tokens.begin_perhaps_at(tokens.last, known=parent is not None and tokens.known)
            self.before_close = None if parent is None else parent.before or parent.before_close

    def restore(self, state: SessionState, *, forked: bool) -> None:
        """The ledger's word on it (of a fork: on its parent), as far as the agent has not spoken yet."""
        if self.context_used is None:
            self.context_used, self.context_size = state.context_used, state.context_size
            self.context_estimated = state.context_estimated
            # Else an estimate is what was told, and a turn more.
            guessed = self.context_estimated and self.profile.context.comes != "after turn"
            self.grounded = self.context_used is not None and not (guessed or self.from_start)  # a new one has its own
            self.last_context = self.context_used if self.grounded else None
        self.option = self.option or state.model
        stood = _stood(state)
        if forked and self.profile.cost.fork_inherits is not False and stood is not None:
            self.cost.restore_parent(stood)
        elif not forked and stood is not None:
            self.cost.restore(stood, state.presumed)
        if self.profile.cost.fork_inherits is None:
            self.tokens.restore_perhaps(state.counters, from_zero=state.from_zero)
        elif not forked:
            self.tokens.restore(state.counters, from_zero=state.from_zero)
        if not forked:
            self._booked = state.costs

    def catch_up(self, state: SessionState | None) -> None:
        """What another process has booked meanwhile, which is in the cost that some agents tell next."""
        if self.profile.cost.shared and state is not None and state.agent_cost is not None:
            self.cost.catch_up(state.agent_cost)

    def settle(self, state: SessionState) -> tuple[Counters | None, Money | None]:
        """The ledger's word, when the agent has spoken without it: what its first figures held beyond all rows."""
        stood = _stood(state)
        counters = self.tokens.settle(state.counters, from_zero=state.from_zero)
        cost = self.cost.settle(stood, state.presumed) if stood else None
        if not self.restorable:
            self._booked = plus(state.costs, self._booked)
            self.tokens.restore(state.counters, from_zero=state.from_zero)  # turns may have ended that told nothing
            if stood is not None:
                self.cost.restore(stood, state.presumed)
        return counters, cost

    def begin_turn(self, turn: Turn, at: int) -> None:
        if not self.open:
            self.observed = TurnObservations(self.model, self.last_context, calling=self.model)
            if self.restarts or (self.closed and "close" in self.profile.tokens.restarts):
                self.tokens.begin(at_zero=True)
            if self.closed and not self.profile.known:  # that counters fall where they may begin anew is no sign
                self.before_close, self.before = self.before or self.before_close, None
            self.restarts = self.closed = False
        self.open.append(turn.id)
        if at == turn.started_at:  # else it was asked for earlier, which only times tell
            self._before[turn.id] = self.before
        self.here = True
        self.compacted = self.paid_otherwise = False
        self.paid_perhaps = None

    def end_turn(self, turn: Turn, *, behind: bool = False) -> tuple[TurnObservations, Increase]:
        """What was seen during a turn, and what it cost by the agent's word. Nothing, `behind` one that runs."""
        waited = self._has_waited(turn)
        if behind:
            self.open = [each for each in self.open if each != turn.id]
            return TurnObservations(), Increase()
        if turn.id in self.open:
            del self.open[: self.open.index(turn.id) + 1]  # and those that it has overtaken
        observed, self.observed = self.observed, TurnObservations(self.model, calling=self.model)
        observed.waited = waited
        return observed, self.cost.take()

    def _has_waited(self, turn: Turn) -> bool:
        """By the order of events where it tells: clocks are set back."""
        if turn.id in self._before:
            return self._before.pop(turn.id) is not self.before
        return self.before is not None and turn.started_at < self.before.at

    def close(self, *, deleted: bool) -> None:
        """The agent lets go of it: some count from 0 when they take it up again."""
        self.deleted = deleted
        self.cost.close()
        if self.profile.cost.fork_inherits is None and self.tokens.last is not None:
            self.tokens.begin_perhaps_at(self.tokens.last, known=True)
        self.closed = True

    def count(self, now: Counters) -> None:
        """Cumulative counters that an update carries."""
        self.heard = self.observed.cumulative = now

    def charge(self, cost: Money, counters: Counters | None) -> None:
        """The agent's cost so far, and the counters that came with it: no call was made while they stand still."""
        if self.paid_perhaps is not None and self.may_tell_cost and cost.nano:
            self.cost.book_ahead(self.paid_perhaps)
        moved = counters is None or counters != (self.charged_at or self.heard or self.tokens.last)
        self.charged_at = counters
        if "model" in self.profile.cost.moves and not moved:
            self.cost.stand_at(cost)
        else:
            self.cost.report(cost)

    def stand_at(self, cost: Money | None, counters: Counters | None) -> None:
        """Where its counters stood before anything was used here."""
        if cost is not None:
            self.cost.stand_at(cost)
        if counters is not None:
            self.heard = counters
            self.tokens.stand_at(counters)

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
        if counters is not None and self.tokens.fell(counters):
            self.stand_at(cost, counters)
            return None
        if cost is not None and ("model" in self.profile.cost.moves or self.cost.is_news(cost)):
            self.charge(cost, counters)
        if counters is not None:
            self.count(counters)
        return counters

    def hear(self, used: int | None, size: int | None) -> bool:
        """Take in a context. 0 is no context but a gap in the agent's knowledge. Whether anything changed."""
        if used == 0:
            self.cost.doubt()
        before = (self.context_used, self.context_size, self.context_estimated)
        self.observed.reported = True
        if self.profile.context.comes == "never":
            return False
        if used:
            if used != self.last_context:
                self.observed.contexts += 1
                self.observed.contexts_sum += used
            self.last_context = used
            self.set_context(used)
            self.observed.context_told = True
            self.observed.first_context = self.observed.first_context or used
            self.observed.largest_context = max(used, self.observed.largest_context or 0)
        if size:
            self.context_size = size
        return before != (self.context_used, self.context_size, self.context_estimated)

    def hear_of(self, report: EarlierReport, size: int | None, *, replayed: bool) -> bool:
        """The same of a report that came with nothing but figures, and its cost."""
        before = self.cost.last
        changed = self.hear(report.used, size)
        if report.cost is not None and not replayed:
            self.charge(report.cost, None)
        return changed or self.cost.last != before

    def compact(self, event: Compacted) -> None:
        self.compacted = event.turn is None

    def shrink(self, used: int) -> None:
        """The context after a compaction, by the agent's own estimate."""
        self.set_context(used, estimated=True)
        self.observed.compacted = True

    def set_context(self, used: int, *, estimated: bool = False) -> None:
        """The context, by a figure of the agent's."""
        self.context_used, self.context_estimated, self.grounded = used, estimated, True

    def grow_context(self, tokens: int) -> None:
        """The context, by what has passed since it was known."""
        self.context_used, self.context_estimated = (self.context_used or 0) + tokens, True

    def set_title(self, title: str | None, at: int) -> None:
        self.title, self.titled_at = title, at

    def choose(self, model: str, *, again: bool = False) -> None:
        if not again:
            self.observed.leave(self.model)
            self.option, self.concrete = model, None
        self.restarts = self.restarts or "model" in self.profile.tokens.restarts

    def hear_model(self, model: str) -> None:
        """The model by its own name, with what it used."""
        self.concrete = self.observed.model = model

    def book(self, entry: Entry) -> None:
        self._booked = plus(self._booked, entry.costs)
        self.restorable = False

    # -- what is known of it

    @property
    def model(self) -> str | None:
        return self.concrete or self.option

    @property
    def agent_tells_cost(self) -> bool:
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

    def state(self, window: int | None, model: str | None) -> SessionState:
        """`window` is the context size where the agent says none, `model` as rows name it.

        What is reported but not booked is included.
        """
        return SessionState(
            context_used=self.context_used,
            context_size=self.context_size or window,
            context_estimated=self.context_estimated,
            costs=plus(self._booked, self.cost.pending),
            agent_cost=self.cost.told,
            from_zero=self.cost.from_zero,
            counters=self._counters,
            model=model,
            title=self.title,
            titled_at=self.titled_at,
        )

    @property
    def _counters(self) -> Counters | None:
        """The session's cumulative counters as told last. Ones that fell are so if they are of the turn that runs."""
        last, heard = self.tokens.last, self.heard
        if heard is None or last is None or covers(heard, last):
            return heard or last
        return heard if self.open and self.observed.cumulative is not None and self.tokens.fell(heard) else last


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
