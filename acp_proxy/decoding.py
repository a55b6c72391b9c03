"""Decoders of Structs, made one at a time whichever thread asks.

msgspec writes to a Struct what it is made of before it knows all of it, for a Struct may hold its own kind. A second
thread that asks meanwhile reads what is not there yet, and the process is gone (msgspec 0.22, Python 3.11 and 3.13).
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TypeVar

from msgspec import json, msgpack

T = TypeVar("T")

_making = allocate_lock()


def json_decoder(kind: type[T]) -> json.Decoder[T]:
    with _making:
        return json.Decoder(kind)


def msgpack_decoder(kind: type[T]) -> msgpack.Decoder[T]:
    with _making:
        return msgpack.Decoder(kind)
