"""Lines that differ from one that was decoded in nothing but a piece of text, told by comparing bytes.

Agents write one line over and over with other words in it. What the decoder said of one holds for all that have the
same bytes around their words, as long as those are one JSON string. Everything else is left to the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from operator import itemgetter
from typing import Any

from acp_proxy.core.acp import PLAIN_UPDATES, SESSION_UPDATE, chars_between, chars_in
from acp_proxy.core.wire.peek import ABSENT, Peek

_TEXT = b'"text":"'
QUOTE, ESCAPE, NEWLINE = b'"\\\n'  # as numbers: to look for one is five times as fast as for `bytes` of length 1
_FEW = 16  # lines
_TELLING = len('"agent_')  # up to here the kinds of text updates are the same, behind it they differ
_NEVER = 1 << 62

Measured = tuple[int, int]
"""Lines, and the characters of their text together."""


class LineTemplate:
    """Knows one line at a time, the latest that it was shown. `session`, `kind` and `message` are those of its update.

    Its bytes are public, because `dispatch/agent_lines.py` compares a line that comes alone without a call.
    """

    def __init__(self) -> None:
        self.session: str | None = None
        self.kind = ""
        self.message: Any = None
        self.long = _NEVER  # bytes; a run of so many is worth sifting, a shorter one is decoded sooner
        self.least = _NEVER  # the length of a line without words
        self.head = self.tail = self._joint = b"\n\n"  # no line begins like this: nothing is alike until `learn`
        self.begin, self.end = 2, -2  # where the words begin, and where they end, counted from the end of a line
        self._words_of = itemgetter(slice(2, -2))  # of a line
        self._telling = itemgetter(0)  # of a line the byte by which those of other kinds differ
        self._tells = b"\n"  # that byte of the line that is known
        self._mixed = False  # the last run that was sifted had other lines in it: the next one will

    def learn(self, line: bytes, peek: Peek) -> None:
        """A line with its newline, and what the decoder says of it. Only an update with nothing but text is kept."""
        update = None if peek.params is None or peek.method != SESSION_UPDATE else peek.params.update
        if peek.params is None or update is None or update.kind not in PLAIN_UPDATES:
            return
        if update.meta is not ABSENT or peek.params.meta is not ABSENT or not line.endswith(b"\n"):
            return
        content = bytes(update.content)
        at, begin = line.find(content), content.rfind(_TEXT) + len(_TEXT)
        end = content.find(b'"', begin)  # a quote before a key's colon ends a string, so the one behind it begins one
        if begin < len(_TEXT) or line.rfind(content) != at or content[end - 1 : end] == b"\\":
            return
        longer = b"." * len(content)  # than all its text
        if chars_in(content[:begin] + longer + content[end:]) != len(longer):  # these words are not all of it, or none
            return
        self.session, self.kind, self.message = peek.params.session, update.kind or "", update.message
        self.head, self.tail = line[: at + begin], line[at + end :]
        self._joint = self.tail + self.head
        self.least, self.long = len(self._joint), _FEW * len(self._joint)
        self.begin, self.end = len(self.head), -len(self.tail)
        self._words_of = itemgetter(slice(self.begin, self.end))
        telling = self.head.find(b'"%s"' % self.kind.encode()) + _TELLING
        self._telling, self._tells = itemgetter(telling), line[telling : telling + 1]

    def measure(self, run: bytes) -> Measured | None:
        """Of a run in which every line is like the one that is known; else None."""
        begin, end = self.begin, self.end
        if run[:begin] != self.head:
            return None
        words = run[begin:end]
        if QUOTE in words or ESCAPE in words or NEWLINE in words:
            return self._measure_each(run, list(map(self._words_of, BytesIO(run).readlines())))
        if len(run) < self.least or run[end:] != self.tail:
            return None
        return 1, chars_between(words)

    def sift(self, run: bytes) -> Iterator[tuple[bytes, Measured | None]]:
        """A run in pieces, in order: lines like the one that is known, measured, and what may be something else."""
        lines = BytesIO(run).readlines()
        each = list(map(self._words_of, lines))
        if not self._mixed and (measured := self._measure_each(run, each)) is not None:
            yield run, measured
            return
        others, first = self._others(lines), 0
        self._mixed = bool(others)
        if len(others) * _FEW > len(lines):
            yield run, None
            return
        for other in others:
            if first < other:
                piece = b"".join(lines[first:other])
                yield piece, self._measure_each(piece, each[first:other])
            yield lines[other], None
            first = other + 1
        if first < len(lines):
            piece = b"".join(lines[first:]) if first else run
            yield piece, self._measure_each(piece, each[first:])

    def _others(self, lines: Sequence[bytes]) -> list[int]:
        """Where lines stand that are something else; what looks like the one that is known is still to be measured."""
        try:
            column = bytes(map(self._telling, lines))
        except IndexError:  # a short one
            return [index for index, line in enumerate(lines) if not line.startswith(self.head)]
        told, at = self._tells, 0
        others: list[int] = []
        while (at := len(column) - len(column[at:].lstrip(told))) < len(column):
            others.append(at)
            at += 1
        return others

    def _measure_each(self, run: bytes, each: Sequence[bytes]) -> Measured | None:
        """What `measure` says of a run whose lines have `each` these words, if they are like the one that is known."""
        words = self._joint.join(each)  # with what stands between them
        if len(words) + self.least != len(run) or not run.startswith(words, self.begin):
            return None
        said = b"".join(each)
        if not (run.startswith(self.head) and run.endswith(self.tail) and _are_strings(said, each)):
            return None
        if ESCAPE in said and b"\\u" in said:  # halves of a pair in two lines are not one character
            return len(each), sum(map(chars_between, each))
        return len(each), chars_between(said)


def _are_strings(said: bytes, each: Sequence[bytes]) -> bool:
    """Whether none of `each` holds the quote that would end it, or escapes the one behind it; `said` is all of them."""
    if ESCAPE not in said:
        return QUOTE not in said
    closed = b'"'.join([*each, b""])  # each with the quote that ends it
    return closed.replace(rb"\\", b"").replace(rb"\"", b"").count(b'"') == len(each)
