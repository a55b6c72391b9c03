"""Digests, as names of things."""

from __future__ import annotations

from _blake2 import blake2b  # `hashlib` loads OpenSSL, for 3 ms of each status


def digest(of: bytes, size: int) -> str:
    """BLAKE2b of `size` bytes, in hexadecimal."""
    return blake2b(of, digest_size=size).hexdigest()
