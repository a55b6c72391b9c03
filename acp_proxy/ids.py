"""Identifiers that a client can make: UUIDv7 (RFC 9562), so that rows sort by time in any database."""

from __future__ import annotations

import os


def uuid7(at: int) -> str:
    """The canonical text of a UUIDv7 for a Unix time in nanoseconds; 74 bits are random."""
    milliseconds = (at // 1_000_000) & ((1 << 48) - 1)
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & ((1 << 62) - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
