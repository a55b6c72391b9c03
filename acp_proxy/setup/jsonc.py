"""JSON with comments and trailing commas, as a tree that knows where in the text each value stands. Pure.

Editors' settings are edited in place: a library that reads and writes them would lose comments or layout.
"""

from __future__ import annotations

import json
import re

from msgspec import Struct

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"[^\s,:\[\]{}\"/]+")
_DEEPEST = 200


class NotJsonError(ValueError):
    """The text cannot be read; `line` is where."""

    def __init__(self, line: int, expected: str) -> None:
        super().__init__(f"line {line}: expected {expected}")
        self.line = line


class Node(Struct, frozen=True):
    """Stands at text[start:end]."""

    start: int
    end: int


class Scalar(Node, frozen=True):
    value: object  # str, int, float, bool or None


class Array(Node, frozen=True):
    items: tuple[Node, ...] = ()
    trailing_comma: int | None = None  # where it stands

    @property
    def last(self) -> Node | None:
        return self.items[-1] if self.items else None

    @property
    def texts(self) -> list[str] | None:
        """The items where all are strings, else None."""
        texts = [item.value for item in self.items if isinstance(item, Scalar) and isinstance(item.value, str)]
        return texts if len(texts) == len(self.items) else None


class Member(Struct, frozen=True):
    key: str
    start: int  # of the key's text
    value: Node


class Object(Node, frozen=True):
    members: tuple[Member, ...] = ()
    trailing_comma: int | None = None

    @property
    def last(self) -> Node | None:
        return self.members[-1].value if self.members else None

    def get(self, key: str) -> Node | None:
        """Of several members with the same key the last one counts, as in other parsers."""
        return next((member.value for member in reversed(self.members) if member.key == key), None)

    def text(self, key: str) -> str | None:
        value = self.get(key)
        return value.value if isinstance(value, Scalar) and isinstance(value.value, str) else None


def parse(text: str) -> Node:
    """Raises NotJsonError."""
    reader = _Reader(text)
    node = reader.value(0)
    if reader.peek():
        raise reader.error("the end of the file")
    return node


def is_empty(text: str) -> bool:
    """Whether there is no value in it, only space and comments."""
    return not _Reader(text).peek()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def peek(self) -> str:
        """The next character that means something, "" at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def error(self, expected: str) -> NotJsonError:
        return NotJsonError(self._text.count("\n", 0, self._at) + 1, expected)

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.error(f"no more than {_DEEPEST} levels")
        match self.peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._string()
            case _:
                return self._plain()

    def _object(self, depth: int) -> Object:
        start = self._at
        self._at += 1
        members: list[Member] = []
        comma: int | None = None
        while self.peek() != "}":
            if members and comma is None:
                raise self.error("a comma or }")
            key = self._string()
            if self.peek() != ":":
                raise self.error("a colon")
            self._at += 1
            members.append(Member(str(key.value), key.start, self.value(depth + 1)))
            comma = self._comma()
        self._at += 1
        return Object(start, self._at, tuple(members), comma)

    def _array(self, depth: int) -> Array:
        start = self._at
        self._at += 1
        items: list[Node] = []
        comma: int | None = None
        while self.peek() != "]":
            if items and comma is None:
                raise self.error("a comma or ]")
            items.append(self.value(depth + 1))
            comma = self._comma()
        self._at += 1
        return Array(start, self._at, tuple(items), comma)

    def _comma(self) -> int | None:
        if self.peek() != ",":
            return None
        self._at += 1
        return self._at - 1

    def _string(self) -> Scalar:
        found = _STRING.match(self._text, self._at)
        if not found:
            raise self.error("text in double quotes")
        return self._scalar(found)

    def _plain(self) -> Scalar:
        found = _PLAIN.match(self._text, self._at)
        if not found:
            raise self.error("a value")
        return self._scalar(found)

    def _scalar(self, found: re.Match[str]) -> Scalar:
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self.error("a value") from None
        self._at = found.end()
        return Scalar(found.start(), found.end(), value)
