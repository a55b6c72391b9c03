"""What messages of all signals have in common: attributes, the resource, the scope, a receiver's answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from acp_proxy.otlp.protobuf import block, double, fields, text, whole

Value = str | bool | int | float | tuple[str, ...]

_LONGEST = 200  # characters of what a receiver says


def attributes(field: int, values: Mapping[str, Value | None]) -> bytes:
    """Those that are known."""
    return b"".join([attribute(field, name, value) for name, value in values.items() if value is not None])


def attribute(field: int, name: str, value: Value) -> bytes:
    return block(field, text(1, name) + block(2, any_value(value)))


def any_value(value: Value) -> bytes:
    match value:
        case str():
            return text(1, value)
        case bool():  # before int, which it is as well
            return whole(2, int(value))
        case int():
            return whole(3, value)
        case float():
            return double(4, value)
    return block(5, b"".join([block(1, any_value(each)) for each in value]))


@lru_cache(maxsize=8192)  # the same few series and models with each export
def text_attribute(field: int, name: str, value: str) -> bytes:
    return attribute(field, name, value)


class Source(Struct, frozen=True):
    """What sends: the attributes of its resource, and the version of its scope."""

    attributes: Mapping[str, Value]
    scope: str
    version: str

    def request(self, items: Iterable[bytes]) -> bytes:
        """A request to export, of any signal: they differ in what a scope has, whose field is the same."""
        scope = text(1, self.scope) + text(2, self.version)
        of_scope = block(1, scope) + b"".join(items)
        return block(1, block(1, attributes(1, self.attributes)) + block(2, of_scope))


class PartialSuccess(Struct, frozen=True):
    """What a receiver has not taken of a request, though it answered that it had: it is not to be sent again."""

    rejected: int = 0
    message: str = ""


def partial_success(response: bytes) -> PartialSuccess:
    """Of a response to any signal, where nothing is said of it none is."""
    rejected, message = 0, ""
    try:
        for number, content in fields(response):
            if number != 1 or not isinstance(content, bytes):
                continue
            for inner, value in fields(content):
                if inner == 1 and isinstance(value, int):
                    rejected = value
                elif inner == 2 and isinstance(value, bytes):
                    message = _shortened(value)
    except ValueError:  # of a receiver that answers something else
        return PartialSuccess()
    return PartialSuccess(rejected, message)


def status_message(response: bytes) -> str:
    """What a receiver says of a request that it refuses, as a `google.rpc.Status`; else empty."""
    try:
        for number, value in fields(response):
            if number == 2 and isinstance(value, bytes):
                return _shortened(value)
    except ValueError:
        pass
    return ""


def _shortened(said: bytes) -> str:
    return "".join(sign for sign in said.decode("utf-8", "replace") if sign.isprintable())[:_LONGEST]
