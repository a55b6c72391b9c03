"""Which lines of a run need more than a glance. This loop is most of what a relayed line costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from acp_proxy.core import acp
from acp_proxy.core.acp import AGENT_METHODS, PLAIN_UPDATES, SESSION_UPDATE
from acp_proxy.core.events import Side
from acp_proxy.core.peek import ABSENT, Peek

_AGENT = Side.AGENT
Plain = tuple[str | None, str, int, int]
"""Session, kind, number, and bytes of `content` of updates of which nothing else matters."""


def next_of_agent(
    peeked: Sequence[Peek], start: int, awaits: Callable[[Side, object], bool], plain: list[Plain]
) -> int:
    """The index of the agent's next line that matters, or the end; the updates before it are added to `plain`."""
    session: str | None = None
    kind, updates, size = "", 0, 0
    index = start
    for peek in islice(peeked, start, None) if start else peeked:
        params = peek.params
        if params is None or (update := params.update) is None or peek.method != SESSION_UPDATE:
            if awaits(_AGENT, peek.id) if peek.method is None else peek.method in AGENT_METHODS:
                break
        elif update.meta is not ABSENT or params.meta is not ABSENT:
            break
        elif update.kind == kind and params.session == session:  # bursts are of one kind
            updates += 1
            size += len(update.content)
        elif update.kind in PLAIN_UPDATES:
            if updates:
                plain.append((session, kind, updates, size))
            session, kind, updates, size = params.session, update.kind or "", 1, len(update.content)
        else:
            break
        index += 1
    if updates:
        plain.append((session, kind, updates, size))
    return index


def may_be_late(peek: Peek) -> bool:
    """Whether an agent's line can be accounted a moment after it was forwarded: it ends no turn and asks nothing."""
    if peek.method != SESSION_UPDATE or peek.params is None or peek.params.update is None:
        return False
    return peek.params.update.kind not in acp.UPDATES_AT_ONCE
