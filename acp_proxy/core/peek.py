"""A first look at lines, cheap enough for every one of them: what kind of message each is, and no more.

One decode for a whole run of lines. What turns out to matter is parsed again in full (`core/jsonrpc.py`).
Byte patterns would be slower and wrong: key order is free, and `session\\/prompt` is a legal spelling.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from acp_proxy.core.jsonrpc import Message, Notification, Request, Response

ABSENT = msgspec.Raw()
HEAD = 1 << 16  # bytes at either end of a line that are looked at when it is too long to be held


class Update(msgspec.Struct, gc=False):
    kind: str | None = msgspec.field(name="sessionUpdate", default=None)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=ABSENT)
    content: msgspec.Raw = ABSENT
    raw_input: msgspec.Raw = msgspec.field(name="rawInput", default=ABSENT)
    raw_output: msgspec.Raw = msgspec.field(name="rawOutput", default=ABSENT)


class Params(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="sessionId", default=None)
    update: Update | None = None


class Peek(msgspec.Struct, gc=False):
    """Everything is None or absent for a line that is not a JSON object with `params` of the expected shape."""

    id: Any = None
    method: str | None = None
    params: Params | None = None


class _Loose(msgspec.Struct, gc=False):
    id: Any = None
    method: str | None = None


_strict = msgspec.json.Decoder(Peek)
_loose = msgspec.json.Decoder(_Loose)
_NO_MESSAGE = Peek()


def peek_run(run: bytes) -> list[Peek]:
    """One `Peek` a line, in order. Never raises."""
    try:
        peeked = _strict.decode_lines(run)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return [peek_line(line) for line in split_lines(run)]
    # Whitespace separates messages for the decoder, newlines for the protocol: blank lines, two messages on a line
    # and a message over two lines all show in the count.
    if len(peeked) != run.count(b"\n") + (not run.endswith(b"\n")):
        return [peek_line(line) for line in split_lines(run)]
    return peeked


def peek_line(line: bytes) -> Peek:
    try:
        return _strict.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:  # params of another shape: a list, or an update that is no object
        loose = _loose.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _NO_MESSAGE
    return Peek(loose.id, loose.method)


def split_lines(run: bytes) -> list[bytes]:
    """Lines with their newlines; the last may lack its own. Only `\\n` ends a line."""
    lines = [line + b"\n" for line in run.split(b"\n")]
    last = lines.pop()[:-1]
    if last:
        lines.append(last)
    return lines


def peek_head(head: bytes) -> Message | None:
    """What a line is, from its first bytes; None when they do not settle it (its id may come last, say).

    Of `params` only the members that stand before the bulk; of a response nothing but the id.
    """
    import json  # only lines over 1 MiB come here

    text = head.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder()
    fields: dict[str, Any] = {}
    with contextlib.suppress(ValueError, IndexError, RecursionError):  # the text ends somewhere: that is the point
        _walk(text, 0, decoder, fields, ("params", "result", "error"))
    method = fields.get("method")
    if isinstance(method, str):
        params = fields.get("params")
        if not isinstance(params, dict):
            return None
        return Request(fields["id"], method, params) if "id" in fields else Notification(method, params)
    if "id" in fields and ("result" in fields or "error" in fields):
        return Response(fields["id"])
    return None


def _walk(text: str, at: int, decoder: Any, fields: dict[str, Any], opened: tuple[str, ...]) -> None:
    """Reads the members of an object into `fields` until the text runs out; walks into those named in `opened`."""
    at = _skip(text, at)
    if text[at] != "{":
        raise ValueError("not an object")
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at] != ":":
            raise ValueError("not a member")
        at = _skip(text, at + 1)
        if key in opened and text[at] == "{":
            inner: dict[str, Any] = {}
            fields[key] = inner
            _walk(text, at, decoder, inner, ("update",))
            return
        if key in opened:
            fields[key] = None  # it is there, though its value may be too long to be read
        fields[key], at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def meta_in_tail(tail: bytes) -> dict[str, Any] | None:
    """The last `_meta` object that lies whole within the last bytes of a line."""
    import json

    text = tail.decode("utf-8", "surrogateescape")
    at = text.rfind('"_meta"')
    if at < 0:
        return None
    try:
        at = _skip(text, at + len('"_meta"'))
        if text[at] != ":":
            return None
        value, _ = json.JSONDecoder().raw_decode(text, _skip(text, at + 1))
    except (ValueError, IndexError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
