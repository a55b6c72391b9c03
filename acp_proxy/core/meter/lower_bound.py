"""What a turn that runs has used at least, by what its agent told so far: to stop it in time.

What it told of tokens is also what is booked of the turn should its proxy be killed. Where an agent tells none in
mid-turn, each context that it tells proves a model call that was sent all of it; that is never booked. What such calls
cost at least: tokens that came since the turn's first call are input, for no cache held them, all others were read from
a cache. What a call writes, before it is part of the next context, is not known. Only a compaction may look like a call
more than there was.
"""

from __future__ import annotations

from acp_proxy.core.meter.counters import Reading
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import NOTHING, Usage


def lower_bound(account: SessionAccount) -> Usage:
    """Of the oldest open turn; nothing between turns, and for an agent that is not known to prove anything."""
    if not account.open:
        return NOTHING
    told = tokens_told(account)
    return _by_contexts(account) if told is None else told.usage


def tokens_told(account: SessionAccount) -> Reading | None:
    """What the agent told of the oldest open turn's tokens, subagents among them; None where it tells none."""
    return account.reader.so_far(account.observed.subagents)


def _by_contexts(account: SessionAccount) -> Usage:
    told, a_call = account.observed.context, account.profile.context.a_call
    if not a_call or told.first is None or told.largest is None:
        return NOTHING
    sent = told.total // a_call
    new = min(sent, told.largest - told.first)
    return Usage(input=new, cached_read=sent - new)
