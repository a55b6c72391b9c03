"""JSON-RPC 2.0 messages read off lines, and the pairing of requests with responses. Reading never raises.

A line that is no single message is None, or a batch. Only what is looked at is decoded; the line itself is what gets
forwarded.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from acp_proxy.core.events import Side

T = TypeVar("T")
_SAFE = 2**53  # integers above it come back rounded from peers that know only doubles
_PLAIN = 10**21
_LONGEST_NUMBER = 20  # of 64 bits, with its sign
_FEW = 1 << 10  # blanks; behind so many an object may still come
_BLANK = "".join(map(chr, (*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)))) + (
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_BLANK_BYTES = _BLANK.encode() + b"\xff\xfe\0"  # also of UTF-16 and UTF-32


class Request(Struct, frozen=True):
    id: Any  # as decoded: int, str, None, Decimal; compare with `id_key`, never with ==, for 1 == True
    method: str
    params: dict[str, Any]


class Notification(Struct, frozen=True):
    method: str
    params: dict[str, Any]


class Response(Struct, frozen=True):
    id: Any
    result: Any = None  # None for an error, and for a null result
    error: dict[str, Any] | None = None  # {} for an error that is no object


Message = Request | Notification | Response

BATCH = "[{"
"""Stands for the method of a line that may be an array of messages."""


def parse(line: bytes) -> Message | None:
    """The message of a line, or None for anything else: not JSON, an array, neither method nor id.

    Numbers with a fraction or an exponent are `Decimal`, so that amounts of money stay exact.
    """
    if line[:1] != b"{" and may_be_batch(line):
        return None  # a large one takes seconds
    return message_of(decode(line))


def decode(json: bytes) -> Any:
    """A JSON value with its numbers as in `parse`; None for what is none."""
    try:
        return _decode(json)
    except (msgspec.DecodeError, ValueError, RecursionError):
        from acp_proxy.core import lenient_json  # most agents never send such a line

        return lenient_json.decode(json, _BLANK, exact)


def parse_batch(line: bytes) -> list[Message]:
    """The messages of a line that is an array of them; what else stands in it is left out."""
    values = decode(line) if may_be_batch(line) else None
    return [message for each in values if (message := message_of(each))] if isinstance(values, list) else []


def may_be_batch(line: bytes) -> bool:
    """Whether a line that is, or begins with, these bytes may be an array of objects. Many a log begins with `[`."""
    start = line.lstrip(_BLANK_BYTES)
    return start[:1] == b"[" and start[1:_FEW].lstrip()[:1] in (b"{", b"")


def may_be_object(line: bytes) -> bool:
    """Whether a line that is, or begins with, these bytes may be an object to some reader, however lenient."""
    return line.lstrip(_BLANK_BYTES)[:1] in (b"{", b"")


def breaks_within(line: bytes) -> bool:
    """Whether a line is several to those who end one at `\\r`, too, as Java and Python's text files do."""
    return line.find(b"\r", 0, -2) >= 0  # the last two bytes may be the line's own end


def may_ask(line: bytes) -> bool:
    """Whether a line that is no single message may still ask for something, for one who reads it otherwise.

    Some take the first of two objects on a line, or each of an array, or a word without quotes for a text.
    """
    value = None if breaks_within(line) else decode(line)
    if isinstance(value, list):
        return any(isinstance(message_of(each), Request) for each in value)
    if value is not None and not isinstance(value, dict):
        return False
    return any(sign in line for sign in (b"method", b"\\", b"\0"))


def message_of(value: Any) -> Message | None:
    """The message that a decoded JSON value is, or None."""
    if not isinstance(value, dict):
        return None
    method = value.get("method")
    if isinstance(method, str):
        params = value.get("params")
        fields = params if isinstance(params, dict) else {}
        return Request(value["id"], method, fields) if "id" in value else Notification(method, fields)
    if method is not None or "id" not in value:
        return None
    error = value.get("error")
    if isinstance(error, dict):
        return Response(value["id"], None, error)
    if "result" in value:
        return Response(value["id"], value["result"])
    return Response(value["id"], None, {}) if "error" in value else None


class Pairing(Generic[T]):
    """Open requests until their responses arrive, by the side that has to answer and the id.

    An id that is used again while it is open queues up behind the first: nothing is lost.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[Side, str, Any], list[T]] = {}

    def add(self, answers: Side, id: Any, asked: T) -> None:
        self._open.setdefault((answers, *id_key(id)), []).append(asked)

    def peek(self, answers: Side, id: Any) -> T | None:
        """The request that the next response with this id from this side answers, or None."""
        if not self._open:
            return None
        key = self._find(answers, id)
        return None if key is None else self._open[key][0]

    def has(self, answers: Side, id: Any) -> bool:
        """Whether the next response with this id from this side answers anything."""
        if not self._open:
            return False
        if type(id) is int and -_SAFE < id < _SAFE:  # as nearly all are: the shortest way to the same
            return (answers, "number", id) in self._open
        return self._find(answers, id) is not None

    def answered(self, answers: Side, id: Any) -> T | None:
        """`peek` for a response, whose id may be the request's number as a text: some agents answer so."""
        key = self._find_answered(answers, id)
        return None if key is None else self._open[key][0]

    def take(self, answers: Side, id: Any) -> T | None:
        """The result of `answered`, which is then forgotten."""
        key = self._find_answered(answers, id)
        if key is None:
            return None
        queue = self._open[key]
        asked = queue.pop(0)
        if not queue:
            del self._open[key]
        return asked

    def clear(self) -> None:
        self._open.clear()

    def __len__(self) -> int:
        return len(self._open)

    def _find_answered(self, answers: Side, id: Any) -> tuple[Side, str, Any] | None:
        key = self._find(answers, id)
        if key is None and type(id) is str and (number := number_in(id)) is not None:
            return self._find(answers, number)
        return key

    def _find(self, answers: Side, id: Any) -> tuple[Side, str, Any] | None:
        if not self._open:
            return None
        kind, value = ("number", id) if type(id) is int else id_key(id)  # as nearly all are
        key = (answers, kind, value)
        if key in self._open:
            return key
        if kind != "number" or not may_round(value):
            return None
        return next((other for other in self._open if other[0] is answers and are_alike(other[1:], key[1:])), None)


def id_key(id: Any) -> tuple[str, Any]:
    """A dictionary key that keeps ids of different JSON types apart."""
    match id:
        case bool():
            return "boolean", id
        case int():
            return "number", id
        case Decimal() if id.is_finite():
            return "number", id  # equal to the int of the same value: 1 and 1.0 are the same number to every peer
        case str():
            return "string", id
    try:
        return "other", repr(id)
    except RecursionError:  # lists in lists, just shallow enough to be decoded
        return "other", ""


def number_in(id: str) -> int | None:
    """The whole number that an id is the text of, as JSON writes it."""
    if len(id) > _LONGEST_NUMBER or not id.removeprefix("-").isdecimal():
        return None
    number = int(id)
    return number if str(number) == id else None


def comes_back(id: Any) -> bool:
    """Whether any agent answers with this id: a text, or a whole number that no peer rounds to another.

    JavaScript writes 0.1 for many fractions, 0 for the smallest, and from 10^21 on an exponent for an integer. Some
    take a null for no id, and half a surrogate pair is lost in Java.
    """
    match id:
        case bool():
            return False
        case int():
            return abs(id) < _PLAIN
        case Decimal():
            return id.is_finite() and abs(id) < _SAFE and id == int(id)
        case str():
            return not any("\ud800" <= char <= "\udfff" for char in id)
    return False


def is_number_or_text(id: Any) -> bool:
    """Whether an id is of a kind that agents answer by. As elements of a set 1 and 1.0 are one, 1 and "1" two."""
    return type(id) is int or isinstance(id, str | Decimal)


def is_plain(id: Any) -> bool:
    """Whether an id is one that clients make, and comes back from any agent as no other's."""
    return -_SAFE < id < _SAFE if type(id) is int else type(id) is str and id.isascii() and number_in(id) is None


def may_round(id: Any) -> bool:
    """Whether a peer that knows only doubles may take an id for another."""
    return isinstance(id, int) and abs(id) >= _SAFE


def are_alike(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    """Whether two ids, given as by `id_key`, may be one to a peer that knows only doubles."""
    if one == other:
        return True
    pair = (one[1], other[1])
    if one[0] != other[0] or not all(isinstance(each, int) and each.bit_length() <= 1000 for each in pair):
        return False
    return float(pair[0]) == float(pair[1])


def exact(text: str) -> Decimal:
    """A number with a fraction or an exponent; NaN where no Decimal holds it."""
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all bounds
        return Decimal("NaN")


_decode = msgspec.json.Decoder(float_hook=exact).decode
