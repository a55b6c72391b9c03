"""What a single model call of a session can have sent, by the session's own figures.

Every call sends the whole context again. The first turn of a session counts the same, whatever its counters are of;
after a turn the context has grown by what passed, and by what the model wrote.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.meter.readers.turn import ReportedTurn
from acp_proxy.core.usage import Usage

CHARS_PER_TOKEN = 2  # at the least, so that no call is taken for two
SMALL = 1500  # tokens: an agent's own instructions and tools are more, so that less says nothing
REMINDERS = 200  # tokens that an agent may add to a turn, and that do not pass


class ComparedTurn(ReportedTurn):
    """A turn with its usage and what else was seen of it."""

    context: int | None = None  # as the agent told it in that turn
    calls: int = 1  # at most so many model calls
    model: str | None = None  # as chosen
    cumulative: bool = False  # its counters were taken as the session's
    certain: bool = True  # it is known whether input holds what was cached


class Known(Struct, frozen=True):
    """A turn of a session whose usage is sure: of `calls` at most, when `chars` had passed in the session.

    `gauge`: whether the context that was told with it is that of its only call; None where that cannot be seen.
    """

    usage: Usage
    calls: int
    chars: int
    gauge: bool | None = None


class OneCall(Struct, frozen=True):
    """Between `least` and `most` tokens of prompt. `told`: by a context of the agent's, which is a call's if `proven`.

    No call sent less than `floor`, whatever that context is of.
    """

    floor: int
    least: int
    most: int
    told: bool = False
    proven: bool = True

    def fits(self, prompt: int, fewest: int, calls: int) -> bool:
        """Whether `prompt` is what some number of calls can have sent together."""
        return max(fewest, -(-prompt // self.most)) <= min(calls, prompt // self.least)


def known_turn(usage: Usage, calls: int, chars: int, context: int | None) -> Known:
    """`context` is what the agent told of it, if anything."""
    if context is None or (calls > 1 and 10 * context <= 11 * usage.total):
        return Known(usage, calls, chars)
    return Known(usage, calls, chars, is_context_of(context, usage))


def is_context_of(context: int, usage: Usage) -> bool:
    """Whether `context` is that of one call, which used so much, with its answer or without."""
    return 9 * usage.prompt <= 10 * context <= 11 * usage.total


def one_call(
    known: Known, before: Usage, before_context: int | None, now: Usage, context: int | None, chars: int
) -> OneCall | None:
    """Of a turn after the known one, at whose end `chars` had passed. None where the known one says nothing."""
    if not known.usage.prompt or (context is None and known.usage.prompt < SMALL * known.calls):
        return None
    least = floor = max(1, 9 * known.usage.prompt // (10 * known.calls))
    grown = now.completion + (chars - known.chars) // CHARS_PER_TOKEN
    most = REMINDERS + 11 * (known.usage.total + grown) // 10
    if known.gauge is False or context is None or context > most:  # what is told may be of the session, too
        return OneCall(floor, least, most)
    if before_context is not None:
        least = max(least, before_context - before.completion)
    return OneCall(floor, least, max(least, context + context // 20), told=True, proven=known.gauge is True)
