"""What is guessed where an agent tells no usage: from its context where that is known, else from characters.

Every model call sends the whole context again, so that what passed over the wire is the smaller part of a turn.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.acp import ours_in
from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import TurnEnded
from acp_proxy.core.meter.observations import TurnObservations
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import Usage

_CHARS_PER_TOKEN = 4
_CUT_SHORT = frozenset({"cancelled", "error", "crashed", "disconnected"})


def tokens_in(chars: int) -> int:
    """Rounded up: a character is never free."""
    return -(-chars // _CHARS_PER_TOKEN)


class Estimate(Struct, frozen=True):
    """Tokens, and in words by what they were estimated."""

    usage: Usage
    basis: str


def estimate(ended: TurnEnded, account: SessionAccount, observed: TurnObservations, window: int | None) -> Estimate:
    """A turn's tokens, never more than so many calls can have in a context of `window` tokens.

    The best that is known decides: the contexts that the agent told in the turn; the one before it, for one call; and
    without any of them only what passed, once.
    """
    output, thought = tokens_in(ended.output_chars), tokens_in(ended.thought_chars)
    passed = tokens_in(ended.turn.prompt_chars + ended.tool_chars) + output + thought
    profile, before = account.profile, account.context_used if account.grounded else None
    if observed.contexts:
        calls = _calls_told(ended, observed, profile)
        total = observed.contexts_sum * calls // observed.contexts if calls > 1 else observed.largest_context or 0
        total += 0 if profile.context.holds_output else output + thought
        basis = "as one call with the context that it told"
        if profile.context.comes == "each call":
            basis = "by the context of each call"
        elif calls > 1:
            basis = "by its contexts, as a call more than tools at most"
    elif before and answered(ended) and (cut_short(ended) or profile.context.comes != "each call"):
        calls, total, basis = 1, before + passed, "as one call with the context before it"
    else:
        calls, total, basis = ended.tool_calls + 1, passed, "a token for four characters"
    if not (observed.contexts or ended.turn.prompt_chars) and ended.turn.kind == "turn":
        basis += ", without the prompt, of which no text was counted"  # on a line too long to be read, or an image
    if window:
        total = min(total, calls * window)
    thought = min(thought, total)
    output = min(output, total - thought)
    return Estimate(Usage(input=total - output - thought, output=output, thought=thought), basis)


def _calls_told(ended: TurnEnded, observed: TurnObservations, profile: Profile) -> int:
    """How many calls the contexts of a turn are of. An agent that nobody has described may tell several of one call."""
    if profile.context.comes == "each call":
        return observed.contexts
    return 1 if profile.known else min(observed.contexts, ended.tool_calls + 1)


def chars_of(ended: TurnEnded) -> int:
    return ended.turn.prompt_chars + ended.output_chars + ended.thought_chars + ended.tool_chars


def cut_short(ended: TurnEnded) -> bool:
    """Whether the turn did not come to an end of its own."""
    return ended.stop_reason in _CUT_SHORT


def answered(ended: TurnEnded) -> bool:
    """Whether the model said anything, so that somebody paid for it."""
    return bool(ended.output_chars or ended.thought_chars or ended.tool_calls) and not refused(ended)


def refused(ended: TurnEnded) -> bool:
    """Whether another acp-proxy, nearer to the agent, answered in its place: the model saw and said nothing of it."""
    return "budget" in ours_in(ended.meta)
