"""Ids of sessions as ledgers keep them. By ACP's word one is any text, and to the peers it goes as it came."""

from __future__ import annotations

from functools import lru_cache

_LONGEST = 300  # characters: databases index no text of any length
_KEPT = 200  # of one that is longer


@lru_cache(maxsize=1024)  # of a row it is asked some ten times
def booked(session: str) -> str:
    """The id itself, or where no ledger can keep it one that stands for it: its beginning, and a digest of it all."""
    is_short = len(session) <= _LONGEST
    if is_short and session.isprintable():
        return session
    from acp_proxy.core.acp.values import storable  # not for who only reads
    from acp_proxy.core.digest import digest

    if is_short and session == storable(session):
        return session
    return f"{storable(session[:_KEPT])}…{digest(session.encode('utf-8', 'surrogatepass'), 8)}"
