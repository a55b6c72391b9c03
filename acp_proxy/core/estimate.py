"""What is guessed where an agent says nothing: a token for every four characters."""

from __future__ import annotations

from acp_proxy.core.events import TurnEnded
from acp_proxy.core.usage import Usage

_CHARS_PER_TOKEN = 4


def tokens_in(chars: int) -> int:
    """Rounded up: a character is never free."""
    return -(-chars // _CHARS_PER_TOKEN)


def estimated_usage(ended: TurnEnded) -> Usage:
    """What passed over the wire, once: not what an agent adds to it, nor what it sends again with each call."""
    return Usage(
        input=tokens_in(ended.turn.prompt_chars + ended.tool_chars),
        output=tokens_in(ended.output_chars),
        thought=tokens_in(ended.thought_chars),
    )


def chars_of(ended: TurnEnded) -> int:
    return ended.turn.prompt_chars + ended.output_chars + ended.thought_chars + ended.tool_chars


def answered(ended: TurnEnded) -> bool:
    """Whether the model said anything, so that somebody paid for it."""
    return bool(ended.output_chars or ended.thought_chars or ended.tool_calls)
