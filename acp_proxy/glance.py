"""Which lines of a run need more than a glance. This loop is most of what a relayed line costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_proxy.core import acp
from acp_proxy.core.acp import PLAIN_UPDATES, SESSION_UPDATE
from acp_proxy.core.peek import ABSENT, Peek

_AROUND_TEXT = len('{"type":"text","text":""}')  # of a chunk's content, of which characters are counted, not JSON

Tally = Callable[[str | None, str, int, int], None]


def next_of_agent(peeked: Sequence[Peek], start: int, awaits: Callable[[object], bool], tally: Tally) -> int:
    """The index of the agent's next line that matters, or the end; the updates before it are tallied.

    `tally` gets session, kind, characters and number of updates of which nothing else matters.
    """
    session: str | None = None
    kind, updates, chars = "", 0, 0  # bursts are of one kind: it is told when it changes
    for index in range(start, len(peeked)):
        peek = peeked[index]
        params = peek.params
        if params is not None and peek.method == SESSION_UPDATE and (update := params.update) is not None:
            seen = update.kind
            if seen is None or seen not in PLAIN_UPDATES or update.meta is not ABSENT or params.meta is not ABSENT:
                break
            if seen != kind or params.session != session:
                if updates:
                    tally(session, kind, chars, updates)
                session, kind, updates, chars = params.session, seen, 0, 0
            updates += 1
            chars += max(0, len(update.content) - _AROUND_TEXT)
        elif awaits(peek.id) if peek.method is None else peek.method in acp.AGENT_METHODS:
            break
    else:
        index = len(peeked)
    if updates:
        tally(session, kind, chars, updates)
    return index


def may_be_late(peek: Peek) -> bool:
    """Whether an agent's line can be accounted a moment after it was forwarded: it ends no turn and asks nothing."""
    if peek.method != SESSION_UPDATE or peek.params is None or peek.params.update is None:
        return False
    return peek.params.update.kind not in acp.UPDATES_AT_ONCE
