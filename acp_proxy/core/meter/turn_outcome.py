"""How a turn ended, and how many characters of it passed. All readers count by it: what changes here changes rows."""

from __future__ import annotations

from acp_proxy.core.acp import ours_in
from acp_proxy.core.events import TurnEnded

_CHARS_PER_TOKEN = 4
_CUT_SHORT = frozenset({"cancelled", "error", "crashed", "disconnected"})


def tokens_in(chars: int) -> int:
    """Rounded up: a character is never free."""
    return -(-chars // _CHARS_PER_TOKEN)


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
