"""Lines of the agent: most are forwarded after a scan, and the findings of the scan are accounted later."""

from __future__ import annotations

from acp_proxy.core.acp import chars_between
from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Flow
from acp_proxy.core.wire.line_template import ESCAPE, NEWLINE, QUOTE, LineTemplate
from acp_proxy.core.wire.peek import (
    NO_MESSAGE,
    UNREADABLE,
    Peek,
    decode_run,
    is_one_a_line,
    peek_lines,
    peek_run,
    split_lines,
)
from acp_proxy.dispatch.accounting import Accounting
from acp_proxy.dispatch.fast_path import Burst, UsageReports, is_usage_update, may_be_late, next_of_agent
from acp_proxy.dispatch.line_router import LineRouter
from acp_proxy.dispatch.line_writer import LineWriter

_AGENT = Side.AGENT  # looked up for each run


class AgentLines:
    """On their way to `writer`, the client's."""

    def __init__(self, writer: LineWriter, router: LineRouter, accounting: Accounting, flow: Flow) -> None:
        self._writer = writer
        self._write = writer.outlet.write
        self._router = router
        self._accounting = accounting
        self._awaits = accounting.awaits
        self._flow = flow
        self._template = LineTemplate()
        self._burst = Burst(None, "", 0, 0)  # of lines like the one that is known
        self._logged_no_message = False  # of a line that is no message

    def scan(self, run: bytes) -> bool:
        """Whether the pump is to forward whole lines as they are; else they have been. Most traffic ends here."""
        template = self._template
        if len(run) >= template.long:
            self._sifted(run)
            return False
        begin, end = template.begin, template.end
        if run[:begin] == template.head:
            words = run[begin:end]
            if QUOTE in words or ESCAPE in words or NEWLINE in words:
                measured = template.measure(run)
                if measured is not None:
                    self._flow.messages += measured[0]
                    self._accounting.burst(template.session, template.kind, *measured, template.message)
                    return True
            elif run[end:] == template.tail and len(run) >= template.least:
                self._flow.messages += 1
                chars = len(words) if words.isascii() else chars_between(words)
                burst = self._burst
                if burst is self._accounting.last:
                    burst.updates += 1
                    burst.chars += chars
                else:
                    self._burst = self._accounting.burst(template.session, template.kind, 1, chars, template.message)
                return True
        try:
            peeked = decode_run(run)
        except UNREADABLE:
            peeked = peek_lines(run)
            self._log_no_message(run, peeked)
        awaits = self._awaits
        for peek in peeked:
            if peek.method is not None:
                self._peeked(run, peeked)
                return False
            if awaits(_AGENT, peek.id):
                self._looked_into(run, peeked)
                return False
        self._flow.messages += len(peeked)
        return True

    def _log_no_message(self, run: bytes, peeked: list[Peek]) -> None:
        """Log once that the agent writes what is no message, such as a log of its own: some clients stop at it."""
        none = (line for line, peek in zip(split_lines(run), peeked, strict=True) if peek is NO_MESSAGE)
        if not self._logged_no_message and (size := max(map(len, filter(bytes.strip, none)), default=0)):
            self._logged_no_message = True
            self._accounting.log("info", "agent.no_message", bytes=size)

    def broken_off(self, run: bytes) -> None:
        """Forwards and accounts for the last lines of a stream, of which the very last lacks its newline."""
        self._looked_into(run, peek_run(run))

    def _peeked(self, run: bytes, peeked: list[Peek]) -> None:
        """The rest of `scan` for a run in which some line has a method."""
        if len(peeked) == 1 and is_usage_update(peeked[0]) and is_one_a_line(run, peeked):
            self._write(run)  # there is mostly something behind it that somebody waits for
            self._flow.messages += 1
            self._accounting.usage_update(run)
            self._accounting.settle()
            return
        seen = self._seen(run, peeked)
        if seen is None:
            self._looked_into(run, peeked)
            return
        self._write(run)
        self._flow.messages += len(peeked)
        if seen:
            self._accounting.seen(seen)
            self._accounting.settle()
            self._template.learn(run[run.rfind(b"\n", 0, -1) + 1 :], peeked[-1])

    def _seen(self, run: bytes, peeked: list[Peek]) -> list[Burst | UsageReports] | None:
        """What the lines tell where a scan is enough for all of them."""
        seen: list[Burst | UsageReports] = []
        mark = next_of_agent(peeked, 0, self._awaits, seen)
        return seen if mark == len(peeked) and run[-1] == NEWLINE and is_one_a_line(run, peeked) else None

    def _looked_into(self, run: bytes, peeked: list[Peek]) -> None:
        """Some lines of the run matter: forward in order, and account for each at its time."""
        if len(peeked) == 1 and run[-1] == NEWLINE and is_one_a_line(run, peeked):
            self._flow.messages += 1
            if may_be_late(peeked[0]):
                self._write(run)
                self._accounting.line(_AGENT, run)
            else:
                self._router.line(_AGENT, run)
            self._accounting.settle()
        else:
            self._settle(run, self._each(run, 0, 0, run, peeked))

    def _sifted(self, run: bytes) -> None:
        """What `scan` does, for many lines of which most are like the one that is known."""
        sent = begin = 0
        for piece, measured in self._template.sift(run):
            if measured is None:
                peeked = peek_run(piece)
                seen = self._seen(piece, peeked)
                if seen is not None:
                    self._flow.messages += len(peeked)
                    self._accounting.seen(seen)
                else:
                    sent = self._each(run, sent, begin, piece, peeked)
            else:
                self._flow.messages += measured[0]
                self._accounting.burst(self._template.session, self._template.kind, *measured, self._template.message)
            begin += len(piece)
        self._settle(run, sent)

    def _settle(self, run: bytes, sent: int) -> None:
        self._writer.forward(run[sent:])
        self._accounting.settle()

    def _each(self, run: bytes, sent: int, begin: int, piece: bytes, peeked: list[Peek]) -> int:
        """The lines of a piece that begins at `begin`; `sent` bytes of the run are forwarded, and so many then."""
        lines = split_lines(piece)
        if not is_one_a_line(piece, peeked):
            peeked = peek_lines(piece)
        self._flow.messages += len(lines)
        counted = 0
        while True:
            seen: list[Burst | UsageReports] = []
            mark = next_of_agent(peeked, counted, self._awaits, seen)
            self._accounting.seen(seen)
            if mark == len(lines):
                break
            begin += sum(map(len, lines[counted:mark]))
            line, counted = lines[mark], mark + 1
            if may_be_late(peeked[mark]):
                self._accounting.line(_AGENT, line)
            else:
                self._writer.forward(run[sent:begin])
                self._router.line(_AGENT, line)
                sent = begin + len(line)
            begin += len(line)
        if seen:
            self._template.learn(lines[-1], peeked[-1])
        return sent
