"""Decoders of Structs, one of each kind, and made one at a time whichever thread asks.

msgspec writes to a Struct what it is made of before it knows all of it, for a Struct may hold its own kind. A second
thread that asks meanwhile reads what is not there yet, and the process is gone (msgspec 0.22, Python 3.11 and 3.13).
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import Any, TypeVar

from msgspec import json, msgpack

T = TypeVar("T")

_making = allocate_lock()
_json: dict[type, json.Decoder[Any]] = {}  # making one takes ten times as long as using it
_msgpack: dict[type, msgpack.Decoder[Any]] = {}


def json_decoder(kind: type[T]) -> json.Decoder[T]:
    if made := _json.get(kind):  # complete, or it would not be there
        return made
    with _making:
        if kind not in _json:
            _json[kind] = json.Decoder(kind)
        return _json[kind]


def msgpack_decoder(kind: type[T]) -> msgpack.Decoder[T]:
    if made := _msgpack.get(kind):
        return made
    with _making:
        if kind not in _msgpack:
            _msgpack[kind] = msgpack.Decoder(kind)
        return _msgpack[kind]
