"""Requests for permission that the client was asked, and sessions whose requests are answered in its place.

Only remembers; `router` writes. A client's answer that comes after ours is dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import id_key


class Permissions:
    """Sessions are those that the user sees, whichever subagent asks."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, Any], tuple[str, Any, bytes]] = {}  # session, id and our answer of what is open
        self._denied: dict[str, bytes | None] = {}  # what the client is still to be told
        self._late: Counter[tuple[str, Any]] = Counter()  # answers to be dropped

    def denied(self, session: str) -> bool:
        return session in self._denied

    def asked(self, session: str, id: Any, answer: bytes) -> None:
        """The client has to answer this one; `answer` is what the agent gets if we do."""
        self._asked[id_key(id)] = session, id, answer

    def deny(self, session: str, pending: bool, tell: bytes | None) -> list[tuple[Any, bytes]]:
        """Deny what comes; returns id and answer of what is open and is to be answered at once."""
        self._denied.setdefault(session, tell)
        if not pending:
            return []
        keys = [key for key, (asker, _, _) in self._asked.items() if asker == session]
        self._late.update(keys)
        return [self._asked.pop(key)[1:] for key in keys]

    def tell(self, session: str) -> bytes | None:
        """The message to the client with the first denial."""
        told = self._denied[session]
        self._denied[session] = None
        return told

    def allow(self, session: str) -> None:
        self._denied.pop(session, None)

    def drops(self, sender: Side, id: Any) -> bool:
        """Whether a client's answer comes too late."""
        return bool(self._late) and sender is Side.CLIENT and id_key(id) in self._late

    def answered(self, sender: Side, id: Any) -> bool:
        """A response came; whether it is to be dropped."""
        if sender is not Side.CLIENT:
            return False
        key = id_key(id)
        if key in self._late:
            self._late -= Counter([key])
            return True
        self._asked.pop(key, None)
        return False
