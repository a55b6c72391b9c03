"""What an unknown agent tells in the course of a turn: calls, or counters of whatever they are."""

from __future__ import annotations

from acp_proxy.core.events import Counters, TurnEnded
from acp_proxy.core.meter.counters import Reading, joined
from acp_proxy.core.meter.readers.each_call import ToldCalls
from acp_proxy.core.meter.readers.unknown.one_call import CHARS_PER_TOKEN, REMINDERS
from acp_proxy.core.meter.turn_outcome import chars_of
from acp_proxy.core.usage import NOTHING, Usage


class UnknownCalls(ToldCalls):
    last: Counters | None = None
    prompts: int = 0  # how many told another prompt than those before
    first_call: Usage = NOTHING
    largest_call: Usage = NOTHING

    def add(self, reading: Reading) -> None:
        super().add(reading)
        if self.number == 1:
            self.first_call = reading.usage
        self.largest_call = max(self.largest_call, reading.usage, key=lambda usage: usage.total)

    def tell(self, counters: Counters | None, before: Counters | None) -> None:
        """Counters in mid-turn; some agents begin with those of the turn `before`.

        A total alone, or zeros, take back nothing.
        """
        some = counters is not None and (counters.input or counters.output)
        if counters is None or not (some or self.last is None):
            return
        last = self.last or before
        if some and (last is None or _other_prompt(counters, last)):
            self.prompts += 1
        self.last = counters

    def calls_of(self, ended: TurnEnded) -> int:
        """How many model calls the turn had at most: as many as show, or more that told of theirs."""
        return max(ended.most_calls, self.prompts)

    def read(self, ended: TurnEnded) -> Reading:
        """A turn of which each call was told; or the turn so far, again and again: then it used the most at least."""
        told, most, first = self.calls or NOTHING, self.largest_call, self.first_call
        later = first.total + told.completion + (chars_of(ended) // CHARS_PER_TOKEN)
        if self.number > ended.most_calls or most.prompt > REMINDERS + 11 * later // 10:
            return Reading(most, "unknown agent: usage told call by call, or of the turn so far", whole=False)
        return Reading(told, joined("unknown agent: usage told call by call", self.lacking), whole=not self.lacking)


def _other_prompt(one: Counters, other: Counters) -> bool:
    """Whether they are of different prompts. While a call is answered its output grows."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in ("input", "cached_read", "cached_write"))
    return any(new != old for new, old in pairs if new is not None and old is not None)
