"""Counts the characters of text in a message, for estimates. Keeps none of them."""

from __future__ import annotations

from typing import Any

from acp_proxy.core.acp.values import mapping
from acp_proxy.core.jsonrpc import decode

_BEFORE, _BEHIND = b'{"type":"text","text":"', b'"}'  # as most agents write it
_ESCAPE = ord("\\")  # as a number: to look for one is five times as fast as for `bytes` of length 1


def text_length(content: Any) -> int:
    """The length of text in a block or a list of blocks, including embedded resources. Images count nothing."""
    if isinstance(content, list):
        return sum([text_length(block) for block in content if isinstance(block, dict)])
    if not isinstance(content, dict):
        return 0
    said = content["text"] if "text" in content else mapping(content.get("resource")).get("text")
    return len(said) if isinstance(said, str) else 0


def chars_in(content: bytes) -> int:
    """`text_length` of a block's JSON, mostly without decoding it."""
    begin, end = len(_BEFORE), len(content) - len(_BEHIND)
    if content[:begin] == _BEFORE and content[end:] == _BEHIND and content.find(b'"', begin) == end:
        return chars_between(content[begin:end])
    return text_length(decode(content))


def chars_between(quotes: bytes) -> int:
    """Characters of a JSON string by the bytes between its quotes, or by those of several one after the other."""
    if _ESCAPE not in quotes:
        return len(quotes) if quotes.isascii() else len(quotes.decode(errors="replace"))
    said = decode(b'"%s"' % quotes)
    return len(said if isinstance(said, str) else quotes)  # an invalid escape: it cannot be decoded
