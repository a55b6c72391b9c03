"""Identifiers that a client can make: UUIDv7 (RFC 9562), so that rows sort by time in any database."""

from __future__ import annotations

import os


def uuid7(at: int) -> str:
    """The canonical text of a UUIDv7 for a Unix time in nanoseconds; 62 bits are random.

    The 12 bits after the milliseconds count their 4096ths (RFC 9562, 6.2, method 3): turns may begin within one.
    """
    milliseconds, rest = divmod(at, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
