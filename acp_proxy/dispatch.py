"""Between the pumps and everything that watches: decides what is forwarded when, and carries out effects in order.

It looks at lines, never changes one, and does no I/O of its own. A line that ends a turn is accounted before it is
forwarded, all others after; only a request that an interceptor wants to admit waits, and with it later lines of the
same session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from acp_proxy.core import acp
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side
from acp_proxy.core.jsonrpc import Message, Notification, Request, parse
from acp_proxy.core.meter import Meter
from acp_proxy.core.peek import HEAD, Peek, meta_in_tail, peek_head, peek_line, peek_run, split_lines
from acp_proxy.interceptor import Interceptor, Refusal


class Outlet(Protocol):
    """Where lines to one side go (`pump.Outlet`)."""

    def write(self, data: bytes) -> None: ...

    def resume_reading(self) -> None: ...


class Log(Protocol):
    """One event with fields; never content of the session."""

    def __call__(self, level: str, event: str, **fields: Any) -> None: ...


class Dispatcher:
    """The relay's `Inspector`. One per connection; everything runs in the event loop's thread."""

    def __init__(
        self,
        conversation: Conversation,
        meter: Meter,
        interceptors: Sequence[Interceptor],
        *,
        clock: Callable[[], int],
        log: Log,
        admission_timeout: float = 0.25,
    ) -> None:
        """`clock` gives Unix ns; `admission_timeout` is in seconds."""
        self._conversation = conversation
        self._meter = meter
        self._interceptors = interceptors
        self._clock = clock
        self._log = log
        self._admission_timeout = admission_timeout
        self._admits = frozenset[str]().union(*(interceptor.admits for interceptor in interceptors))
        self._waiting: dict[Any, deque[bytes]] = {}  # client lines behind a prompt that waits, by session
        self._held = 0
        self._admissions: set[asyncio.Task[None]] = set()
        self._cut: dict[Side, _Cut] = {}  # lines of which a part is out already, by sender
        self._unended: set[Side] = set()  # sides whose last line lacked its newline
        self._first_gone: Side | None = None
        self._finished = False
        self.failures = 0  # exceptions in interceptors and in our own accounting

    def attach(self, to_client: Outlet, to_agent: Outlet) -> None:
        self._outlets = {Side.CLIENT: to_client, Side.AGENT: to_agent}

    def lines(self, sender: Side, run: bytes) -> None:
        """Forward whole lines and account for them."""
        peeked = peek_run(run)
        mark = self._scan(sender, peeked, 0)
        out = self._outlets[_other(sender)]
        if mark == len(peeked):  # nothing here that matters: most of all traffic
            out.write(run)
        elif len(peeked) == 1:
            self._line(sender, run)
        else:
            self._mixed(sender, run, mark)
        if not run.endswith(b"\n"):
            self._unended.add(_other(sender))

    def streams(self, sender: Side, head: bytes) -> bool:
        """Whether a line too long to be held may go out as it comes: everything but what must be accounted first."""
        message = peek_head(head)
        match message:
            case None:
                return False
            case Request(method=method):
                return not self._waiting and method not in self._admits and self._can_be_accounted(sender, message)
            case Notification(method=method):
                return not self._waiting and (method == acp.SESSION_UPDATE or not self._matters_later(sender, message))
            case _:
                return not self._conversation.awaits(sender, message.id)

    def part(self, sender: Side, data: bytes, first: bool, last: bool) -> None:
        """Forward a piece of such a line; what its two ends say is accounted when it is through."""
        to = _other(sender)
        if first:
            self._cut[sender] = _Cut(data[:HEAD])
        cut = self._cut[sender]
        self._outlets[to].write(data)
        cut.keep(data)
        if not last:
            return
        del self._cut[sender]
        if not data.endswith(b"\n"):
            self._unended.add(to)
        message = cut.message()
        if message is not None:
            self._account(sender, message, cut.size)
        for line in cut.delayed:
            self._outlets[to].write(line)

    def ended(self, sender: Side) -> None:
        """That side sends no more. Turns stay open while the agent may still answer them."""
        self._first_gone = self._first_gone or sender
        if sender is Side.AGENT:
            self.finish()

    def finish(self) -> None:
        """Nothing more will come: what is still open ends here, blamed on the side that left first."""
        if self._finished:
            return
        self._finished = True
        side = self._first_gone or Side.AGENT
        self._publish_all(self._guarded(lambda: self._conversation.close(side, self._clock())))

    def holding(self) -> int:
        return self._held

    def announce(self, event: Event) -> None:
        """Let everyone know what came from elsewhere, such as the ledger's answer."""
        self._publish_all([event])

    async def aclose(self) -> None:
        for task in list(self._admissions):
            task.cancel()
        for interceptor in self._interceptors:
            try:
                await interceptor.aclose()
            except Exception as error:  # the boundary that keeps an interceptor's failure from the relay
                self._failed(interceptor, error)

    # -- looking

    def _scan(self, sender: Side, peeked: Sequence[Peek], start: int) -> int:
        """The index of the next line that needs more than a glance, or the end; counts those before it."""
        if sender is Side.CLIENT:
            return next((i for i in range(start, len(peeked)) if self._client_matters(peeked[i])), len(peeked))
        tally = self._conversation.tally
        for index in range(start, len(peeked)):
            peek = peeked[index]
            params = peek.params
            if peek.method == "session/update" and params is not None and (update := params.update) is not None:
                if update.kind in acp.PLAIN_UPDATES and not len(update.meta):
                    tally(
                        params.session,
                        update.kind,
                        len(update.content) + len(update.raw_input) + len(update.raw_output),
                    )
                    continue
                return index
            if peek.method is None:
                if self._conversation.awaits(sender, peek.id):
                    return index
            elif peek.method in acp.AGENT_METHODS:
                return index
        return len(peeked)

    def _client_matters(self, peek: Peek) -> bool:
        if peek.method is None:
            return self._conversation.awaits(Side.CLIENT, peek.id)
        if self._waiting and peek.params is not None and peek.params.session in self._waiting:
            return True
        return peek.method in acp.CLIENT_METHODS or peek.method in self._admits

    def _matters_later(self, sender: Side, message: Notification) -> bool:
        return message.method in (acp.AGENT_METHODS if sender is Side.AGENT else acp.CLIENT_METHODS)

    def _can_be_accounted(self, sender: Side, request: Request) -> bool:
        """From its head: a prompt that names its session there, and whatever is not followed at all."""
        if sender is Side.AGENT:
            return request.method not in acp.AGENT_METHODS
        if request.method == acp.PROMPT:
            return isinstance(request.params.get("sessionId"), str)
        return request.method not in acp.CLIENT_METHODS

    # -- forwarding

    def _mixed(self, sender: Side, run: bytes, mark: int) -> None:
        """Some lines of the run matter: forward in order, and account for each at its time."""
        out = self._outlets[_other(sender)]
        lines = split_lines(run)
        peeked = [peek_line(line) for line in lines]
        sent, later = 0, list[tuple[Message, int]]()
        while mark < len(lines):
            line = lines[mark]
            message = parse(line)
            if message is not None:
                if self._conversation.ends_turn(sender, message) or self._waits(sender, message):
                    out.write(b"".join(lines[sent:mark]))
                    self._account_all(sender, later)
                    later = []
                    self._line(sender, line)
                    sent = mark + 1
                else:
                    later.append((message, len(line)))
            mark = self._scan(sender, peeked, mark + 1)
        if sent < len(lines):
            out.write(b"".join(lines[sent:]))
        self._account_all(sender, later)

    def _line(self, sender: Side, line: bytes) -> None:
        """One line that matters."""
        out = self._outlets[_other(sender)]
        message = parse(line)
        if message is None:
            out.write(line)
            return
        if self._waits(sender, message):
            self._hold(message, line)
        elif self._conversation.ends_turn(sender, message):
            self._account(sender, message, len(line))
            out.write(line)
        else:
            out.write(line)
            self._account(sender, message, len(line))

    def _account_all(self, sender: Side, messages: Iterable[tuple[Message, int]]) -> None:
        for message, size in messages:
            self._account(sender, message, size)

    def _account(self, sender: Side, message: Message, size: int) -> None:
        self._publish_all(self._guarded(lambda: self._conversation.receive(sender, message, self._clock(), size)))

    def _guarded(self, events: Callable[[], list[Event]]) -> list[Event]:
        try:
            return events()
        except Exception as error:  # a fault of our own must not stop the relay either
            self._failed(self._conversation, error)
            return []

    def _publish_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._publish(event)
            for derived in self._guarded(lambda event=event: self._meter.on_event(event)):  # type: ignore[misc]
                self._publish(derived)

    def _publish(self, event: Event) -> None:
        for interceptor in self._interceptors:
            try:
                effects = list(interceptor.on_event(event))
            except Exception as error:  # the boundary that keeps an interceptor's failure from the relay
                self._failed(interceptor, error)
                continue
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        line = effect.line + b"\n"
        if effect.to in self._unended:
            line = b"\n" + line
            self._unended.discard(effect.to)
        cut = self._cut.get(_other(effect.to))
        if cut is not None:  # nothing stands inside a line
            cut.delayed.append(line)
        else:
            self._outlets[effect.to].write(line)

    # -- admission

    def _waits(self, sender: Side, message: Message) -> bool:
        if sender is Side.AGENT or (not self._waiting and not self._admits):
            return False
        if not isinstance(message, Request | Notification):
            return False
        if acp.session_of(message) in self._waiting:
            return True
        return isinstance(message, Request) and message.method in self._admits

    def _hold(self, message: Message, line: bytes) -> None:
        """Keep a line back: behind the request of its session that waits already, else to ask for it."""
        session = acp.session_of(message)
        self._held += len(line)
        if session in self._waiting:
            self._waiting[session].append(line)
            return
        assert isinstance(message, Request)  # noqa: S101  only requests are asked for
        self._waiting[session] = deque()
        task = asyncio.ensure_future(self._admit(session, message, line))
        self._admissions.add(task)
        task.add_done_callback(self._admissions.discard)

    async def _admit(self, session: Any, request: Request, line: bytes) -> None:
        refusal = await self._verdict(request)
        behind = self._waiting.pop(session)
        self._held -= len(line)
        if refusal is None:
            self._outlets[Side.AGENT].write(line)
            self._account(Side.CLIENT, request, len(line))
        else:
            for effect in refusal.effects:
                self._carry_out(effect)
            self._outlets[Side.CLIENT].write(acp.answer_to(line, refusal.result, refusal.error) + b"\n")
        for next_line in behind:
            self._held -= len(next_line)
            self.lines(Side.CLIENT, next_line)
        self._outlets[Side.AGENT].resume_reading()

    async def _verdict(self, request: Request) -> Refusal | None:
        for interceptor in self._interceptors:
            if request.method not in interceptor.admits:
                continue
            try:
                async with asyncio.timeout(self._admission_timeout):
                    refusal = await interceptor.admit(Side.CLIENT, request)
            except Exception as error:  # a faulty enforcer must not lock people out of their editor
                self._failed(interceptor, error)
                continue
            if refusal is not None:
                return refusal
        return None

    def _failed(self, who: object, error: Exception) -> None:
        self.failures += 1
        self._log("error", "interceptor failed", who=type(who).__name__, error=type(error).__name__, at=_place(error))


class _Cut:
    """A line that goes out in pieces: its two ends, for what they say."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._tail = b""
        self.size = 0
        self.delayed: list[bytes] = []

    def keep(self, data: bytes) -> None:
        self.size += len(data)
        self._tail = data[-HEAD:] if len(data) >= HEAD else (self._tail + data)[-HEAD:]

    def message(self) -> Message | None:
        message = peek_head(self._head)
        if not isinstance(message, Notification) or message.method != acp.SESSION_UPDATE:
            return message
        update = message.params.get("update")
        meta = meta_in_tail(self._tail)
        if meta is None or not isinstance(update, dict) or "_meta" in update:
            return message
        return Notification(message.method, message.params | {"update": update | {"_meta": meta}})


def _other(side: Side) -> Side:
    return Side.AGENT if side is Side.CLIENT else Side.CLIENT


def _place(error: BaseException) -> str:
    """Where an exception came from, without its text: that may hold content of the session."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
