"""What a turn's own model calls used, by how its agent counts, and how much of that is known.

Knows nothing of money. What an agent reports beyond its turns (titles, subagents) is the business of `model_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from acp_proxy.core.events import TurnEnded
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.counters import joined
from acp_proxy.core.meter.estimate import Estimate
from acp_proxy.core.meter.observations import TurnObservations
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.session_context import TurnContexts
from acp_proxy.core.meter.turn_outcome import answered, cut_short, refused
from acp_proxy.core.usage import NOTHING

Guess = Callable[[], Estimate | None]  # None where nothing may be guessed


def turn_usage(
    ended: TurnEnded,
    account: SessionAccount,
    observed: TurnObservations,
    increase: Increase,
    guess: Guess,
) -> TurnUsage:
    """The tokens of a turn during which the agent's cost grew by `increase`. Moves the account's counters on."""
    profile, told = account.profile, observed.context
    reported = account.reader.end(ended, account.observation(observed, increase), account.model)
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
        guessed = _cut_short(ended, account, told, guess)
        return replace(guessed, repeated=True) if guessed.source == "estimated" else reported
    if reported is not None and (reported.source != "agent" or not short):
        return reported
    tells_none = account.reader.told_none
    if increase.amounts:
        why = joined(_why(ended) if short else "", "the agent tells its cost, not its tokens")
        proven = profile.tokens.scope == "none" and told.changes  # others may tell of it later
        if ((tells_none and not short) or proven) and (estimated := _estimated(why, guess)).usage.total:
            return estimated
        return TurnUsage(NOTHING, "partial", why)
    if short:
        return _cut_short(ended, account, told, guess)
    if tells_none:
        return _estimated("the agent reports no usage", guess)
    why = "the agent reported no usage of this turn"
    if told.changes and profile.context.comes == "each call" and not account.agent_tells_cost:
        return _estimated(why, guess)  # calls that had ended before one failed: a new context proves each
    return TurnUsage(NOTHING, "none", why)


def _cut_short(ended: TurnEnded, account: SessionAccount, told: TurnContexts, guess: Guess) -> TurnUsage:
    """Nothing is known although the model may have been paid: say so, and guess only where nobody will ever tell.

    A new context proves a call. Without one, most of what was said in a turn that failed is the error's own text.
    """
    why = joined(_why(ended), "the agent reports nothing of it")
    told_later = account.reader.cumulative or account.agent_tells_cost
    called = told.changes or (answered(ended) and ended.stop_reason != "error")
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
