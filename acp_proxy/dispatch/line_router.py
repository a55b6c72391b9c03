"""Routes a line that needs more than a scan: forwards it, holds it for admission, or answers it in the peer's place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acp_proxy.core import acp
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.effects import AllowPermissions, DenyPermissions, Effect, Send
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import (
    Message,
    Notification,
    Request,
    Response,
    breaks_within,
    comes_back,
    may_ask,
    may_be_batch,
    parse,
    parse_batch,
)
from acp_proxy.core.wire.peek import Envelope, Peek
from acp_proxy.dispatch.accounting import Accounting
from acp_proxy.dispatch.admission import Admission, Decided
from acp_proxy.dispatch.line_writer import LineWriter
from acp_proxy.dispatch.permissions import Permissions
from acp_proxy.interceptor import Refusal

if TYPE_CHECKING:
    from acp_proxy.dispatch.questions import Line, Questions

_MOST_OBJECTS = 10_000  # in an array that is read: some 10 us each, in which nothing else passes


class LineRouter:
    """The router of one connection. Accounts a line before forwarding it if it ends a turn, else after."""

    def __init__(self, conversation: Conversation, accounting: Accounting, admission_timeout: float) -> None:
        """`admission_timeout` is in seconds."""
        self._conversation = conversation
        self._accounting = accounting
        self.admission = Admission(accounting, self._decided, admission_timeout)
        self.methods = acp.CLIENT_METHODS | self.admission.methods
        """Methods of the client that need more than a scan while nothing waits for admission."""
        if self.admission.methods:
            conversation.follow_all()
        self._permissions = Permissions()
        self.answers: Callable[[Side, Any], bool] = self._answers
        """Whether a response with this id from this side means something to us."""
        self._questions: Questions | None = None  # once there is one
        self._answerable = True  # the client may still say something
        self.closed = False  # what was open has ended: nothing begins any more

    def attach(self, to_client: LineWriter, to_agent: LineWriter) -> None:
        self._to_client, self._to_agent = to_client, to_agent

    def matters(self, peek: Peek) -> bool:
        """Whether a client's line needs more than a scan."""
        if peek.method is None:
            return self.answers(Side.CLIENT, peek.id)
        if peek.params is not None and self.admission.delays(peek.params.session):
            return True
        return peek.method in self.methods or peek.method == acp.CANCEL_REQUEST  # perhaps of a request that waits

    def passes(self, peek: Envelope | Peek) -> bool:
        """Whether a client's line may go on where prompts are admitted: its id is noted, and that is all."""
        if self.admission.held:
            return False
        if peek.method is None:
            return not self.answers(Side.CLIENT, peek.id)
        return peek.method not in self.methods and self._conversation.passes(peek.id)

    def _answers(self, sender: Side, id: Any) -> bool:
        return self._accounting.awaits(sender, id) or self._permissions.drops(sender, id)

    def goes_on(self, method: str) -> bool:
        """Whether a client's request or notification of this method need not wait; `gone_on` is told of it then."""
        return not self.admission.held and method not in self.admission.methods

    def gone_on(self, method: str, line: bytes) -> None:
        if method == acp.PROMPT:
            self._accounting.prompt(line)
        elif (message := parse(line)) is not None:
            self._accounting.message(Side.CLIENT, message, len(line))
        else:
            self._read_batch(Side.CLIENT, line)

    def line(self, sender: Side, line: bytes) -> None:
        """One line that matters now."""
        message = parse(line)
        if message is not None and (session := self._conversation.ending(sender, message)) is not None:
            self._accounting.ending(session)
            self._accounting.message(sender, message, len(line))
            self._to_client.forward(line)
            return
        self._accounting.flush()  # what is decided here depends on what came before
        if sender is Side.CLIENT and self._slips_past(message, line):
            self._to_client.insert(acp.answer_to(line, error=acp.INVALID_REQUEST))
        else:
            self._pass_on(sender, message, line)

    def _pass_on(self, sender: Side, message: Message | None, line: bytes) -> None:
        """A line that goes its way, or waits for who admits it."""
        if self._is_ours(sender, message):
            return
        if message is None:
            self._read_batch(sender, line)
            self._writer(sender).forward(line)
        elif sender is Side.CLIENT and self.admission.wanted(message):
            self.admission.hold(message, line)
            self._to_agent.outlet.hold_back(self.admission.weight)
        elif sender is Side.AGENT and isinstance(message, Request) and message.method == acp.REQUEST_PERMISSION:
            self._permission(message, line)
        elif isinstance(message, Response) and self._permissions.answered(sender, message.id):
            pass  # too late: the agent has been answered
        elif isinstance(message, Request) and message.method == acp.PROMPT and sender is Side.CLIENT:
            self._writer(sender).forward(line)
            self._accounting.prompt(line)
        else:
            self._writer(sender).forward(line)
            self._accounting.message(sender, message, len(line))

    def _slips_past(self, message: Message | None, line: bytes) -> bool:
        """Whether a client's line asks, or may ask, for what waits to be admitted, but not as one request on one line.

        It cannot be admitted or followed; but agents that read it all the same do it. The
        answer to a request with a prompt's id, or to one by an id that does not come back, would end the wrong turn.
        """
        admitted = self.admission.methods
        match message:
            case _ if not admitted:
                return False
            case Request(id, method):
                return breaks_within(line) or not comes_back(id) or self._is_open(id, a_turn=method not in admitted)
            case Notification(acp.PROMPT):
                return acp.PROMPT in admitted
        return (message is None or breaks_within(line)) and may_ask(line)

    def _is_open(self, id: Any, *, a_turn: bool = False) -> bool:
        """Whether a request with this id waits or is unanswered; with `a_turn`, also one that ends a turn."""
        if self.admission.keeps(id):
            return True
        return self._conversation.ends_turn(id) if a_turn else self._conversation.is_open(id)

    def _read_batch(self, sender: Side, line: bytes) -> None:
        """An array of messages is read and never kept: ACP has none, and agents on its SDKs refuse them whole."""
        if may_be_batch(line) and line.count(b"{") > _MOST_OBJECTS:
            self._accounting.log(
                "warning", "an array is too long to be looked into", sender=sender.value, bytes=len(line)
            )
            return
        messages = parse_batch(line)
        for message in messages:
            if (session := self._conversation.ending(sender, message)) is not None:
                self._accounting.ending(session)
            self._accounting.message(sender, message, len(line) // len(messages))
        if sender is Side.CLIENT:
            self._conversation.batched(messages)

    def _permission(self, request: Request, line: bytes) -> None:
        """The client is asked, or where permission is denied for now the agent is answered."""
        session = self._conversation.root_of(acp.session_of(request) or "")
        denial = acp.answer_to(line, acp.PERMISSION_CANCELLED)
        if not self._permissions.denied(session):
            self._to_client.forward(line)
            self._permissions.asked(session, request.id, denial)
            self._accounting.message(Side.AGENT, request, len(line))
            return
        told = self._permissions.tell(session)  # first: an interceptor that sees the request may allow the next one
        self._accounting.message(Side.AGENT, request, len(line))
        self._deny(request.id, denial)
        if told is not None:
            self._to_client.insert(told)

    def _deny(self, id: Any, answer: bytes) -> None:
        """Answer a request for permission in the client's place."""
        self._to_agent.insert(answer)
        self._accounting.message(Side.CLIENT, Response(id, acp.PERMISSION_CANCELLED), len(answer))

    def _decided(self, decided: Decided) -> None:
        """A request has waited: it goes on, or is answered in the agent's place; then its session's later lines."""
        if self._questions is not None:
            self._questions.decided(decided.request)
        if self.closed:  # what was open has ended: nothing begins any more
            self._to_agent.outlet.hold_back(self.admission.weight)
            return
        verdict = decided.verdict
        admitted = None if verdict is None or isinstance(verdict, Refusal) else verdict.turn
        if not isinstance(verdict, Refusal):
            self._to_agent.forward(decided.line)
            self._accounting.message(Side.CLIENT, decided.request, len(decided.line), admitted)
        if verdict is not None:
            self._accounting.carry_out(verdict, verdict.effects)
        if isinstance(verdict, Refusal):
            self._to_client.insert(acp.answer_to(decided.line, verdict.result, verdict.error))
        for line in decided.behind:  # which has been looked at: its id has stayed its own while it waited
            self._pass_on(Side.CLIENT, parse(line), line)
        self._accounting.settle()
        self._to_agent.outlet.hold_back(self.admission.weight)

    def ask(self, about: Request, line: Line) -> asyncio.Future[Response | None]:
        """Ask the client something about a request that waits to be admitted, and that will not go.

        The answer is None if none will come, and cancelled if the client takes the request back.
        """
        if self._questions is None:
            from acp_proxy.dispatch.questions import Questions

            self._questions = Questions(os.urandom(16).hex(), self._to_client.insert)
            self.answers = self._answers_or_asked
        question = self._questions.prepare(about, line)
        if not self._answerable:
            self._questions.end()
        for behind in self.admission.will_not_go(about):
            self._pass_on(Side.CLIENT, parse(behind), behind)
        self._questions.tell(question)  # unless what came behind takes the request back
        self._accounting.settle()
        self._to_agent.outlet.hold_back(self.admission.weight)
        return question.answer

    def _is_ours(self, sender: Side, message: Message | None) -> bool:
        """Whether a line is the client's answer to a question, which goes no further."""
        if self._questions is None or sender is Side.AGENT or message is None:
            return False
        return self._questions.takes(message)

    def _answers_or_asked(self, sender: Side, id: Any) -> bool:
        if self._questions is not None and sender is Side.CLIENT and self._questions.owns(id):
            return True
        return self._answers(sender, id)

    def answerless(self) -> None:
        """The client says nothing more, or the agent is gone: no question gets an answer."""
        self._answerable = False
        if self._questions is not None:
            self._questions.end()

    def carry_out(self, effect: Effect) -> None:
        """Raises ValueError for what is no single line: half of it would be read as another message.

        Raises TypeError for what is no effect, has no side to go to or is no bytes: others' code may return anything.
        """
        match effect:
            case Send(line=bytes(line)) | DenyPermissions(tell=bytes(line)) if b"\n" in line:
                raise ValueError("a line with a newline inside")
            case Send(Side() as to, bytes(line)):
                (self._to_client if to is Side.CLIENT else self._to_agent).insert(line)
            case DenyPermissions(session, pending, None | bytes() as tell):
                for asked, answer in self._permissions.deny(session, pending, tell):
                    self._deny(asked, answer)
            case AllowPermissions(session):
                self._permissions.allow(session)
            case _:
                raise TypeError(type(effect).__name__)

    def _writer(self, sender: Side) -> LineWriter:
        return self._to_agent if sender is Side.CLIENT else self._to_client
