"""Lines too long to be held: what their two ends say, while the bulk goes by unread.

The head settles what a line is when method, id and session stand before the bulk, as they do in 99 % of what agents
and clients send; usage may stand at either end. Only lines over 64 KiB come here.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Collection
from json import JSONDecoder
from typing import Any

from acp_proxy.core import acp
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response, exact, may_be_batch, may_be_object, parse

END = 1 << 16  # bytes at either end that are looked at
WHOLE = 1 << 20  # up to this size a line is read as a whole all the same, when it is through
_SHORT = 1 << 10  # bytes within which a notification says what it is
_UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{'  # as most agents spell it: nothing is to be read
_read_value = JSONDecoder(parse_float=exact).raw_decode


class LongLine:
    """A line that goes out in pieces."""

    def __init__(self) -> None:
        self._whole: list[bytes] | None = []
        self._head = b""
        self._tail: deque[bytes] = deque()  # the last pieces
        self._tail_size = 0
        self.size = 0

    def keep(self, piece: bytes) -> None:
        """The next piece; all of them, or of a line that is too long its two ends."""
        self.size += len(piece)
        if len(self._head) < END:
            self._head += piece[: END - len(self._head)]
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= END:
            self._tail_size -= len(self._tail.popleft())
        if self.size > WHOLE:
            self._whole = None
        elif self._whole is not None:
            self._whole.append(piece)

    @property
    def is_partly_read(self) -> bool:
        """Whether what its bulk says is not known."""
        return self._whole is None

    def message(self) -> Message | None:
        """The message; of a longer line what its ends tell: `params` before the bulk, and an update's `_meta`."""
        if self._whole is not None:
            return parse(b"".join(self._whole))
        message = peek_head(self._head)
        if not isinstance(message, Notification) or message.method != acp.SESSION_UPDATE:
            return message
        update = message.params.get("update")
        meta = meta_in_tail(b"".join(self._tail)[-END:])
        if meta is None or not isinstance(update, dict) or "_meta" in update:
            return message
        return Notification(message.method, message.params | {"update": update | {"_meta": meta}})


def may_stream(sender: Side, head: bytes, answers: Callable[[Side, Any], bool], admitted: Collection[str]) -> bool:
    """Whether a line may go out as it comes, from its head: all but what must be accounted or admitted first.

    `answers` tells whether a response with an id means something to us; `admitted` are methods that may have to wait:
    where there are any no line of the client's streams.
    """
    if sender is Side.CLIENT and admitted:
        return False  # of two methods in one line the last one counts: only its end tells that it need not wait
    if not may_be_object(head):
        return not may_be_batch(head)  # else no message, whatever is still to come
    if head.startswith(_UPDATE) or isinstance(peek_head(head[:_SHORT]), Notification):  # 13 us in place of 60
        return True
    match peek_head(head):
        case Response(id=id):
            return not answers(sender, id)
        case Request(method=acp.PROMPT, params=params) if sender is Side.CLIENT:
            return isinstance(params.get("sessionId"), str)
        case Request(method=method) if sender is Side.CLIENT:
            return method not in acp.CLIENT_METHODS
        case Request(method=method):
            return method not in acp.AGENT_METHODS
        case Notification():
            return True
    return False


def peek_head(head: bytes) -> Message | None:
    """The kind of a line, from its first bytes; None when they do not settle it (its id may come last, say).

    Of `params` only the members that stand before the bulk; of a response nothing but the id.
    """
    text = head.decode("utf-8", "surrogateescape")
    fields: dict[str, Any] = {}
    with contextlib.suppress(ValueError, IndexError, RecursionError):  # the text ends somewhere: that is the point
        _walk(text, 0, fields, ("params", "result", "error"))
    method = fields.get("method")
    if isinstance(method, str):
        params = fields.get("params")
        if not isinstance(params, dict):
            return None
        return Request(fields["id"], method, params) if "id" in fields else Notification(method, params)
    if "id" in fields and ("result" in fields or "error" in fields):
        return Response(fields["id"])
    return None


def _walk(text: str, at: int, fields: dict[str, Any], opened: tuple[str, ...]) -> None:
    """Reads the members of an object into `fields` until the text runs out; walks into those named in `opened`."""
    at = _skip(text, at)
    if text[at] != "{":
        raise ValueError("not an object")
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _read_value(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at] != ":":
            raise ValueError("not a member")
        at = _skip(text, at + 1)
        if key in opened and text[at] == "{":
            inner: dict[str, Any] = {}
            fields[key] = inner
            _walk(text, at, inner, ("update",))
            return
        if key in opened:
            fields[key] = None  # it is there, though its value may be too long to be read
        value, at = _read_value(text, at)
        at = _skip(text, at)
        follows = text[at]  # nothing does where a number may go on
        fields[key] = value
        if follows == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def meta_in_tail(tail: bytes) -> dict[str, Any] | None:
    """The last `_meta` object that lies whole within the last bytes of a line."""
    text = tail.decode("utf-8", "surrogateescape")
    at = text.rfind('"_meta"')
    if at < 0:
        return None
    try:
        at = _skip(text, at + len('"_meta"'))
        if text[at] != ":":
            return None
        value, _ = _read_value(text, _skip(text, at + 1))
    except (ValueError, IndexError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
