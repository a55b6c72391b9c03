"""What the counters of an agent that nobody has described mean: by what its calls can have sent, and by its context.

Nothing is said to be exact that can as well be something else.
"""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.agents.profile import Overlap, Profile
from acp_proxy.core.events import Counters, TurnEnded
from acp_proxy.core.meter.counters import Reading, adds_up, covers, joined, partition, since_last
from acp_proxy.core.meter.estimate import chars_of, cut_short
from acp_proxy.core.meter.guess import Judged, ScopeGuess, tells_its_call
from acp_proxy.core.meter.observations import ReportedTurn, TurnObservations
from acp_proxy.core.meter.one_call import (
    CHARS_PER_TOKEN,
    REMINDERS,
    SMALL,
    OneCall,
    is_context_of,
    known_turn,
    one_call,
)
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import NOTHING, Usage

_AFTER_LOAD = "its counters may go on from before the session was loaded"
_AFTER_CLOSE = "its counters may go on from before the session was closed or forked"
_NO_OUTPUT = "no output is told"
_ONE_OF_SEVERAL = "no more than one of several model calls"


def as_unknown(profile: Profile) -> Profile:
    """The profile of an agent that was known for telling no usage, and does."""
    return replace(profile, tokens=replace(profile.tokens, scope="turn"), overlap=replace(profile.overlap, known=False))


def read(
    counters: Counters,
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    scope: ScopeGuess,
    given: Overlap,
) -> Reading:
    """One turn's counters, after those of the turn before. Moves the account's counters on."""
    how = _with_caches(counters, ended, account, observed, scope, given)
    reading = _as_told(counters, how, given)
    before, context = account.before, account.context_used if observed.context_told else None
    closed = account.before_close
    told, most = reading.usage, observed.calls_of(ended)
    now = ReportedTurn(ended.at, counters, told, context, most, account.option, certain=reading.certain)
    calls = account.calls  # a session's counters hold those of turns of which nothing was told, too
    if reading.usage.total:  # zeros say nothing of how it counts
        account.before, account.before_close, account.calls = now, None, 0
    call = _one_call(account, before, now)
    judged = Judged()
    if reading.usage.total and not ended.model_usage:  # with rows by model a sudden growth is a stream that was retried
        judged = scope.judge(before, now, call, loaded=not account.from_start, waited=observed.waited)
    where_known = (
        account.from_start or before is not None or account.tokens.last is not None or account.agent_tells_cost
    )
    if closed is not None and not (judged.cumulative or scope.settled) and _may_have_gone_on(now, closed):
        return _after_close(now, closed, account, how, given)
    if judged.cumulative:
        earlier = before or closed
        if (
            earlier is not None
            and not earlier.cumulative
            and (before is not None or covers(counters, earlier.counters))
        ):
            account.tokens.stand_at(earlier.counters)
        may_go_on = account.tokens.may_go_on(counters)
        if may_go_on and tells_its_call(now):  # they are of this one call, so that they began at 0
            account.tokens.begin(at_zero=True)
            may_go_on = False
        reading, now.cumulative = _as_told(account.tokens.advance(counters), how, given), True
        if may_go_on:
            reading = replace(reading, detail=_AFTER_CLOSE, whole=False)
    reading = replace(reading, detail=joined(judged.reason, reading.detail), whole=reading.whole and judged.sure)
    if judged.cumulative and not (where_known or account.agent_tells_cost):
        return replace(reading, detail=joined(reading.detail, _AFTER_LOAD), guessed=True)
    if (
        before is None
        and closed is None
        and not (account.from_start or scope.settled or judged.cumulative)
        and _may_go_on(now, account, observed)
    ):
        return _after_load(now, account, how, reading)
    one_of_several = _may_be_one(
        reading.usage, now, call, judged, account, scope, all_shown=now.calls <= ended.tool_calls + 1
    )
    if judged.sure and not cut_short(ended) and _says_more(before, now, account):
        account.sure = known_turn(reading.usage, calls, account.passed, context)
    if one_of_several:
        return replace(reading, detail=joined(reading.detail, _ONE_OF_SEVERAL), whole=False)
    return reading


def _as_told(counters: Counters | None, how: Overlap, given: Overlap) -> Reading:
    """Counters, or what they grew by, as a partition. Not whole where more may be missing, or no call looks so."""
    reading = since_last(counters, how)
    if counters is not None and how is not given and _leaves_open(counters, reading.usage):
        reading = replace(reading, whole=False)
    if reading.usage.prompt and not reading.usage.completion:  # every call writes something
        reading = replace(reading, detail=joined(reading.detail, _NO_OUTPUT), whole=False)
    return reading


def _may_go_on(now: ReportedTurn, account: SessionAccount, observed: TurnObservations) -> bool:
    """Whether the first counters after a load may go on from before it, by their context and by the ledger."""
    last = account.tokens.last
    if now.context is None:
        return True
    if last is None and account.agent_tells_cost and not (observed.reported_cost and account.cost.resumed):
        return False  # a guess would be priced, and that would be taken off what the agent tells next
    return (last is None or covers(now.counters, last)) and not tells_its_call(now)


def _after_load(now: ReportedTurn, account: SessionAccount, how: Overlap, reading: Reading) -> Reading:
    """The first turn of a loaded session: where its counters stood before only the ledger may know."""
    if now.partition.prompt < SMALL:
        return reading
    detail, last = joined(reading.detail, _AFTER_LOAD), account.tokens.last
    if last is None or not covers(now.counters, last):
        return replace(reading, detail=detail, guessed=True)
    grown, now.cumulative = since_last(account.tokens.advance(now.counters), how), True
    return replace(grown, detail=detail, whole=False)


def _may_have_gone_on(now: ReportedTurn, closed: ReportedTurn) -> bool:
    """Whether the first counters after a session was closed may hold what they held before."""
    return now.partition.prompt >= SMALL and covers(now.counters, closed.counters) and not tells_its_call(now)


def _after_close(
    now: ReportedTurn, closed: ReportedTurn, account: SessionAccount, how: Overlap, given: Overlap
) -> Reading:
    if not closed.cumulative:
        account.tokens.stand_at(closed.counters)
    grown, now.cumulative = _as_told(account.tokens.advance(now.counters), how, given), True
    return replace(grown, detail=joined(grown.detail, _AFTER_CLOSE), whole=False)


def read_calls(ended: TurnEnded, observed: TurnObservations) -> Reading:
    """A turn of which each call was told; or the turn so far, again and again: then it used the most at least."""
    told, most, first = observed.calls or NOTHING, observed.largest_call, observed.first_call
    later = first.total + told.completion + (chars_of(ended) // CHARS_PER_TOKEN)
    if observed.told_calls > ended.most_calls or most.prompt > REMINDERS + 11 * later // 10:
        return Reading(most, "unknown agent: usage told call by call, or of the turn so far", whole=False)
    return Reading(told, joined("unknown agent: usage told call by call", observed.lacking), whole=not observed.lacking)


def _one_call(account: SessionAccount, before: ReportedTurn | None, now: ReportedTurn) -> OneCall | None:
    """What one call of this turn can have sent; None where nothing tells.

    The first turn of one call tells whether the agent's contexts are those of its calls: kept in `account.sure`.
    """
    known, told = account.sure, now.context
    if known is None or before is None:
        return None
    if known.gauge is None and told is not None and now.calls == 1:
        readings = now.partition, now.partition.minus(before.partition)
        if not any(is_context_of(told, usage) for usage in readings):
            known = account.sure = replace(known, gauge=False)
    return one_call(known, before.partition, before.context, now.partition, told, account.passed)


def _says_more(before: ReportedTurn | None, now: ReportedTurn, account: SessionAccount) -> bool:
    """Whether later turns are to be judged by this one."""
    if before is None:
        return account.from_start or tells_its_call(now)
    return now.calls == 1


def _may_be_one(
    usage: Usage,
    now: ReportedTurn,
    call: OneCall | None,
    judged: Judged,
    account: SessionAccount,
    scope: ScopeGuess,
    *,
    all_shown: bool,
) -> bool:
    """Whether a turn with tools may tell its last call alone: no more than that can have sent, or nobody can say.

    A turn that tells more settles it for the agent: `scope.sums`. Half of a call is left for a context that nothing
    was held against, and for what did not pass; what tools that do not show have told may be far more.
    """
    if now.calls == 1 or scope.sums or (judged.cumulative and judged.sure):
        return False
    if now.context is None and usage.prompt < SMALL:
        return False
    gauge = None if account.sure is None else account.sure.gauge
    if call is not None and call.told and call.proven:
        scope.sums = usage.prompt > call.most
    elif not all_shown:
        return True
    elif now.context is not None and gauge is None:
        scope.sums = 2 * usage.prompt > 3 * now.context
    elif call is not None:
        scope.sums = 2 * usage.prompt > 3 * call.most
    return not scope.sums


def _with_caches(
    counters: Counters,
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    scope: ScopeGuess,
    how: Overlap,
) -> Overlap:
    """The overlap with what is known by now of whether input holds what was cached; the user's word stands.

    More cached than input was cannot be in it. A turn of one call has the context that it ends with. What is found is
    kept in `scope`.
    """
    if how.input is not None or not (cached := (counters.cached_read or 0) + (counters.cached_write or 0)):
        return how
    model = account.option
    if cached > (counters.input or 0):
        scope.caches[model] = "excludes_cache"
    elif model not in scope.caches and observed.context_told and ended.most_calls == 1:
        counts: InputCounts
        for counts in ("includes_cache", "excludes_cache"):
            usage = _as_counted(counters, how, counts)
            if account.context_used in (usage.prompt, usage.total):
                if not _may_be_grown(counters, account, how, counts):
                    scope.caches[model] = counts
                break
    found = scope.caches.get(model)
    return how if found is None else replace(how, input=found, decided=True)


def _as_counted(counters: Counters, how: Overlap, counts: InputCounts) -> Usage:
    return partition(counters, replace(how, input=counts, decided=True)).usage


def _may_be_grown(counters: Counters, account: SessionAccount, how: Overlap, counts: InputCounts) -> bool:
    """Whether the context is also what the session's counters grew by, counted the other way.

    What came to a session uncached, when all before it was, adds up to its context.
    """
    if (before := account.before) is None or not covers(counters, before.counters):
        return False
    other: InputCounts = "excludes_cache" if counts == "includes_cache" else "includes_cache"
    grown = _as_counted(counters, how, other).minus(_as_counted(before.counters, how, other))
    return account.context_used in (grown.prompt, grown.total)


def _leaves_open(counters: Counters, usage: Usage) -> bool:
    """Whether more may be missing: of the total, which may hold thinking that is not told, or of where that belongs."""
    if counters.total is None:
        return bool(counters.thought)
    return counters.total < usage.total or not adds_up(counters)
