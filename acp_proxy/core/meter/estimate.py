"""What is guessed where an agent tells no usage: from its context where that is known, else from characters.

Every model call sends the whole context again, so that what passed over the wire is the smaller part of a turn.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import TurnEnded
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.session_context import TurnContexts
from acp_proxy.core.meter.turn_outcome import answered, cut_short, tokens_in
from acp_proxy.core.usage import Usage


class Estimate(Struct, frozen=True):
    """Tokens, and in words by what they were estimated."""

    usage: Usage
    basis: str


def estimate(ended: TurnEnded, account: SessionAccount, told: TurnContexts, window: int | None) -> Estimate:
    """A turn's tokens, never more than so many calls can have in a context of `window` tokens.

    The best that is known decides: the contexts that the agent told in the turn; the one before it, for one call; and
    without any of them only what passed, once.
    """
    output, thought = tokens_in(ended.output_chars), tokens_in(ended.thought_chars)
    passed = tokens_in(ended.turn.prompt_chars + ended.tool_chars) + output + thought
    profile, before = account.profile, account.context.used if account.context.grounded else None
    if told.changes:
        calls = _calls_told(ended, told, profile)
        total = told.total * calls // told.changes if calls > 1 else told.largest or 0
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
    if not (told.changes or ended.turn.prompt_chars) and ended.turn.kind == "turn":
        basis += ", without the prompt, of which no text was counted"  # on a line too long to be read, or an image
    if window:
        total = min(total, calls * window)
    thought = min(thought, total)
    output = min(output, total - thought)
    return Estimate(Usage(input=total - output - thought, output=output, thought=thought), basis)


def _calls_told(ended: TurnEnded, told: TurnContexts, profile: Profile) -> int:
    """How many calls the contexts of a turn are of. An agent that nobody has described may tell several of one call."""
    if profile.context.comes == "each call":
        return told.changes
    return 1 if profile.known else min(told.changes, ended.tool_calls + 1)
