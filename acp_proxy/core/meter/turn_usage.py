"""What a turn's own model calls used, by how its agent counts, and how much of that is known.

Knows nothing of money. What an agent reports beyond its turns (titles, subagents) is the business of `model_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.acp import CANCELLED
from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.entry import UsageSource
from acp_proxy.core.events import Counters, TurnEnded
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.counters import Reading, completed, covers, is_empty, joined, partition
from acp_proxy.core.meter.dialects import status_line
from acp_proxy.core.meter.estimate import Estimate, answered, chars_of, cut_short, refused
from acp_proxy.core.meter.guess import ScopeGuess
from acp_proxy.core.meter.observations import ReportedTurn, TurnObservations
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.unknown_agent import as_unknown, read, read_calls
from acp_proxy.core.usage import NOTHING, Usage

Guess = Callable[[], Estimate | None]  # None where nothing may be guessed

_PERHAPS_ANEW = "a command may have set the agent's counters back"
_MAY_GO_ON = "its counters may go on from before the session was loaded or forked"
_REPEATED = "the agent repeats the usage of the turn before"


class TurnUsage(Struct, frozen=True):
    """Not `priceable`: the counters contradict each other, so that no price follows from them.

    `repeated`: what the message says, its rows by model too, is the turn's before.
    """

    usage: Usage
    source: UsageSource
    detail: str = ""
    priceable: bool = True
    repeated: bool = False


def turn_usage(
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    increase: Increase,
    scope: ScopeGuess,
    guess: Guess,
) -> TurnUsage:
    """The tokens of a turn during which the agent's cost grew by `increase`. Moves the account's counters on."""
    profile = account.profile
    account.passed += chars_of(ended)
    account.calls += observed.calls_of(ended)
    reported = _reported(ended, account, observed, increase, scope)
    short = cut_short(ended)
    if reported is not None and reported.source == "estimated" and guess() is None:
        return TurnUsage(NOTHING, "none", reported.detail)
    if reported is not None and reported.usage != NOTHING:
        if short and reported.source == "agent":
            return replace(reported, source="partial", detail=joined(reported.detail, _why(ended)))
        return reported
    if refused(ended):
        return TurnUsage(NOTHING, "agent", "refused by another acp-proxy")
    if ended.stop_reason == "error" and not ended.updates and not increase.amounts:
        return TurnUsage(NOTHING, "agent", "failed before it used anything")
    if reported is not None and reported.repeated and short:  # it says nothing of this one
        guessed = _cut_short(ended, account, observed, scope, guess)
        return replace(guessed, repeated=True) if guessed.source == "estimated" else reported
    if reported is not None and (reported.source != "agent" or not short):
        return reported
    tells_none = profile.tokens.scope == "none" or (
        account.before is None and (profile.tokens.often_silent or not profile.known)
    )
    if increase.amounts:
        why = joined(_why(ended) if short else "", "the agent tells its cost, not its tokens")
        proven = profile.tokens.scope == "none" and observed.contexts  # others may tell of it later
        if ((tells_none and not short) or proven) and (estimated := _estimated(why, guess)).usage.total:
            return estimated
        return TurnUsage(NOTHING, "partial", why)
    if short:
        return _cut_short(ended, account, observed, scope, guess)
    if tells_none:
        return _estimated("the agent reports no usage", guess)
    why = "the agent reported no usage of this turn"
    if observed.contexts and profile.context.comes == "each call" and not account.agent_tells_cost:
        return _estimated(why, guess)  # calls that had ended before one failed: a new context proves each
    return TurnUsage(NOTHING, "none", why)


def _reported(
    ended: TurnEnded, account: SessionAccount, observed: TurnObservations, increase: Increase, scope: ScopeGuess
) -> TurnUsage | None:
    """What the agent said; None when it said nothing that can be counted."""
    if observed.calls is not None and account.profile.known:
        return TurnUsage(observed.calls, "partial" if (lack := observed.lack_of_calls) else "agent", lack)
    if account.profile.tokens.scope == "session":
        return _by_difference(ended, account, observed)
    counters = _counters_of(ended, observed)
    if counters is not None:
        return _counted(counters, ended, account, observed, increase, scope)
    return None if observed.calls is None else _read(read_calls(ended, observed))


def _counters_of(ended: TurnEnded, observed: TurnObservations) -> Counters | None:
    for counters in (ended.counters, ended.quota):
        if not is_empty(counters):
            return counters
    told = status_line(ended.meta) or observed.status
    if told is None and observed.calls is None:
        told = observed.told
    return None if is_empty(told) else told


def _by_difference(ended: TurnEnded, account: SessionAccount, observed: TurnObservations) -> TurnUsage | None:
    now = observed.cumulative if ended.counters is None else completed(ended.counters, observed.cumulative)
    if now is None or is_empty(now):
        account.may_restart = account.may_restart or _was_a_command(ended, account, observed)
        return None
    last, may_go_on = account.tokens.last, account.tokens.may_go_on(now)
    if (since := account.tokens.advance(now)) is None:
        return TurnUsage(NOTHING, "none", "where the session's counters stood before is not known")
    reading = partition(since, account.profile.overlap)
    if not reading.usage.total:
        return None
    if account.may_restart and last is not None and covers(now, last):
        reading = _perhaps_anew(reading, now, account)
    account.may_restart = False
    if may_go_on:
        reading = replace(reading, detail=joined(reading.detail, _MAY_GO_ON), whole=False)
    least = 9 * reading.usage.prompt // (10 * ended.most_calls)
    account.smallest_call = min(least, account.smallest_call or least)
    return _read(reading)


def _was_a_command(ended: TurnEnded, account: SessionAccount, observed: TurnObservations) -> bool:
    """Whether the agent answered by itself, and may have set its counters back: what was asked is in no context."""
    if "command" not in account.profile.tokens.restarts or observed.began_with is None or not observed.context_told:
        return False
    return answered(ended) and (account.context_used or 0) <= observed.began_with


def _perhaps_anew(reading: Reading, now: Counters, account: SessionAccount) -> Reading:
    """Counters that did not fall. If they grew by less than a call they began at 0 again, else they may have."""
    if account.smallest_call is not None and reading.usage.prompt < account.smallest_call:
        return partition(now, account.profile.overlap)
    return replace(reading, detail=joined(reading.detail, _PERHAPS_ANEW), whole=False)


def _counted(
    counters: Counters,
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    increase: Increase,
    scope: ScopeGuess,
) -> TurnUsage | None:
    """What counters say of the turn; None when they are of no call of its own. Moves the account's on."""
    profile, before = account.profile, account.before
    if profile.tokens.scope == "none":
        profile = as_unknown(profile)
    if profile.known:
        reading = partition(counters, profile.overlap)
        account.before = ReportedTurn(ended.at, counters, reading.usage)
    elif not increase.amounts and _stands_still(counters, before, observed):
        return TurnUsage(NOTHING, "none", _REPEATED, repeated=True)
    else:
        reading = read(counters, ended, account, observed, scope, profile.overlap)
    if profile.tokens.scope == "last_call" and not reading.usage.completion:
        return None  # every call writes something: what goose tells after `/compact` is the context that is left
    if reading.usage == NOTHING and not _is_zero(ended, observed, profile, increase):
        return None
    if not increase.amounts and _repeats(ended, counters, before, observed, profile):
        return TurnUsage(NOTHING, "none", _REPEATED, repeated=True)
    if profile.tokens.after_failure == "late" and before is not None and observed.waited:
        reading = replace(reading, usage=_without(reading.usage, before.partition))
    return _whole_or_part(reading, counters, ended, account, observed, profile)


def _whole_or_part(
    reading: Reading,
    counters: Counters,
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    profile: Profile,
) -> TurnUsage:
    """What an agent of this kind leaves out of what it tells."""
    # Calls; not all are of tools that show.
    proven = (
        observed.contexts
        if profile.context.comes == "each call"
        else ended.messages
        if profile.tokens.message_a_call
        else 0
    )
    if profile.tokens.scope == "last_call" and (
        ended.tool_calls or proven > 1 or account.open
    ):  # what waits may be in it
        return TurnUsage(reading.usage, "partial", "the last of several model calls")
    as_gemini = not profile.known and counters is ended.quota and counters.total is None
    if (profile.overlap.thinking == "untold" or as_gemini) and counters.thought is None:
        return TurnUsage(reading.usage, "partial", joined(reading.detail, "thinking is not told"))
    return _read(reading)


def _read(reading: Reading) -> TurnUsage:
    source: UsageSource = "agent" if reading.certain and reading.whole else "partial"
    if reading.guessed:
        source = "estimated"
    return TurnUsage(reading.usage, source, reading.detail, reading.certain)


def _is_zero(ended: TurnEnded, observed: TurnObservations, profile: Profile, increase: Increase) -> bool:
    """Whether zeros are to be believed: no model was called, as for an agent's own slash commands.

    An agent that reports in the turn, but no context, called a model whose provider tells no usage.
    """
    if increase.amounts or profile.tokens.after_failure == "late":
        return False
    if not answered(ended):
        return True
    return profile.known and profile.overlap.thinking != "untold" and (observed.context_told or not observed.reported)


def _repeats(
    ended: TurnEnded, now: Counters, before: ReportedTurn | None, observed: TurnObservations, profile: Profile
) -> bool:
    """Whether usage is that of the turn before: sent again for a failed one, a last call's also for a queued one.

    After a load the turn before is not known here; then its context gives it away, which is sent again, too: also of a
    turn that said nothing, as OpenCode answers a prompt that was cancelled at once. Of an agent that nobody described
    only such a turn, or one that it calls cancelled, is taken for one, for no call of it has to have ended; and one in
    whose middle no more was told than that.
    """
    silent = not answered(ended)
    if (
        observed.context_told
        and not observed.contexts
        and (profile.tokens.after_failure == "repeats" or (silent and profile.tokens.scope == "last_call"))
    ):
        return True
    if before is None or now != before.counters:
        return False
    if not profile.known:
        unsaid = silent and observed.context_told and not observed.contexts
        return unsaid or ended.stop_reason == CANCELLED or now is observed.told
    return profile.tokens.after_failure == "repeats" or (profile.tokens.scope == "last_call" and observed.waited)


def _stands_still(now: Counters, before: ReportedTurn | None, observed: TurnObservations) -> bool:
    """Whether an agent that nobody described answered without a model, as a command of its own: nothing moved.

    It told the context of the turn before, as it does of its calls, and tells none.
    """
    return before is not None and now == before.counters and before.context is not None and not observed.context_told


def _without(sum_of_both: Usage, first: Usage) -> Usage:
    return sum_of_both.minus(first) if sum_of_both.covers(first) else sum_of_both


def _cut_short(
    ended: TurnEnded, account: SessionAccount, observed: TurnObservations, scope: ScopeGuess, guess: Guess
) -> TurnUsage:
    """Nothing is known although the model may have been paid: say so, and guess only where nobody will ever tell.

    A new context proves a call. Without one, most of what was said in a turn that failed is the error's own text.
    """
    why = joined(_why(ended), "the agent reports nothing of it")
    profile = account.profile
    cumulative = (profile.tokens.scope if profile.known else scope.scope) == "session"
    told_later = cumulative or account.agent_tells_cost
    called = observed.contexts or (answered(ended) and ended.stop_reason != "error")
    if told_later or not called:
        return TurnUsage(NOTHING, "none", why)
    return _estimated(why, guess)


def _estimated(why: str, guess: Guess) -> TurnUsage:
    estimate = guess()
    if estimate is None or not estimate.usage.total:
        return TurnUsage(NOTHING, "none", why)
    return TurnUsage(estimate.usage, "estimated", f"{why}: {estimate.basis}")


def _why(ended: TurnEnded) -> str:
    return "failed" if ended.stop_reason == "error" else ended.stop_reason
