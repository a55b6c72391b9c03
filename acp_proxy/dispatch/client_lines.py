"""Lines of the client: most are forwarded after a scan, except prompts and lines that wait behind one."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import BATCH, breaks_within, may_ask
from acp_proxy.core.traffic import Flow
from acp_proxy.core.wire.peek import (
    NEWLINE,
    NO_MESSAGE,
    UNREADABLE,
    Envelope,
    Peek,
    decode_envelopes,
    is_one_a_line,
    peek_line,
    peek_lines,
    peek_run,
    split_lines,
)
from acp_proxy.dispatch.accounting import Accounting
from acp_proxy.dispatch.line_router import LineRouter
from acp_proxy.dispatch.line_writer import LineWriter

_CLIENT = Side.CLIENT  # looked up for each run


class ClientLines:
    """On their way to `writer`, the agent's."""

    def __init__(self, writer: LineWriter, router: LineRouter, accounting: Accounting, flow: Flow) -> None:
        self._writer = writer
        self._router = router
        self._admission = router.admission
        self._accounting = accounting
        self._flow = flow
        self._strict = bool(self._admission.methods)
        self.scan = self._scan_each if self._strict else self._scan_all
        """Whether the pump is to forward whole lines as they are; else they have been."""

    def _scan_each(self, run: bytes) -> bool:
        """Where prompts are admitted: what an agent reads as a line may stand inside of a message over several.

        And all that a client asks for is known until it is answered: an answer is a prompt's by nothing but its id.
        """
        if run.find(b"\n") == len(run) - 1 and not breaks_within(run):  # as nearly always
            try:
                envelopes = decode_envelopes(run)
            except UNREADABLE:
                envelopes = []
            if len(envelopes) == 1 and self._router.passes(envelopes[0]):
                self._flow.messages += 1
                return True
        return self._peeked(run, peek_strictly(run))

    def _scan_all(self, run: bytes) -> bool:
        try:
            envelopes: Sequence[Envelope | Peek] = decode_envelopes(run)
        except UNREADABLE:
            envelopes = peek_lines(run)
        router, held = self._router, self._admission.held
        for envelope in envelopes:
            method = envelope.method
            if held or (method in router.methods if method is not None else router.answers(_CLIENT, envelope.id)):
                return self._matters(run, envelopes)
        self._flow.messages += len(envelopes)
        return True

    def broken_off(self, run: bytes) -> None:
        """Forwards and accounts for the last lines of a stream, of which the very last lacks its newline."""
        self._looked_into(run, peek_strictly(run) if self._strict else peek_lines(run))

    def _matters(self, run: bytes, envelopes: Sequence[Envelope | Peek]) -> bool:
        """The rest of `_scan_all` for a run in which some line matters, or may."""
        method = envelopes[0].method
        if (
            len(envelopes) == 1
            and method is not None
            and self._router.goes_on(method)
            and is_one_a_line(run, envelopes)
        ):
            self._writer.forward(run)  # before it is read: the agent begins to answer sooner
            self._flow.messages += 1
            self._router.gone_on(method, run)
            self._accounting.settle()
            return False
        return self._peeked(run, peek_run(run))

    def _peeked(self, run: bytes, peeked: Sequence[Peek]) -> bool:
        if self._next(peeked, 0) < len(peeked):
            self._looked_into(run, peeked)
            return False
        self._flow.messages += len(peeked)
        return True

    def _next(self, peeked: Sequence[Peek], start: int) -> int:
        """The index of the next line that needs more than a scan, or the end."""
        if self._strict:
            passes = self._router.passes
            return next((index for index in range(start, len(peeked)) if not passes(peeked[index])), len(peeked))
        methods, held = self._router.methods, self._admission.held
        for index in range(start, len(peeked)):
            peek = peeked[index]
            if peek.method in methods or ((held or peek.method is None) and self._router.matters(peek)):
                return index
        return len(peeked)

    def _looked_into(self, run: bytes, peeked: Sequence[Peek]) -> None:
        """Some lines of the run matter: forward in order, and account for each behind it."""
        if len(peeked) == 1 and run[-1] == NEWLINE and is_one_a_line(run, peeked):
            self._flow.messages += 1
            self._router.line(_CLIENT, run)
        else:
            self._each(run, peeked)
        self._accounting.settle()

    def _each(self, run: bytes, peeked: Sequence[Peek]) -> None:
        lines = split_lines(run)
        if not is_one_a_line(run, peeked):
            peeked = peek_lines(run)
        self._flow.messages += len(lines)
        counted = 0
        while (mark := self._next(peeked, counted)) < len(lines):
            self._writer.forward(b"".join(lines[counted:mark]))
            self._router.line(_CLIENT, lines[mark])
            counted = mark + 1
        self._writer.forward(b"".join(lines[counted:]))


def peek_strictly(run: bytes) -> list[Peek]:
    """`peek_lines` of the same, in which a line that may ask for something of some reader is one that matters."""
    return [_peek_strictly(line) for line in split_lines(run)]


def _peek_strictly(line: bytes) -> Peek:
    peek = peek_line(line)
    return Peek(method=BATCH) if (peek is NO_MESSAGE or breaks_within(line)) and may_ask(line) else peek
