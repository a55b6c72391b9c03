"""Lines of the agent: most are forwarded after a scan, and the findings of the scan are accounted later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.acp import chars_between
from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Flow
from acp_proxy.core.wire.line_template import ESCAPE, NEWLINE, QUOTE, LineTemplate, Measured
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
            self._see_to(run, template.sift(run))
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
            if peek.method is not None or awaits(_AGENT, peek.id):
                self._see_to(run, ((run, peeked),))
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
        self._see_to(run, ((run, peek_run(run)),))

    def _see_to(self, run: bytes, pieces: Iterable[tuple[bytes, Measured | list[Peek] | None]]) -> None:
        """Forward a run in order. Its pieces are measured, peeked, or neither so far."""
        sent = at = 0
        for piece, told in pieces:
            for begin, end in self._matter_now(piece, told):
                self._writer.forward(run[sent : at + begin])
                self._router.line(_AGENT, run[at + begin : at + end])
                sent = at + end
            at += len(piece)
        self._writer.forward(run[sent:] if sent else run)
        self._accounting.settle()

    def _matter_now(self, piece: bytes, told: Measured | list[Peek] | None) -> Iterator[tuple[int, int]]:
        """Where in the piece lines begin and end that have to be looked into before what follows is forwarded.

        The others are left to be accounted when they have been: there is mostly something behind them that somebody
        waits for.
        """
        accounting, template = self._accounting, self._template
        if isinstance(told, tuple):
            self._flow.messages += told[0]
            accounting.burst(template.session, template.kind, *told, template.message)
            return
        peeked = peek_run(piece) if told is None else told
        if not is_one_a_line(piece, peeked):
            peeked = peek_lines(piece)
        self._flow.messages += len(peeked)
        if len(peeked) == 1 and is_usage_update(peeked[0]):
            accounting.usage_update(piece)
            return
        lines: list[bytes] = []
        end = counted = 0
        while True:
            seen: list[Burst | UsageReports] = []
            mark = next_of_agent(peeked, counted, self._awaits, seen)
            accounting.seen(seen)
            if mark == len(peeked):
                break
            lines = lines or split_lines(piece)
            begin = end + sum(map(len, lines[counted:mark]))
            end, counted = begin + len(lines[mark]), mark + 1
            if may_be_late(peeked[mark]):
                accounting.line(_AGENT, lines[mark])
            else:
                yield begin, end
        if seen and told is not None:  # what stands out among many that are alike is not what comes next
            template.learn(piece[piece.rfind(b"\n", 0, -1) + 1 :], peeked[-1])
