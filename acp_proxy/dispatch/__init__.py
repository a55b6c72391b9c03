"""Connects the pumps with the meter and the interceptors, and decides when each line is forwarded.

Inspects lines, never changes one, and does no I/O. A line that ends a turn is accounted before it is forwarded, all
others after; a request that an interceptor must admit waits (`admission`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acp_proxy.core.acp import SESSION_UPDATE
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side
from acp_proxy.core.jsonrpc import Notification, Request, Response
from acp_proxy.core.meter import Meter
from acp_proxy.core.traffic import Traffic
from acp_proxy.core.wire.long_lines import may_stream
from acp_proxy.core.wire.peek import NEWLINE
from acp_proxy.dispatch.accounting import Accounting, Later, Log
from acp_proxy.dispatch.agent_lines import AgentLines
from acp_proxy.dispatch.client_lines import ClientLines
from acp_proxy.dispatch.line_router import LineRouter
from acp_proxy.dispatch.line_writer import LineWriter
from acp_proxy.interceptor import Interceptor

if TYPE_CHECKING:
    from acp_proxy.dispatch.questions import Line
    from acp_proxy.relay.inspector import Sink


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
        self._log = log
        self._accounting = Accounting(
            conversation, meter, interceptors, self._carry_out, clock=clock, log=log, later=later
        )
        self._router = LineRouter(conversation, self._accounting, admission_timeout)
        self._admission = self._router.admission
        self._first_gone: Side | None = None

    @property
    def failures(self) -> int:
        """Exceptions in interceptors and in our own accounting so far."""
        return self._accounting.failures

    def attach(self, to_client: Sink, to_agent: Sink) -> None:
        self._to_client, self._to_agent = LineWriter(to_client), LineWriter(to_agent)
        self._router.attach(self._to_client, self._to_agent)
        counted = self._traffic
        self._of_client = ClientLines(self._to_agent, self._router, self._accounting, counted.from_client)
        self._of_agent = AgentLines(self._to_client, self._router, self._accounting, counted.from_agent)

    def scan(self, sender: Side) -> Callable[[bytes], bool]:
        return (self._of_client if sender is Side.CLIENT else self._of_agent).scan

    def lines(self, sender: Side, run: bytes) -> None:
        """Forward whole lines and account for them."""
        of_sender = self._of_client if sender is Side.CLIENT else self._of_agent
        if run[-1] != NEWLINE:
            of_sender.broken_off(run)
        elif of_sender.scan(run):
            (self._to_agent if sender is Side.CLIENT else self._to_client).outlet.write(run)

    def streams(self, sender: Side, head: bytes) -> bool:
        """Whether a line too long to be held may go out as it comes: everything but what must be accounted first."""
        if sender is Side.CLIENT and self._admission.held:
            return False  # what waits would go into the middle of it
        return may_stream(sender, head, self._router.answers, self._admission.methods)

    def gives_up(self, sender: Side, size: int) -> bool:
        """Whether a line that may not stream is forwarded after all, for it is too large to be held.

        What it says is not known then. So never a client's where prompts are admitted: size is no way past a budget.
        """
        if sender is Side.CLIENT and self._admission.methods:
            return False
        self._log("warning", "a line is too long to be looked into", sender=sender.value, bytes=size)
        return True

    def part(self, sender: Side, data: bytes, *, last: bool) -> None:
        """Forward a piece of such a line; what its two ends say is accounted when it is through."""
        writer = self._to_agent if sender is Side.CLIENT else self._to_client
        through = writer.piece(data, last=last)
        if through is None:
            return
        (self._traffic.from_client if sender is Side.CLIENT else self._traffic.from_agent).messages += 1
        message = through.message()
        if message is not None:
            if through.is_partly_read and isinstance(message, Notification) and message.method == SESSION_UPDATE:
                self._traffic.errors["partly_read"] += 1
            self._accounting.message(sender, message, through.size)
        writer.insert_delayed()

    def ended(self, sender: Side) -> None:
        """That side sends no more. Turns stay open while the agent may still answer them."""
        self._first_gone = self._first_gone or sender
        self._router.answerless()
        if sender is Side.AGENT:
            self.finish()

    def finish(self) -> None:
        """Nothing more will come: what is still open ends here, blamed on the side that left first."""
        if not self._router.closed:
            self._router.closed = True
            self._accounting.close(self._first_gone or Side.AGENT)

    def holding(self) -> int:
        """Bytes of client lines that wait for admission."""
        return self._admission.held

    def ask(self, about: Request, line: Line) -> asyncio.Future[Response | None]:
        """Ask the client something about a request that waits for `admit`, and is to be refused whatever it answers.

        `line` makes the question, a request of ACP, for an id that is ours. The answer is None where none will come,
        and cancelled where the client takes the request back.
        """
        return self._router.ask(about, line)

    def announce(self, event: Event) -> None:
        """Let everyone know what came from elsewhere, such as the ledger's answer."""
        self._accounting.publish([event])

    async def aclose(self) -> None:
        self._admission.close()
        self._traffic.errors["interceptor"] = self.failures
        await self._accounting.aclose()

    def _carry_out(self, effect: Effect) -> None:
        self._router.carry_out(effect)
