"""Parts of long lists: by the id beside a part, or by a cursor that only its own questions may go on with."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending.calls import Listing
from acp_proxy.system.decoding import json_decoder

T = TypeVar("T")

_MOST = 1000


def size_of(text: str) -> int:
    """Raises RefusedError."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= _MOST):
        raise RefusedError(400, f"limit: expected a number from 1 to {_MOST}")
    return int(text)


def beside(found: Sequence[T], id_of: Callable[[T], str], asked: Listing) -> tuple[Sequence[T], bool]:
    """After or before that with an id, and whether there are more on that side. Raises RefusedError."""
    size = size_of(asked.limit)
    if asked.after_id is not None and asked.before_id is not None:
        raise RefusedError(400, "expected after_id or before_id, not both")
    ids = [id_of(each) for each in found]
    if asked.before_id is not None:
        before = found[: _place(ids, asked.before_id, "before_id")]
        return before[-size:], len(before) > size
    start = 0 if asked.after_id is None else _place(ids, asked.after_id, "after_id") + 1
    return found[start : start + size], len(found) > start + size


def after_cursor(found: Sequence[T], key: Callable[[T], Any], page: str | None, filters: Any) -> Sequence[T]:
    """What follows what the cursor has seen, of what is sorted by `key`. Raises RefusedError."""
    if page is None:
        return found
    try:
        digest, *seen = json_decoder(list[Any]).decode(urlsafe_b64decode(page))
    except ValueError as error:  # of base64, JSON, or an empty list
        raise RefusedError(400, "page: expected next_page of the answer before") from error
    if digest != _digest(filters):
        raise RefusedError(400, "page: cursor does not match current query parameters")
    return [each for each in found if list(key(each)) > seen]


def cursor(seen: Sequence[Any], filters: Any) -> str:
    return urlsafe_b64encode(msgspec.json.encode([_digest(filters), *seen])).decode()


def _digest(filters: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(filters)).hexdigest()[:16]


def _place(ids: Sequence[str], id: str, name: str) -> int:
    if id not in ids:
        raise RefusedError(400, f"{name}: no spend limit has this id")
    return ids.index(id)
