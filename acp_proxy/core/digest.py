"""Digests, as names of things. `hashlib` is imported with the first one: OpenSSL comes with it, and takes 5 ms."""

from __future__ import annotations


def digest(of: bytes, size: int) -> str:
    """BLAKE2b of `size` bytes, in hexadecimal."""
    from hashlib import blake2b

    return blake2b(of, digest_size=size).hexdigest()
