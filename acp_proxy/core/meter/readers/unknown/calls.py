"""How many model calls the usage of a turn may be of, by what one call of the session can have sent."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.meter.observations import Observation
from acp_proxy.core.meter.readers.unknown.one_call import SMALL, ComparedTurn, OneCall, is_context_of, one_call
from acp_proxy.core.meter.readers.unknown.scope import Judged, tells_its_call
from acp_proxy.core.meter.readers.unknown.session import UnknownSession
from acp_proxy.core.usage import Usage


def what_one_call_sends(session: UnknownSession, before: ComparedTurn | None, now: ComparedTurn) -> OneCall | None:
    """Of this turn; None where nothing tells.

    The first turn of one call tells whether the agent's contexts are those of its calls: kept in `session.sure`.
    """
    known, told = session.sure, now.context
    if known is None or before is None:
        return None
    if known.gauge is None and told is not None and now.calls == 1:
        readings = now.partition, now.partition.minus(before.partition)
        if not any(is_context_of(told, usage) for usage in readings):
            known = session.sure = replace(known, gauge=False)
    return one_call(known, before.partition, before.context, now.partition, told, session.passed)


def says_more(before: ComparedTurn | None, now: ComparedTurn, seen: Observation) -> bool:
    """Whether later turns are to be judged by this one."""
    if before is None:
        return seen.from_start or tells_its_call(now)
    return now.calls == 1


def may_be_one(
    usage: Usage, now: ComparedTurn, call: OneCall | None, judged: Judged, session: UnknownSession, *, all_shown: bool
) -> bool:
    """Whether a turn with tools may tell its last call alone: no more than that can have sent, or nobody can say.

    A turn that tells more settles it for the agent: `scope.sums`. Half of a call is left for a context that nothing
    was held against, and for what did not pass; what tools that do not show have told may be far more.
    """
    scope = session.scope
    if now.calls == 1 or scope.sums or (judged.cumulative and judged.sure):
        return False
    if now.context is None and usage.prompt < SMALL:
        return False
    gauge = None if session.sure is None else session.sure.gauge
    if call is not None and call.told and call.proven:
        scope.sums = usage.prompt > call.most
    elif not all_shown:
        return True
    elif now.context is not None and gauge is None:
        scope.sums = 2 * usage.prompt > 3 * now.context
    elif call is not None:
        scope.sums = 2 * usage.prompt > 3 * call.most
    return not scope.sums
