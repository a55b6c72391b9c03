"""Secrets that a hub gives out, and the digests by which it knows them again.

Each has 256 bits of chance, so a plain SHA-256 cannot be searched; passwords, which would need more, are never kept.
"""

from __future__ import annotations

import hashlib
import os
import secrets

TOKEN = "acp_"  # noqa: S105  begins a token that an administrator made, so that scanners of repositories find it
SESSION = "acps_"  # that of a browser
REFRESH = "acpr_"

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # RFC 8628, 6.1: no vowels, so no words; no digits, so none is mistaken


def secret(kind: str) -> str:
    return kind + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_id() -> str:
    return os.urandom(8).hex()


def user_code() -> str:
    """Such as `WDJB-MJHT`: 25 milliards of them."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def canonical_code(typed: str) -> str:
    """However it was typed: RFC 8628, 6.1."""
    letters = "".join(letter for letter in typed.upper() if letter in _LETTERS)
    return f"{letters[:4]}-{letters[4:]}"
