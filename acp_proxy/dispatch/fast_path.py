"""Which lines of a run need more than a scan. This loop is most of what a relayed line costs.

Of the others it keeps what the meter wants: how many updates of a kind there were, and what contexts the agent told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from acp_proxy.core import acp
from acp_proxy.core.acp import AGENT_METHODS, PLAIN_UPDATES, SESSION_UPDATE, USAGE_UPDATE, chars_in
from acp_proxy.core.events import Event, Side
from acp_proxy.core.wire.peek import ABSENT, Params, Peek, peek_line

_AGENT = Side.AGENT
_TOGETHER = 256  # contexts that are accounted as one


class Burst:
    """Updates of one kind in one session of which nothing else matters, and the characters of their text.

    `message` is the one that they are part of, None where that is not told.
    """

    __slots__ = ("chars", "kind", "message", "session", "updates")

    def __init__(self, session: str | None, kind: str, updates: int, chars: int, message: Any = None) -> None:
        self.session = session
        self.kind = kind
        self.updates = updates
        self.chars = chars
        self.message = message

    def add(self, other: Burst) -> bool:
        """Whether the other counts the same, and is counted in here now."""
        same = self.kind == other.kind and self.session == other.session and self.message == other.message
        if same:
            self.updates += other.updates
            self.chars += other.chars
        return same


class UsageReports:
    """`usage_update`s with nothing but figures: of each, `used` and the JSON of `cost`."""

    __slots__ = ("each", "session", "size")

    def __init__(self, session: str, size: int, used: int, cost: bytes | None) -> None:
        self.session = session
        self.size = size  # of the context; the same in all of them
        self.each = [(used, cost)]

    def add(self, other: UsageReports) -> bool:
        """Whether the other goes on from here, and is part of this now."""
        goes_on = self.session == other.session and self.size == other.size and len(self.each) < _TOGETHER
        if goes_on:
            self.each += other.each
        return goes_on


Waits: TypeAlias = "tuple[Side, bytes] | bytes | Burst | UsageReports | partial[list[Event]]"
"""What was forwarded and is still to be accounted. `bytes` are the line of a `usage_update` that came alone."""


def next_of_agent(
    peeked: Sequence[Peek], start: int, awaits: Callable[[Side, object], bool], seen: list[Burst | UsageReports]
) -> int:
    """The index of the agent's next line that matters, or the end; what the lines before it tell is added to `seen`."""
    session: str | None = None
    kind, updates, chars, message = "", 0, 0, None
    index = start
    for peek in islice(peeked, start, None) if start else peeked:
        params = peek.params
        if params is None or (update := params.update) is None or peek.method != SESSION_UPDATE:
            if awaits(_AGENT, peek.id) if peek.method is None else peek.method in AGENT_METHODS:
                break
        elif update.meta is not ABSENT or params.meta is not ABSENT:
            break
        elif update.kind == kind and params.session == session and update.message == message:  # bursts are of one kind
            updates += 1
            chars += chars_in(bytes(update.content))
        elif update.kind in PLAIN_UPDATES:
            if updates:
                seen.append(Burst(session, kind, updates, chars, message))
            session, kind, message = params.session, update.kind or "", update.message
            updates, chars = 1, chars_in(bytes(update.content))
        elif update.kind == USAGE_UPDATE and (reports := _reports_in(params)) is not None:
            if updates:
                seen.append(Burst(session, kind, updates, chars, message))
                session, kind, updates, chars = None, "", 0, 0
            seen.append(reports)
        else:
            break
        index += 1
    if updates:
        seen.append(Burst(session, kind, updates, chars, message))
    return index


def is_usage_update(peek: Peek) -> bool:
    return (
        peek.method == SESSION_UPDATE
        and peek.params is not None
        and peek.params.update is not None
        and peek.params.update.kind == USAGE_UPDATE
    )


def folded(waiting: Iterable[Waits]) -> Iterator[Waits]:
    """What waits, in order. Reports of usage with nothing but bursts between them become one, behind these bursts.

    A `usage_update` that says more than figures stays the line that it is, and parts them.
    """
    held: UsageReports | None = None
    behind: list[Burst] = []
    for each in waiting:
        if isinstance(each, Burst):
            if held is None:
                yield each
            else:
                behind.append(each)
            continue
        reports = each if isinstance(each, UsageReports) else _reports_on(each) if isinstance(each, bytes) else None
        if held is not None and reports is not None and held.add(reports):
            yield from behind
            behind.clear()
            continue
        if held is not None:
            yield held
            yield from behind
            behind.clear()
        held = reports
        if reports is None:
            yield each
    if held is not None:
        yield held
        yield from behind


def _reports_on(line: bytes) -> UsageReports | None:
    params = peek_line(line).params
    if params is None or params.meta is not ABSENT or params.update is None or params.update.meta is not ABSENT:
        return None
    return _reports_in(params)


def _reports_in(params: Params) -> UsageReports | None:
    """The figures of a `usage_update` without `_meta`, where they are well-formed and its `cost` is not null."""
    update = params.update
    if update is None or not params.session:
        return None
    used, size = acp.count_in(bytes(update.used)), acp.count_in(bytes(update.size))
    cost = None if update.cost is ABSENT else bytes(update.cost)
    return None if used is None or size is None or cost == b"null" else UsageReports(params.session, size, used, cost)


def may_be_late(peek: Peek) -> bool:
    """Whether an agent's line can be accounted a moment after it was forwarded: it ends no turn and asks nothing."""
    if peek.method != SESSION_UPDATE or peek.params is None or peek.params.update is None:
        return False
    return peek.params.update.kind not in acp.UPDATES_AT_ONCE
