"""Turns messages into events, passes these to the meter and the interceptors, and carries out their effects.

This is the boundary that keeps the relay alive: every exception here is logged, without content, and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side, TurnEnding
from acp_proxy.core.jsonrpc import Message, parse
from acp_proxy.core.meter import Meter
from acp_proxy.dispatch.fast_path import Burst, UsageReports, Waits, folded
from acp_proxy.interceptor import Interceptor


class Log(Protocol):
    """One event with fields; never content of the session."""

    def __call__(self, level: str, event: str, **fields: Any) -> None: ...


Later = Callable[[Callable[[], None]], object]
"""Has a function called in the event loop a moment later, when the peers have had their turn."""

_Hearer = tuple[Interceptor, Callable[[Event], Iterable[Effect]]]

AT_MOST = 256  # lines and bursts that wait to be accounted
CLOSING = 2.0  # seconds that an interceptor has to close; it is told that it has one
FAULTS = (Exception, asyncio.CancelledError, SystemExit)  # of an interceptor; see also `ends_this_task`


class Accounting:
    """`carry_out` gets the effects in order; `clock` gives Unix ns.

    What may be late waits for `settle` and then for `later`, so that looking into an update delays neither it nor the
    reply to it. Everything else is accounted at once, after what waits.
    """

    def __init__(
        self,
        conversation: Conversation,
        meter: Meter,
        interceptors: Sequence[Interceptor],
        carry_out: Callable[[Effect], None],
        *,
        clock: Callable[[], int],
        log: Log,
        later: Later | None = None,
    ) -> None:
        self.interceptors = interceptors
        self._hearers: dict[type[Event], tuple[_Hearer, ...]] = {}
        self.failures = 0
        self._conversation = conversation
        self._meter = meter
        self._carry_out = carry_out
        self._clock = clock
        self.log = log
        self._later = later
        self._scheduled = self._late = False
        self._waiting: list[Waits] = []
        self.last: Burst | None = None  # of what waits: more of its kind can be counted in
        self._first = 0  # so many of them are to be accounted before anything is asked of the conversation

    def burst(self, session: str | None, kind: str, updates: int, chars: int, message: Any = None) -> Burst:
        """Updates of which nothing but this matters; they are accounted with whatever is next, or when many wait.

        Returns where they are counted; more of the same may be added there as long as it is `last`.
        """
        burst = Burst(session, kind, updates, chars, message)
        if self.last is not None and self.last.add(burst):
            return self.last
        self.last = burst
        self._waiting.append(burst)
        return burst

    def seen(self, each: Iterable[Burst | UsageReports]) -> None:
        """Like `burst`, for all updates of a run and the contexts that the agent told in it; `settle` follows."""
        for one in each:
            if isinstance(one, UsageReports):
                self._wait(one)
            elif self.last is None or not self.last.add(one):
                self.last = one
                self._waiting.append(one)

    def line(self, sender: Side, line: bytes) -> None:
        """A line that may be late; `settle` follows when it was forwarded."""
        self._wait((sender, line))

    def usage_update(self, line: bytes) -> None:
        """Like `line`, for an agent's `usage_update` that came alone."""
        self._wait(line)

    def prompt(self, line: bytes) -> None:
        """A client's prompt that was forwarded: an agent that answers at once need not wait until it is read."""
        self._wait(partial(self._prompted, line, self._clock()))
        self._first = len(self._waiting)

    def _prompted(self, line: bytes, at: int) -> list[Event]:
        message = parse(line)
        return [] if message is None else self._conversation.receive(Side.CLIENT, message, at, len(line))

    def _wait(self, what: Waits) -> None:
        self._waiting.append(what)
        self._late = True
        self.last = None

    def awaits(self, sender: Side, id: Any) -> bool:
        """Whether a response answers a request that is followed. It may be that of a prompt which waits here."""
        if self._first:
            self.flush(self._first)
        return self._conversation.awaits(sender, id)

    def settle(self) -> None:
        """The waiting lines have been forwarded: account for lines soon, for bursts when there are many."""
        if len(self._waiting) > AT_MOST or (self._late and self._later is None):
            self.flush()
        elif self._late and not self._scheduled and self._later is not None:
            self._scheduled = True
            self._later(self._due)

    def ending(self, session: str | None) -> None:
        """Before what waits is looked into: tell that a message is here that ends a turn, or that a side is gone."""
        if self._waiting:
            self._publish([TurnEnding(self._clock(), session)])

    def flush(self, first: int | None = None) -> None:
        """Account for what waits, now; or for the first ones of it."""
        if not self._waiting:
            return
        count = len(self._waiting) if first is None else first
        waiting, self._waiting = self._waiting[:count], self._waiting[count:]
        self._late = self._late and bool(self._waiting)
        self._first, self.last = 0, None
        for each in folded(waiting):
            match each:
                case Burst():
                    self._conversation.tally(each.session, each.kind, each.chars, each.updates, each.message)
                case UsageReports():
                    self._take(
                        partial(self._conversation.usage_reported, each.session, each.size, each.each, self._clock())
                    )
                case partial():
                    self._take(each)
                case bytes():
                    self._line(Side.AGENT, each)
                case (sender, line):
                    self._line(sender, line)

    def _line(self, sender: Side, line: bytes) -> None:
        if (message := parse(line)) is not None:
            self._receive(sender, message, len(line), None)

    def _due(self) -> None:
        self._scheduled = False
        self.flush()

    def message(self, sender: Side, message: Message, size: int, admitted: str | None = None) -> None:
        """A message of `size` bytes passed, or is about to; `admitted` is the turn's id where admission made one."""
        self.flush()
        self._receive(sender, message, size, admitted)

    def _receive(self, sender: Side, message: Message, size: int, admitted: str | None) -> None:
        self._take(partial(self._conversation.receive, sender, message, self._clock(), size, admitted))

    def _take(self, read: Callable[[], list[Event]]) -> None:
        """Pass the events of the conversation to everyone."""
        try:
            events = read()
        except Exception as error:  # a fault of our own must not stop the relay
            self.failed(self._conversation, error)
            return
        self._publish(events)

    def close(self, side: Side) -> None:
        """That side is gone: what is open ends."""
        self.ending(None)
        self.flush()
        self._take(partial(self._conversation.close, side, self._clock()))

    def publish(self, events: Iterable[Event]) -> None:
        """To the interceptors, each event before what the meter makes of it."""
        self.flush()
        self._publish(events)

    def _publish(self, events: Iterable[Event]) -> None:
        for event in events:
            self._tell(event)
            try:
                derived = self._meter.on_event(event)
            except Exception as error:  # as above
                self.failed(self._meter, error)
                continue
            for each in derived:
                self._tell(each)

    def failed(self, who: object, error: BaseException) -> None:
        self.failures += 1
        self.log("error", "interceptor failed", who=type(who).__name__, error=type(error).__name__, at=_place(error))

    async def aclose(self) -> None:
        for interceptor in self.interceptors:
            try:
                async with asyncio.timeout(CLOSING):
                    await interceptor.aclose()
            except FAULTS as error:  # an interceptor's failure stays its own
                if ends_this_task(error):
                    raise
                self.failed(interceptor, error)

    def _tell(self, event: Event) -> None:
        kind = type(event)
        hearers = self._hearers.get(kind)
        if hearers is None:
            hearers = self._hearers[kind] = tuple(self._who_hears(kind))
        for interceptor, on_event in hearers:
            try:
                effects = list(on_event(event))
            except FAULTS as error:  # as above: the result of a task of its own, say, that was cancelled
                self.failed(interceptor, error)
                continue
            if effects:
                self.carry_out(interceptor, effects)

    def carry_out(self, who: object, effects: Iterable[Effect]) -> None:
        """Carry out the effects that `who` returned; an effect that fails is only logged."""
        for effect in effects:
            try:
                self._carry_out(effect)
            except Exception as error:  # as above
                self.failed(who, error)

    def _who_hears(self, kind: type[Event]) -> Iterator[_Hearer]:
        """Asked once for each class of events: most interceptors want a few of the twenty."""
        for interceptor in self.interceptors:
            try:
                event_types, on_event = interceptor.event_types, interceptor.on_event
                deaf = getattr(on_event, "__func__", None) is Interceptor.on_event
                wanted = not deaf if event_types is None else kind in event_types
            except Exception as error:  # as above
                self.failed(interceptor, error)
                continue
            if wanted:
                yield interceptor, on_event


def ends_this_task(error: BaseException) -> bool:
    """Whether this task is to end; else a CancelledError comes from a task of an interceptor's own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _place(error: BaseException) -> str:
    """The origin of an exception, without its text, which may hold content of the session."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
