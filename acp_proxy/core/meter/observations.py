"""What the meter observes of the turn that runs, and keeps of the one before."""

from __future__ import annotations

from msgspec import Struct, field

from acp_proxy.core.events import Counters, TurnEnded
from acp_proxy.core.meter.counters import Reading
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.usage import NOTHING, Usage

_SUBAGENTS = 1000  # of one turn that are told apart
_CALLS = 1000  # the same of model calls
_MODELS = 8  # the same of models that were chosen in its course


class TurnObservations(Struct):
    """What was seen since the oldest open turn began."""

    model: str | None = None  # chosen when it began, or named since by what it used
    began_with: int | None = None  # the context, as the agent had told it before
    switched: bool = False  # another one was chosen meanwhile
    left: tuple[str, ...] = ()  # in place of these
    reported: bool = False  # a `usage_update` came
    reported_cost: bool = False
    context_told: bool = False  # ... with a context
    compacted: bool = False  # or the agent said how much is left after a compaction
    largest_context: int | None = None  # of a call, in tokens
    contexts: int = 0  # how many that differed from the one before
    contexts_sum: int = 0
    first_context: int | None = None  # that of the first call
    calling: str | None = None  # the model of the call that runs, as far as the order of what is told shows
    calls: Usage | None = None  # the sum, where an agent tells each call
    calls_by_model: dict[str | None, Usage] = field(default_factory=dict)
    told_calls: int = 0  # how many
    writing_calls: set[str] = field(default_factory=set)  # those that were seen to write, where that is told
    first_call: Usage = NOTHING
    largest_call: Usage = NOTHING
    lacking: str = ""  # what is missing of one of them
    subagents: dict[str, Call] = field(default_factory=dict)  # told once, by tool call
    subagent_calls: dict[str, Usage] = field(default_factory=dict)  # told call by call, by tool call
    cumulative: Counters | None = None  # the session's counters as of now
    status: Counters | None = None  # the turn's counters as of now
    told: Counters | None = None  # the last ones that an agent which nobody has described told in mid-turn
    prompts: int = 0  # how many of them told another prompt than those before
    waited: bool = False  # it was asked for before the turn before it had told what it used

    def add_call(self, reading: Reading) -> None:
        self.calls = reading.usage if self.calls is None else self.calls + reading.usage
        self.calls_by_model[self.calling] = self.calls_by_model.get(self.calling, NOTHING) + reading.usage
        self.told_calls += 1
        if self.told_calls == 1:
            self.first_call = reading.usage
        self.largest_call = max(self.largest_call, reading.usage, key=lambda usage: usage.total)
        self.lacking = self.lacking or ("" if reading.whole and reading.certain else reading.detail)

    def tell(self, counters: Counters | None, before: Counters | None) -> None:
        """Counters in mid-turn, of whatever they are; some agents begin with those of the turn `before`.

        A total alone, or zeros, take back nothing.
        """
        some = counters is not None and (counters.input or counters.output)
        if counters is None or not (some or self.told is None):
            return
        last = self.told or before
        if some and (last is None or _other_prompt(counters, last)):
            self.prompts += 1
        self.told = counters

    def calls_of(self, ended: TurnEnded) -> int:
        """How many model calls the turn had at most: as many as show, or more that told of theirs."""
        return max(ended.most_calls, self.prompts)

    def leave(self, model: str | None) -> None:
        self.switched = True
        if model is not None and model not in self.left and len(self.left) < _MODELS:
            self.left += (model,)

    def see_call(self, call: str) -> None:
        if len(self.writing_calls) < _CALLS:
            self.writing_calls.add(call)

    @property
    def lack_of_calls(self) -> str:
        """What is missing of the calls that were told."""
        return self.lacking or ("" if self.told_calls >= len(self.writing_calls) else "not every model call is told")

    def add_subagent_call(self, tool_call: str, usage: Usage) -> None:
        key = tool_call if tool_call in self.subagent_calls or len(self.subagent_calls) < _SUBAGENTS else "others"
        self.subagent_calls[key] = self.subagent_calls.get(key, Usage()) + usage

    def add_subagent(self, call: Call) -> None:
        if len(self.subagents) < _SUBAGENTS:
            self.subagents[call.subagent or ""] = call


class ReportedTurn(Struct):
    """A turn with the usage that it reported: what the next one's is compared with.

    What has a default is for agents that nobody has described.
    """

    at: int
    counters: Counters
    partition: Usage
    context: int | None = None  # as the agent told it in that turn
    calls: int = 1  # at most so many model calls
    model: str | None = None  # as chosen
    cumulative: bool = False  # its counters were taken as the session's
    certain: bool = True  # it is known whether input holds what was cached


def _other_prompt(one: Counters, other: Counters) -> bool:
    """Whether they are of different prompts. While a call is answered its output grows."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in ("input", "cached_read", "cached_write"))
    return any(new != old for new, old in pairs if new is not None and old is not None)
