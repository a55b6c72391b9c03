"""Cuts a byte stream into runs of whole lines without changing a byte: what goes in comes out, in order.

A line ends at `\\n` and nowhere else. Never looks inside a line; whether a huge one may pass before its end has come
is asked of the caller.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from msgspec import Struct

HEAD = 1 << 16  # bytes of a huge line that are shown for a decision: as many as one read brings
HELD_AT_MOST = HEAD - 1  # of a line whose end has not come; with 256 KiB the first byte waited for four reads
STORED_AT_MOST = 1 << 26  # of a huge line that may not pass before its end
_CRUMB = 1 << 12  # pieces smaller than this are kept together, or their number would cost more memory than they do


def _never(_: int) -> bool:
    return False


class Part(Struct, frozen=True):
    """A piece of a huge line. The `last` one ends with the newline, or is empty when the stream broke off."""

    data: bytes
    last: bool


class Framer:
    """One direction of the wire.

    `streams(head)` is asked once for a line longer than `held_at_most` bytes: True lets its pieces pass as they come,
    False has it stored to its end. Of one that is longer than `stored_at_most`, `gives_up(size)` is asked as it grows:
    True lets it pass all the same.
    """

    def __init__(
        self,
        streams: Callable[[bytes], bool],
        held_at_most: int = HELD_AT_MOST,
        *,
        gives_up: Callable[[int], bool] = _never,
        stored_at_most: int = STORED_AT_MOST,
    ) -> None:
        self._streams = streams
        self._gives_up = gives_up
        self._held_at_most = held_at_most
        self._stored_at_most = stored_at_most
        self._pieces: list[bytes] = []  # of the incomplete line
        self._stored: io.BytesIO | None = None  # a huge one that may not pass; getvalue() copies nothing
        self.streaming = False  # then a chunk without a newline is part of the huge line
        self.held = 0  # bytes of the incomplete line
        self.between_lines = True  # then a chunk that ends with a newline is a run as it is

    def feed(self, chunk: bytes) -> list[bytes | Part]:
        """What can go on: runs of whole lines, each as one `bytes`, and parts of a huge line. `chunk` is not empty."""
        if self.between_lines and chunk.endswith(b"\n"):
            return [chunk]
        if self.streaming:
            return self._pass_on(chunk)
        end = chunk.rfind(b"\n") + 1
        if not end:
            return self._hold(chunk)
        run = self._take(memoryview(chunk)[:end])
        return [run, *self._hold(chunk[end:])] if end < len(chunk) else [run]

    def begins(self, chunk: bytes) -> bool:
        """Whether a huge line begins with this chunk and passes as it comes: its first part, which is not to be fed.

        `feed` says the same in other words; this is for the first byte of a long line, for which a person waits.
        """
        if not self.between_lines or len(chunk) <= self._held_at_most or b"\n" in chunk or not self._streams(chunk):
            return False
        self.streaming, self.between_lines = True, False
        return True

    def finish(self) -> list[bytes | Part]:
        """The stream ended: the unterminated last line, if any."""
        if self.streaming:
            self.streaming = False
            return [Part(b"", last=True)]
        return [self._take(b"")] if self.held else []

    def _pass_on(self, chunk: bytes) -> list[bytes | Part]:
        end = chunk.find(b"\n") + 1
        if not end:
            return [Part(chunk, last=False)]
        self.streaming, self.between_lines = False, True
        part = Part(chunk[:end], last=True)
        return [part, *self.feed(chunk[end:])] if end < len(chunk) else [part]

    def _hold(self, data: bytes) -> list[bytes | Part]:
        self.between_lines = False
        self.held += len(data)
        if self._stored:
            self._stored.write(data)
            too_much = self.held > self._stored_at_most and self._gives_up(self.held)
            return self._let_go([self._stored.getvalue()]) if too_much else []
        if self._pieces and len(self._pieces[-1]) < _CRUMB:
            self._pieces[-1] += data
        else:
            self._pieces.append(data)
        return self._judge() if self.held > self._held_at_most else []

    def _judge(self) -> list[bytes | Part]:
        """The line is huge: its pieces pass, or it is stored to its end."""
        pieces, self._pieces = self._pieces, []
        if not self._streams(_head(pieces)):
            self._stored = io.BytesIO()
            self._stored.writelines(pieces)
            return []
        return self._let_go(pieces)

    def _let_go(self, pieces: Sequence[bytes]) -> list[bytes | Part]:
        """The huge line, as far as it came; what follows is passed on."""
        self._stored, self.held, self.streaming = None, 0, True
        return [Part(piece, last=False) for piece in pieces]

    def _take(self, end: bytes | memoryview) -> bytes:
        """The line with its end."""
        if self._stored:
            self._stored.write(end)
            line = self._stored.getvalue()
        else:
            line = b"".join((*self._pieces, end))
        self._pieces, self._stored = [], None
        self.held, self.between_lines = 0, True
        return line


def _head(pieces: list[bytes]) -> bytes:
    head = b""
    for piece in pieces:
        head += piece[: HEAD - len(head)]
        if len(head) == HEAD:
            break
    return head
