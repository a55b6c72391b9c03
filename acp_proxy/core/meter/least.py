"""What a turn that runs has used at least, by what its agent told so far: to stop it in time, never to be booked.

Where an agent tells no tokens in mid-turn, each context that it tells proves a model call that was sent all of it. A
token of it costs at least what one from the cache does, and one that came since the turn's first call, which no cache
can hold, what input does. What a call writes, before it is part of the next context, is not known. Only a compaction
may look like a call more than there was.
"""

from __future__ import annotations

from acp_proxy.core.events import Counters
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import NOTHING, Usage


def least_used(account: SessionAccount) -> Usage:
    """Of the oldest open turn; nothing between turns, and for an agent that is not known to prove anything."""
    notes, profile = account.notes, account.profile
    if not account.open:
        return NOTHING
    if profile.scope == "call":
        return sum(notes.subagent_calls.values(), notes.calls or NOTHING)
    if profile.scope == "session":
        return _of(account, None if notes.cumulative is None else account.tokens.since(notes.cumulative))
    return _of(account, notes.status) if notes.status is not None else _by_contexts(account)


def _of(account: SessionAccount, counters: Counters | None) -> Usage:
    return NOTHING if counters is None else partition(counters, account.profile).usage


def _by_contexts(account: SessionAccount) -> Usage:
    notes, profile = account.notes, account.profile
    if not profile.contexts_a_call:
        return NOTHING
    sent = notes.contexts_sum // profile.contexts_a_call
    new = min(sent, (notes.most_used or 0) - (notes.first_used or 0))
    return Usage(input=new, cached_read=sent - new)
