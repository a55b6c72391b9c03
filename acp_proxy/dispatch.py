"""Between the pumps and everything that watches: decides what is forwarded when.

It looks at lines, never changes one, and does no I/O of its own. A line that ends a turn is accounted before it is
forwarded, all others after; what an interceptor wants to admit waits (`admission.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from acp_proxy.accounting import Accounting, Later, Log
from acp_proxy.admission import Admission, Decided
from acp_proxy.core import acp
from acp_proxy.core.alike import Alike
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import AllowPermissions, DenyPermissions, Effect, Send
from acp_proxy.core.events import Event, Side
from acp_proxy.core.jsonrpc import Request, Response, parse
from acp_proxy.core.long_lines import may_stream
from acp_proxy.core.meter import Meter
from acp_proxy.core.peek import (
    NEWLINE,
    UNREADABLE,
    Peek,
    decode_run,
    is_one_a_line,
    peek_line,
    peek_lines,
    peek_run,
    split_lines,
)
from acp_proxy.core.traffic import Flow, Traffic
from acp_proxy.glance import Tally, Told, may_be_late, next_of_agent
from acp_proxy.interceptor import Interceptor, Refusal
from acp_proxy.lane import Lane, Outlet
from acp_proxy.permissions import Permissions

_AGENT = Side.AGENT  # looked up for each run


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
        self._awaits = self._accounting.awaits
        self._alike = Alike()
        self._admission = Admission(self._accounting, self._decided, admission_timeout)
        self._client_methods = acp.CLIENT_METHODS | self._admission.methods
        self._permissions = Permissions()
        self._first_gone: Side | None = None
        self._finished = False

    @property
    def failures(self) -> int:
        """Exceptions in interceptors and in our own accounting so far."""
        return self._accounting.failures

    def attach(self, to_client: Outlet, to_agent: Outlet) -> None:
        self._to_client, self._to_agent = Lane(to_client), Lane(to_agent)
        self._write_to_client, self._write_to_agent = to_client.write, to_agent.write

    def lines(self, sender: Side, run: bytes) -> None:
        """Forward whole lines and account for them. Most of all traffic ends here: nothing in it matters."""
        alike = self._alike
        if sender is _AGENT:
            if len(run) >= alike.long:
                self._sifted(run)
                return
            if run.startswith(alike.head) and (measured := alike.measure(run)) is not None:
                self._write_to_client(run)
                self._from_agent.messages += measured[0]
                self._accounting.tally(alike.session, alike.kind, *measured)
                return
        try:
            peeked = decode_run(run)
        except UNREADABLE:
            peeked = peek_lines(run)
        if sender is _AGENT:
            write, flow, awaits = self._write_to_client, self._from_agent, self._awaits
            for peek in peeked:
                if peek.method is not None:
                    self._peeked_of_agent(run, peeked)
                    return
                if awaits(sender, peek.id):
                    self._looked_into(sender, run, peeked)
                    return
        else:
            write, flow = self._write_to_agent, self._from_client
            methods, held = self._client_methods, self._admission.held
            for peek in peeked:
                if peek.method in methods or ((held or peek.method is None) and self._client_matters(peek)):
                    self._looked_into(sender, run, peeked)
                    return
        if run[-1] != NEWLINE:
            self._looked_into(sender, run, peeked)
            return
        write(run)
        flow.messages += len(peeked)

    def streams(self, sender: Side, head: bytes) -> bool:
        """Whether a line too long to be held may go out as it comes: everything but what must be accounted first."""
        return self._admission.idle and may_stream(sender, head, self._answers, self._admission.methods)

    def part(self, sender: Side, data: bytes, first: bool, last: bool) -> None:  # noqa: ARG002  the lane knows
        """Forward a piece of such a line; what its two ends say is accounted when it is through."""
        lane = self._lane(sender)
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
        if not self._finished:
            self._finished = True
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
        methods, held = self._client_methods, self._admission.held
        for index in range(start, len(peeked)):
            peek = peeked[index]
            if peek.method in methods or ((held or peek.method is None) and self._client_matters(peek)):
                return index
        return len(peeked)

    def _client_matters(self, peek: Peek) -> bool:
        if peek.method is None:
            return self._answers(Side.CLIENT, peek.id)
        if not self._admission.idle and peek.params is not None and self._admission.delays(peek.params.session):
            return True
        return peek.method in self._client_methods

    def _answers(self, sender: Side, id: Any) -> bool:
        """Whether a response with this id from this side means something to us."""
        return self._awaits(sender, id) or self._permissions.drops(sender, id)

    # -- forwarding

    def _peeked_of_agent(self, run: bytes, peeked: list[Peek]) -> None:
        """Not all of the run are responses that nobody follows."""
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
                self._line(sender, run)
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
                self._line(sender, line)
                sent = begin + len(line)
            begin += len(line)
        if seen:
            self._alike.learn(lines[-1], peeked[-1])
        return sent

    def _line(self, sender: Side, line: bytes) -> None:
        """One line that matters now."""
        message = parse(line)
        if message is not None and (session := self._conversation.ending(sender, message)) is not None:
            self._accounting.ending(session)
            self._accounting.message(sender, message, len(line))
            self._to_client.forward(line)
            return
        self._accounting.flush()  # what is decided here depends on what came before
        if message is None:
            self._lane(sender).forward(line)
        elif sender is Side.CLIENT and self._admission.wanted(message):
            self._admission.hold(message, line)
            self._to_agent.outlet.hold_back(self._admission.held)
        elif sender is Side.AGENT and isinstance(message, Request) and message.method == acp.REQUEST_PERMISSION:
            self._permission(message, line)
        elif isinstance(message, Response) and self._permissions.answered(sender, message.id):
            pass  # too late: the agent has been answered
        elif isinstance(message, Request) and message.method == acp.PROMPT and sender is Side.CLIENT:
            self._lane(sender).forward(line)
            self._accounting.prompt(message, len(line))
        else:
            self._lane(sender).forward(line)
            self._accounting.message(sender, message, len(line))

    def _permission(self, request: Request, line: bytes) -> None:
        """The client is asked, or where permission is denied for now the agent is answered."""
        session = self._conversation.root_of(acp.session_of(request) or "")
        denial = acp.answer_to(line, acp.PERMISSION_CANCELLED)
        if not self._permissions.denied(session):
            self._to_client.forward(line)
            self._permissions.asked(session, request.id, denial)
            self._accounting.message(Side.AGENT, request, len(line))
            return
        self._accounting.message(Side.AGENT, request, len(line))
        self._deny(request.id, denial)
        if (told := self._permissions.tell(session)) is not None:
            self._to_client.insert(told)

    def _deny(self, id: Any, answer: bytes) -> None:
        """Answer a request for permission in the client's place."""
        self._to_agent.insert(answer)
        self._accounting.message(Side.CLIENT, Response(id, acp.PERMISSION_CANCELLED), len(answer))

    def _decided(self, decided: Decided) -> None:
        """A request has waited: it goes on, or is answered in the agent's place; then its session's later lines."""
        if self._finished:  # what was open has ended: nothing begins any more
            return
        verdict = decided.verdict
        admitted = None if verdict is None or isinstance(verdict, Refusal) else verdict.turn
        if not isinstance(verdict, Refusal):
            self._to_agent.forward(decided.line)
            self._accounting.message(Side.CLIENT, decided.request, len(decided.line), admitted)
        for effect in verdict.effects if verdict is not None else ():
            self._carry_out(effect)
        if isinstance(verdict, Refusal):
            self._to_client.insert(acp.answer_to(decided.line, verdict.result, verdict.error))
        for line in decided.behind:
            if self._client_matters(peek_line(line)):
                self._line(Side.CLIENT, line)
            else:
                self._to_agent.forward(line)
        self._accounting.settle()
        self._to_agent.outlet.hold_back(self._admission.held)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(to, line):
                (self._to_client if to is Side.CLIENT else self._to_agent).insert(line)
            case DenyPermissions(session, pending, tell):
                for asked, answer in self._permissions.deny(session, pending, tell):
                    self._deny(asked, answer)
            case AllowPermissions(session):
                self._permissions.allow(session)

    def _flow(self, sender: Side) -> Flow:
        return self._from_client if sender is Side.CLIENT else self._from_agent

    def _lane(self, sender: Side) -> Lane:
        return self._to_agent if sender is Side.CLIENT else self._to_client
