"""Whether the input of an unknown agent holds what was cached, where its total does not tell."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.agents.profile import Overlap
from acp_proxy.core.events import Counters, TurnEnded
from acp_proxy.core.meter.counters import covers, partition
from acp_proxy.core.meter.observations import Observation
from acp_proxy.core.usage import Usage


def with_caches(
    counters: Counters,
    before: Counters | None,
    ended: TurnEnded,
    seen: Observation,
    how: Overlap,
    found: dict[str | None, InputCounts],
) -> Overlap:
    """The overlap with what is known by now of one agent, kept in `found` by model; the user's word stands.

    More cached than input was cannot be in it. A turn of one call has the context that it ends with.
    """
    if how.input is not None or not (cached := (counters.cached_read or 0) + (counters.cached_write or 0)):
        return how
    if cached > (counters.input or 0):
        found[seen.model] = "excludes_cache"
    elif seen.model not in found and seen.context.told and ended.most_calls == 1:
        counts: InputCounts
        for counts in ("includes_cache", "excludes_cache"):
            usage = _as_counted(counters, how, counts)
            if seen.context_now in (usage.prompt, usage.total):
                if not _may_be_grown(counters, before, seen.context_now, how, counts):
                    found[seen.model] = counts
                break
    known = found.get(seen.model)
    return how if known is None else replace(how, input=known, decided=True)


def _as_counted(counters: Counters, how: Overlap, counts: InputCounts) -> Usage:
    return partition(counters, replace(how, input=counts, decided=True)).usage


def _may_be_grown(
    counters: Counters, before: Counters | None, context: int | None, how: Overlap, counts: InputCounts
) -> bool:
    """Whether the context is also what the session's counters grew by, counted the other way.

    What came to a session uncached, when all before it was, adds up to its context.
    """
    if before is None or not covers(counters, before):
        return False
    other: InputCounts = "excludes_cache" if counts == "includes_cache" else "includes_cache"
    grown = _as_counted(counters, how, other).minus(_as_counted(before, how, other))
    return context in (grown.prompt, grown.total)
