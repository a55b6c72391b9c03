"""What the subagents of a turn used, told once at their end or call by call."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from acp_proxy.core.agents.profile import Overlap
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.usage import NOTHING, Usage

_MOST = 1000  # of one turn that are told apart


class Subagents(Struct):
    """By tool call."""

    results: dict[str, Call] = field(default_factory=dict)
    calls: dict[str, Usage] = field(default_factory=dict)

    def add_call(self, tool_call: str, usage: Usage) -> None:
        key = tool_call if tool_call in self.calls or len(self.calls) < _MOST else "others"
        self.calls[key] = self.calls.get(key, NOTHING) + usage

    def add_result(self, call: Call) -> None:
        if len(self.results) < _MOST:
            self.results[call.subagent or ""] = call

    def used(self, how: Overlap) -> Iterator[tuple[str | None, Usage, bool]]:
        """The model, what was used, and whether that is all; as the sum of its calls, else as told at its end."""
        for usage in self.calls.values():
            yield None, usage, True
        for tool_call, told in self.results.items():
            usage = partition(told.counters, how).usage
            if tool_call not in self.calls and usage.total:
                yield told.model, usage, told.complete
