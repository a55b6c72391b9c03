"""Between the pumps and everything that watches: decides what is forwarded when.

It looks at lines, never changes one, and does no I/O of its own. A line that ends a turn is accounted before it is
forwarded, all others after; what an interceptor wants to admit waits (`admission.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_proxy.accounting import Accounting, Later, Log
from acp_proxy.core.alike import ESCAPE, NEWLINE, QUOTE, Alike
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side
from acp_proxy.core.long_lines import may_stream
from acp_proxy.core.meter import Meter
from acp_proxy.core.peek import (
    UNREADABLE,
    Head,
    Peek,
    decode_heads,
    decode_run,
    is_one_a_line,
    peek_lines,
    peek_run,
    split_lines,
)
from acp_proxy.core.traffic import Flow, Traffic
from acp_proxy.glance import Tally, Told, is_usage_update, may_be_late, next_of_agent
from acp_proxy.interceptor import Interceptor
from acp_proxy.lane import Lane, Outlet
from acp_proxy.passage import Passage

_CLIENT, _AGENT = Side.CLIENT, Side.AGENT  # looked up for each run


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
        later: Later | None = None,
        admission_timeout: float = 0.25,
        traffic: Traffic | None = None,
    ) -> None:
        """`clock` gives Unix ns; without `later` nothing waits to be accounted; `admission_timeout` is in seconds.

        Messages, and failures at the end, are counted in `traffic`.
        """
        self._traffic = traffic or Traffic()
        self._from_client, self._from_agent = self._traffic.from_client, self._traffic.from_agent
        self._conversation = conversation
        self._accounting = Accounting(
            conversation, meter, interceptors, self._carry_out, clock=clock, log=log, later=later
        )
        self._passage = Passage(conversation, self._accounting, admission_timeout)
        self._admission = self._passage.admission
        self._awaits = self._accounting.awaits
        self._alike = Alike()
        self._first_gone: Side | None = None

    @property
    def failures(self) -> int:
        """Exceptions in interceptors and in our own accounting so far."""
        return self._accounting.failures

    def attach(self, to_client: Outlet, to_agent: Outlet) -> None:
        self._to_client, self._to_agent = Lane(to_client), Lane(to_agent)
        self._passage.attach(self._to_client, self._to_agent)
        self._write_to_client, self._write_to_agent = to_client.write, to_agent.write

    def glance(self, sender: Side) -> Callable[[bytes], bool]:
        return self._glance_at_agents if sender is _AGENT else self._glance_at_clients

    def lines(self, sender: Side, run: bytes) -> None:
        """Forward whole lines and account for them."""
        if run[-1] != NEWLINE:
            self._looked_into(sender, run, peek_run(run))
        elif self.glance(sender)(run):
            (self._write_to_client if sender is _AGENT else self._write_to_agent)(run)

    def _glance_at_agents(self, run: bytes) -> bool:
        """Most of all traffic ends here: nothing in it matters."""
        alike = self._alike
        if len(run) >= alike.long:
            self._sifted(run)
            return False
        begin, end = alike.begin, alike.end
        if run[:begin] == alike.head:
            words = run[begin:end]
            if QUOTE in words or ESCAPE in words or NEWLINE in words:
                measured = alike.measure(run)
                if measured is not None:
                    self._from_agent.messages += measured[0]
                    self._accounting.tally(alike.session, alike.kind, *measured)
                    return True
            elif run[end:] == alike.tail and len(run) >= alike.least:
                self._from_agent.messages += 1
                last = self._accounting.last
                if last is not None and last.kind == alike.kind and last.session == alike.session:
                    last.updates += 1
                    last.size += len(words) + alike.around
                else:
                    self._accounting.tally(alike.session, alike.kind, 1, len(words) + alike.around)
                return True
        try:
            peeked = decode_run(run)
        except UNREADABLE:
            peeked = peek_lines(run)
        awaits = self._awaits
        for peek in peeked:
            if peek.method is not None:
                self._peeked_of_agent(run, peeked)
                return False
            if awaits(_AGENT, peek.id):
                self._looked_into(_AGENT, run, peeked)
                return False
        self._from_agent.messages += len(peeked)
        return True

    def _glance_at_clients(self, run: bytes) -> bool:
        """The same for the other direction."""
        try:
            heads: Sequence[Head | Peek] = decode_heads(run)
        except UNREADABLE:
            heads = peek_lines(run)
        passage, held = self._passage, self._admission.held
        for head in heads:
            method = head.method
            if held or (method in passage.methods if method is not None else passage.answers(_CLIENT, head.id)):
                return self._peek_at_clients(run)
        self._from_client.messages += len(heads)
        return True

    def _peek_at_clients(self, run: bytes) -> bool:
        peeked = peek_run(run)
        if self._next_of_client(peeked, 0) < len(peeked):
            self._looked_into(_CLIENT, run, peeked)
            return False
        self._from_client.messages += len(peeked)
        return True

    def streams(self, sender: Side, head: bytes) -> bool:
        """Whether a line too long to be held may go out as it comes: everything but what must be accounted first."""
        return self._admission.idle and may_stream(sender, head, self._passage.answers, self._admission.methods)

    def part(self, sender: Side, data: bytes, first: bool, last: bool) -> None:  # noqa: ARG002  the lane knows
        """Forward a piece of such a line; what its two ends say is accounted when it is through."""
        lane = self._to_client if sender is _AGENT else self._to_agent
        through = lane.piece(data, last)
        if through is None:
            return
        self._flow(sender).messages += 1
        message = through.message()
        if message is not None:
            self._accounting.message(sender, message, through.size)
        lane.insert_delayed()

    def ended(self, sender: Side) -> None:
        """That side sends no more. Turns stay open while the agent may still answer them."""
        self._first_gone = self._first_gone or sender
        if sender is Side.AGENT:
            self.finish()

    def finish(self) -> None:
        """Nothing more will come: what is still open ends here, blamed on the side that left first."""
        if not self._passage.closed:
            self._passage.closed = True
            self._accounting.close(self._first_gone or Side.AGENT)

    def holding(self) -> int:
        """Bytes of client lines that wait for admission."""
        return self._admission.held

    def announce(self, event: Event) -> None:
        """Let everyone know what came from elsewhere, such as the ledger's answer."""
        self._accounting.publish([event])

    async def aclose(self) -> None:
        self._admission.close()
        self._traffic.errors["interceptor"] = self.failures
        await self._accounting.aclose()

    # -- looking

    def _next_of_client(self, peeked: Sequence[Peek], start: int) -> int:
        """The index of the client's next line that needs more than a glance, or the end."""
        methods, held = self._passage.methods, self._admission.held
        for index in range(start, len(peeked)):
            peek = peeked[index]
            if peek.method in methods or ((held or peek.method is None) and self._passage.matters(peek)):
                return index
        return len(peeked)

    # -- forwarding

    def _peeked_of_agent(self, run: bytes, peeked: list[Peek]) -> None:
        """Not all of the run are responses that nobody follows."""
        if len(peeked) == 1 and is_usage_update(peeked[0]) and run[-1] == NEWLINE and is_one_a_line(run, peeked):
            self._write_to_client(run)  # there is mostly something behind it that somebody waits for
            self._from_agent.messages += 1
            self._accounting.usage_update(run)
            self._accounting.settle()
            return
        seen = self._glance(run, peeked)
        if seen is None:
            self._looked_into(_AGENT, run, peeked)
            return
        self._write_to_client(run)
        self._from_agent.messages += len(peeked)
        if seen:
            self._accounting.seen(seen)
            self._accounting.settle()
            self._alike.learn(run[run.rfind(b"\n", 0, -1) + 1 :], peeked[-1])

    def _glance(self, run: bytes, peeked: list[Peek]) -> list[Tally | Told] | None:
        """What the agent's lines tell where a glance is enough for all of them."""
        seen: list[Tally | Told] = []
        mark = next_of_agent(peeked, 0, self._awaits, seen)
        return seen if mark == len(peeked) and run[-1] == NEWLINE and is_one_a_line(run, peeked) else None

    def _looked_into(self, sender: Side, run: bytes, peeked: list[Peek]) -> None:
        """Some lines of the run matter: forward in order, and account for each at its time."""
        if len(peeked) == 1 and run[-1] == NEWLINE and is_one_a_line(run, peeked):
            self._flow(sender).messages += 1
            if sender is _AGENT and may_be_late(peeked[0]):
                self._write_to_client(run)
                self._accounting.line(sender, run)
            else:
                self._passage.line(sender, run)
            self._accounting.settle()
        else:
            self._settle(sender, run, self._each(sender, run, 0, 0, run, peeked))

    def _sifted(self, run: bytes) -> None:
        """The same for many lines of the agent, of which most are like the one that is known."""
        sent = begin = 0
        for piece, measured in self._alike.sift(run):
            if measured is None:
                peeked = peek_run(piece)
                seen = self._glance(piece, peeked)
                if seen is not None:
                    self._from_agent.messages += len(peeked)
                    self._accounting.seen(seen)
                else:
                    sent = self._each(_AGENT, run, sent, begin, piece, peeked)
            else:
                self._from_agent.messages += measured[0]
                self._accounting.tally(self._alike.session, self._alike.kind, *measured)
            begin += len(piece)
        self._settle(_AGENT, run, sent)

    def _settle(self, sender: Side, run: bytes, sent: int) -> None:
        self._lane(sender).forward(run[sent:])
        self._accounting.settle()

    def _each(self, sender: Side, run: bytes, sent: int, begin: int, piece: bytes, peeked: list[Peek]) -> int:
        """The lines of a piece that begins at `begin`; `sent` bytes of the run are forwarded, and so many then."""
        lines = split_lines(piece)
        if not is_one_a_line(piece, peeked):
            peeked = peek_lines(piece)
        self._flow(sender).messages += len(lines)
        counted = 0
        while True:
            seen: list[Tally | Told] = []
            if sender is Side.CLIENT:
                mark = self._next_of_client(peeked, counted)
            else:
                mark = next_of_agent(peeked, counted, self._awaits, seen)
                self._accounting.seen(seen)
            if mark == len(lines):
                break
            begin += sum(map(len, lines[counted:mark]))
            line, counted = lines[mark], mark + 1
            if sender is Side.AGENT and may_be_late(peeked[mark]):
                self._accounting.line(sender, line)
            else:
                self._lane(sender).forward(run[sent:begin])
                self._passage.line(sender, line)
                sent = begin + len(line)
            begin += len(line)
        if seen:
            self._alike.learn(lines[-1], peeked[-1])
        return sent

    def _carry_out(self, effect: Effect) -> None:
        self._passage.carry_out(effect)

    def _flow(self, sender: Side) -> Flow:
        return self._from_client if sender is Side.CLIENT else self._from_agent

    def _lane(self, sender: Side) -> Lane:
        return self._to_agent if sender is Side.CLIENT else self._to_client
