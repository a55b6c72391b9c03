"""The meter: events of the conversation in, rows of the ledger out. Pure, and it takes events in any order.

It keeps one account per session. What its agent's tokens mean is for the session's reader (`core/meter/readers`); what
a row has of them is in `core/meter/turn_usage.py`, what that costs in `core/meter/turn_cost.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from acp_proxy.core.acp import ours_in
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.entry import Entry, Kind, SessionState
from acp_proxy.core.events import (
    AnsweredLate,
    Compacted,
    ContextChanged,
    CostsCorrected,
    Counters,
    Event,
    Initialized,
    ModelSelected,
    PlanReported,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.meter.late_usage import late_usage
from acp_proxy.core.meter.lower_bound import lower_bound
from acp_proxy.core.meter.plan_windows import plan_windows
from acp_proxy.core.meter.rows import Rows
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.sessions import Sessions
from acp_proxy.core.pricing import Pricer
from acp_proxy.core.usage import Usage


class Meter:
    """One agent process. `new_id(at)` makes a UUIDv7 for a row that is no turn."""

    def __init__(
        self,
        pricer: Pricer,
        new_id: Callable[[int], str],
        *,
        profiles: Mapping[str, ProfileOverride] | None = None,
        estimate: bool = True,
        agent_name: str | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """`profiles` are the configuration's `[agents]`; `agent_name` wins over the agent's own name.

        `aliases` are the configuration's: the one under an agent's name is the model of agents that never name one.
        """
        self._rows = Rows(pricer, new_id, estimate=estimate)
        self._sessions = Sessions(profiles or {}, agent_name, aliases or {})

    def on_event(self, event: Event) -> list[Event]:
        """`TurnMetered`, `ContextChanged` and `PlanReported` that follow from an event, in order."""
        match event:
            case UsageReported():
                told = plan_windows(event.meta, event.at) if event.meta and not event.replayed else ()
                metered = [] if event.child is not None or ours_in(event.meta) else self._usage_reported(event)
                return [*metered, PlanReported(event.at, event.session, told)] if told else metered
            case UpdateSeen():
                return self._update_seen(event)
            case TurnEnded():
                return self._turn_ended(event)
            case AnsweredLate():
                account = self._sessions.account(event.session)
                late = late_usage(event, account, self._rows)
                return [] if late is None else [self._metered(account, late, reported=True, reported_cost=False)]
            case SessionRestored():
                return self._restored(event)
            case CostsCorrected(at=at, session=session, by=by) if known := self._sessions.get(session):
                known.correct(by)
                return [self._changed(known, at, restored=True)]
            case TurnStarted():
                account = self._sessions.account(event.session)
                before = self._history_over(account, event.at)
                account.begin_turn(event.turn, event.at)
                return before
            case SessionOpened():
                return self._opened(event)
            case ModelSelected():
                self._sessions.account(event.session).choose(event.model, again=event.again)
            case SessionInfoChanged(titled=True):
                self._sessions.account(event.session).set_title(event.title, event.at)
            case Compacted():
                self._sessions.account(event.session).compacted = event.turn is None
            case _:
                self._session_changed(event)
        return []

    # -- sessions

    def _session_changed(self, event: Event) -> None:
        match event:
            case Initialized(agent=agent):
                self._sessions.initialize(agent)
            case SessionRequested(how="load" | "resume", session=session):
                self._sessions.opened(session).reopen()
            case SessionClosed(session=session, deleted=deleted) if account := self._sessions.get(session):
                account.close(deleted=deleted)

    def _opened(self, event: SessionOpened) -> list[Event]:
        account = self._sessions.opened(event.session)
        match event.how:
            case "new":
                account.begin_anew()
            case "fork":
                account.fork_of(self._sessions.get(event.parent))
            case _:
                account.reopen()
        account.here = True
        if event.model is not None and event.model != account.option:
            account.choose(event.model)
        # Where the ledger has not answered yet, what the history tells waits for the first turn.
        return [] if account.awaited else self._history_over(account, event.at)

    def _restored(self, event: SessionRestored) -> list[Event]:
        account = self._sessions.account(event.session)
        if event.again:
            account.catch_up(event.state)
            return []
        forked = event.parent is not None
        awaited, account.awaited = account.awaited, account.awaited and forked
        if event.state is None:
            return []
        if forked or account.restorable:
            account.restore(event.state, forked=forked)
        elif not awaited:
            return []
        missed = [] if forked else self._settled(account, event.state, event.at)
        return [self._changed(account, event.at, restored=True), *missed]

    def _settled(self, account: SessionAccount, state: SessionState, at: int) -> list[Event]:
        """The answer of a ledger that was slower than the agent's first figures."""
        usage, cost = account.settle(state)
        increase, why = Increase((cost,) if cost is not None else ()), "known when the ledger had answered"
        entry = self._rows.between_turns(account, at, usage, increase, "autonomous", why)
        return [] if entry is None else [self._metered(account, entry, reported=True, reported_cost=True)]

    def _state(self, account: SessionAccount) -> SessionState:
        return account.state(self._rows.context_size(account), self._rows.named(account.model))

    # -- what comes in mid-turn, and between turns

    def _usage_reported(self, event: UsageReported) -> list[Event]:
        account = self._sessions.account(event.session)
        self._sessions.recognize(account, event.meta)
        late = [] if event.replayed else self._history_over(account, event.at)
        changes = [account.hear_of(earlier, event.size, replayed=event.replayed) for earlier in event.earlier]
        before = account.cost.last
        changed = account.hear(event.used, event.size) or any(changes)
        if (model := dialects.claude_model(event.meta)) is not None:
            account.hear_model(model)
        counters = account.reader.session_counters(event.meta)
        # A background task's cost may come while a prompt waits. What came before it is the prompt's.
        apart = event.turn is None or (
            event.turn.kind == "turn" and not account.cost.pending and dialects.is_background(event.meta)
        )
        rows: list[Event] = []
        if event.replayed:
            account.recall(event.cost, counters)
        else:
            if event.cost is not None:
                account.observed.reported_cost = True
                account.charge(event.cost, counters)
            if counters is not None:
                account.reader.count(counters)
            if event.meta and (call := account.reader.call_in(event)) is not None:
                return late + self._call_seen(account, event, call)
            if event.turn is not None and event.meta:
                account.reader.hear(event, account.model)
            if apart:
                rows = self._between_turns(account, event.at, counters if event.turn is None else None)
        if rows or not (changed or account.cost.last != before):
            return late + rows
        done = event.cost is not None and account.profile.cost.at_end
        return [*late, self._changed(account, event.at, done=done)]

    def _history_over(self, account: SessionAccount, at: int) -> list[Event]:
        """What the history of a session that was loaded tells beyond all that is known, booked before its turns."""
        if account.history is None:
            return []
        before = account.cost.last
        counters = account.end_history()
        rows = [] if account.open else self._between_turns(account, at, counters)
        return rows if rows or account.cost.last == before else [self._changed(account, at)]

    def _update_seen(self, event: UpdateSeen) -> list[Event]:
        account = self._sessions.account(event.session)
        self._sessions.recognize(account, event.meta)
        if account.reader.of_session:
            return self._cumulative_seen(account, event)
        if event.replayed and (event.turn is None or not dialects.has_just_ended(event.meta)):
            return []
        if (call := account.reader.call_in(event)) is not None:
            return self._call_seen(account, event, call)
        if after := dialects.compacted_to(event.meta):
            account.shrink(after)
        if event.turn is not None:
            moved = account.reader.hear(event, account.model)
            if (subagent := dialects.subagent_result(event)) is not None:
                account.observed.subagents_seen().add_result(subagent)
            if moved:
                return [self._changed(account, event.at)]
        return []

    def _cumulative_seen(self, account: SessionAccount, event: UpdateSeen) -> list[Event]:
        counters, cost = dialects.cumulative(event.meta), dialects.cumulative_cost(event.meta)
        moved = account.reader.is_news(counters)
        if event.replayed:
            account.recall(cost, counters)
            return []
        late = self._history_over(account, event.at)
        if cost is not None:
            account.charge(cost, counters)
        if counters is not None:
            account.reader.count(counters)
        if event.turn is None:
            return late + self._between_turns(account, event.at, counters)
        return [*late, self._changed(account, event.at)] if moved else late

    def _call_seen(self, account: SessionAccount, event: UpdateSeen | UsageReported, call: Call) -> list[Event]:
        reading = partition(call.counters, account.profile.overlap)
        if event.turn is None:
            return self._booked_between(account, event.at, reading.usage, "subagent" if call.subagent else None)
        if call.subagent is not None:
            account.observed.subagents_seen().add_call(call.subagent, reading.usage)
        else:
            account.reader.add_call(reading)
        return [self._changed(account, event.at)]

    def _changed(
        self, account: SessionAccount, at: int, *, restored: bool = False, done: bool = False
    ) -> ContextChanged:
        state, told = self._state(account), self._rows.so_far(account, at)
        left = tuple(filter(None, map(self._rows.named, account.observed.left)))
        return ContextChanged(at, account.session, state, restored, lower_bound(account), done, told, left)

    def _between_turns(self, account: SessionAccount, at: int, now: Counters | None) -> list[Event]:
        """Book what cumulative counters say was used since they were last booked."""
        usage, unsure = account.reader.advance(now)
        return self._booked_between(account, at, usage, None, at_least=unsure)

    def _booked_between(
        self, account: SessionAccount, at: int, usage: Usage, kind: Kind | None, *, at_least: bool = False
    ) -> list[Event]:
        increase = account.cost.take()
        if account.paid_otherwise and increase.reported:
            increase, account.paid_otherwise = Increase(), False
        entry = self._rows.between_turns(
            account,
            at,
            usage,
            increase,
            kind or ("compaction" if account.compacted else "autonomous"),
            at_least=at_least,
        )
        if entry is None:
            return []
        account.compacted = False
        return [self._metered(account, entry, reported=True, reported_cost=bool(increase.amounts))]

    # -- turns

    def _turn_ended(self, event: TurnEnded) -> list[Event]:
        account = self._sessions.account(event.session)
        observed, increase = account.end_turn(event.turn, behind=event.behind)
        entries = self._rows.of_turn(event, account, observed, increase)
        if event.owed:
            account.owed[event.turn.id] = entries[-1].usage
        return [
            self._metered(account, entry, reported=observed.context.reported, reported_cost=observed.reported_cost)
            for entry in entries
        ]

    def _metered(self, account: SessionAccount, entry: Entry, *, reported: bool, reported_cost: bool) -> TurnMetered:
        account.book(entry)
        return TurnMetered(entry.ended_at, entry, self._state(account), reported, reported_cost)
