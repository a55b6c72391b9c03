"""A first look at lines, cheap enough for every one of them: what kind of message each is, and no more.

One decode for a whole run of lines. What turns out to matter is parsed again in full (`core/jsonrpc.py`).
Byte patterns would be wrong: key order is free, and `session\\/prompt` is a legal spelling. What a decoded line has in
common with those around it is in `core/wire/line_template.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import msgspec

from acp_proxy.core.jsonrpc import BATCH, Notification, Request, Response, exact, may_be_batch, may_be_object, parse

ABSENT = msgspec.Raw()


class Update(msgspec.Struct, gc=False):
    """The fields of a `session/update` that a scan needs; Raw fields stay JSON."""

    kind: str | None = msgspec.field(name="sessionUpdate", default=None)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=ABSENT)
    content: msgspec.Raw = ABSENT
    message: Any = msgspec.field(name="messageId", default=None)
    used: msgspec.Raw = ABSENT  # of a `usage_update`, like the next two
    size: msgspec.Raw = ABSENT
    cost: msgspec.Raw = ABSENT


class Params(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="sessionId", default=None)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=ABSENT)
    update: Update | None = None


class Peek(msgspec.Struct, gc=False):
    """Everything is None or absent for a line that is not a JSON object with `params` of the expected shape.

    But of an array of messages the method is `BATCH`.
    """

    id: Any = None
    method: str | None = None
    params: Params | None = None


class Envelope(msgspec.Struct, gc=False):
    """A `Peek` without `params`: all that is read of most that clients send."""

    id: Any = None
    method: str | None = None


UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)
NEWLINE = ord("\n")
_strict = msgspec.json.Decoder(Peek, float_hook=exact)
NO_MESSAGE = Peek()

decode_run = _strict.decode_lines
"""`peek_run` for a caller so frequent that a call counts. Raises UNREADABLE: then ask `peek_lines`."""

decode_envelopes = msgspec.json.Decoder(Envelope, float_hook=exact).decode_lines
"""`decode_run` for a caller that does not need `params`."""


def peek_run(run: bytes) -> list[Peek]:
    """The messages of a run, in order; where `is_one_a_line`, the lines. Never raises."""
    try:
        return decode_run(run)
    except UNREADABLE:
        return peek_lines(run)


def peek_lines(run: bytes) -> list[Peek]:
    """One `Peek` a line, whatever stands there."""
    return [peek_line(line) for line in split_lines(run)]


def is_one_a_line(run: bytes, peeked: Sequence[Envelope | Peek]) -> bool:
    """Whether there are as many messages as lines.

    Whitespace separates messages for the decoder, newlines for the protocol: blank lines, two messages on a line and
    a message over two lines all show in the count, unless they make up for each other. It costs a tenth of decoding,
    and a caller that finds nothing does not ask. A caller that must not be deceived uses `peek_lines`.
    """
    return len(peeked) == run.count(b"\n") + (not run.endswith(b"\n"))


def peek_line(line: bytes) -> Peek:
    try:
        return _strict.decode(line)
    except UNREADABLE:
        pass
    if not may_be_object(line):  # an agent's log, say: reading it in full takes 15 us
        return Peek(method=BATCH) if may_be_batch(line) else NO_MESSAGE
    # Params of another shape, half a surrogate pair, or no message at all: rare enough to be parsed in full.
    match parse(line):
        case Request(id=id, method=method):
            return Peek(id, method)
        case Notification(method=method):
            return Peek(None, method)
        case Response(id=id):
            return Peek(id)
    return NO_MESSAGE


def split_lines(run: bytes) -> list[bytes]:
    """Lines with their newlines; the last may lack its own. Only `\\n` ends a line."""
    return BytesIO(run).readlines()  # five times as fast as `split`
