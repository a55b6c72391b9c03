"""How full a session's context is after a turn, and how large a turn's largest request was."""

from __future__ import annotations

from acp_proxy.core.events import TurnEnded
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.session_context import TurnContexts
from acp_proxy.core.meter.turn_outcome import answered, chars_of, cut_short, tokens_in
from acp_proxy.core.usage import Usage


def note_context(account: SessionAccount, ended: TurnEnded, told: TurnContexts, used: TurnUsage) -> None:
    """Set the account's context where the agent has not told it in this turn. Unknown stays unknown."""
    if told.told or told.compacted:
        return
    if used.source in ("agent", "partial") and used.usage.prompt:  # what was only written says nothing of what was sent
        if not ended.tool_calls or account.reader.of_one_call:
            account.context.set(used.usage.total)  # one model call: its prompt and its answer
        elif account.context.used is None:
            account.context.set(used.usage.total // (ended.tool_calls + 1), estimated=True)
        else:
            account.context.grow(tokens_in(_chars_since(ended, told)))
    elif _goes_into_it(ended, used) and _has_begun(account, used) and (chars := _chars_since(ended, told)):
        account.context.grow(tokens_in(chars))


def _goes_into_it(ended: TurnEnded, used: TurnUsage) -> bool:
    """Whether the next call sends what was said. What a command of the agent's own shows is for the user alone."""
    return answered(ended) and (bool(used.usage.total) or used.source == "estimated" or cut_short(ended))


def _has_begun(account: SessionAccount, used: TurnUsage) -> bool:
    """Whether there is a context to add to; 0 only where all of the session is counted by its characters."""
    return bool(account.context.used) or (account.from_start and used.source == "estimated")


def request_context(account: SessionAccount, ended: TurnEnded, told: TurnContexts, used: TurnUsage) -> int | None:
    """Tokens of the turn's largest prompt, by which long-context prices are chosen; None when nobody can tell."""
    counted = used.source in ("agent", "partial") and used.usage.total
    if counted and not ended.tool_calls and used.usage.prompt <= (told.largest or used.usage.prompt):
        return used.usage.prompt  # one call; several, of tools that do not show, have sent more than the context
    if told.largest is None:
        one = used.source == "estimated" or (counted and account.reader.of_one_call)
        return used.usage.prompt if one else None
    written = used.usage.completion // (ended.tool_calls + 1) if account.profile.context.holds_output else 0
    return told.largest - written


def context_so_far(account: SessionAccount, usage: Usage) -> int | None:
    """`request_context` in mid-turn, when of the turn no more is known than `usage`."""
    largest = account.observed.context.largest
    if largest is None:
        return None
    written = usage.completion if account.profile.context.holds_output else 0
    return largest - written


def _chars_since(ended: TurnEnded, told: TurnContexts) -> int:
    return ended.chars_since_report if told.reported else chars_of(ended)
