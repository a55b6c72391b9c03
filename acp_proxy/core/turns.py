"""A turn while it is open: what passed during it, as counts only. Nothing here keeps a word of what was said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from acp_proxy.core.acp import OUTPUT_UPDATES, THOUGHT_UPDATES, TOOL_UPDATES
from acp_proxy.core.events import Turn, TurnEnded

if TYPE_CHECKING:
    from acp_proxy.core.acp import Ending

_TOOLS = 4096  # tool calls of one turn that are told apart; more are counted where they are announced


class OpenTurn:
    """A prompt, or work without one, until it ends. In v2 a prompt may wait first: it is open, but not started."""

    __slots__ = (
        "_announced",
        "_output",
        "_since_report",
        "_thought",
        "_tool",
        "_tools",
        "_updates",
        "accepted",
        "turn",
    )

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.accepted = False  # v2: the agent has taken the prompt in
        self._updates = 0
        self._announced = 0
        self._tools: dict[str, tuple[int, int]] = {}  # longest input and output seen, by tool call
        self._output = self._thought = self._tool = 0
        self._since_report = 0

    def accept(self, message_id: str | None) -> None:
        self.accepted = True
        if message_id is not None:
            self.turn = replace(self.turn, message_id=message_id)

    def count(self, kind: str, chars: int) -> None:
        """One update of this kind with so many characters."""
        self._updates += 1
        if kind in OUTPUT_UPDATES:
            self._output += chars
        elif kind in THOUGHT_UPDATES:
            self._thought += chars
        elif kind in TOOL_UPDATES:
            self._tool += chars
            self._announced += kind == "tool_call"
        else:
            return
        self._since_report += chars

    def count_tool(self, kind: str, call: str | None, input_chars: int, output_chars: int) -> None:
        """The same for an update that names its tool call: what it repeats of the same call counts once."""
        if call is None or (call not in self._tools and len(self._tools) >= _TOOLS):
            self.count(kind, input_chars + output_chars)
            return
        known_input, known_output = self._tools.get(call, (0, 0))
        longest = max(known_input, input_chars), max(known_output, output_chars)
        self._tools[call] = longest
        self.count(kind, sum(longest) - known_input - known_output)

    def saw_tool(self, call: str) -> None:
        """A tool call that shows only in a request for permission, as some agents have it."""
        if len(self._tools) < _TOOLS:
            self._tools.setdefault(call, (0, 0))

    def reported(self) -> None:
        """The agent has said how full its context is: what follows is counted from here."""
        self._since_report = 0

    def ended(self, at: int, ending: Ending) -> TurnEnded:
        return TurnEnded(
            at,
            self.turn.session,
            self.turn,
            ending.stop_reason,
            counters=ending.counters,
            quota=ending.quota,
            model_usage=ending.model_usage,
            meta=ending.meta,
            updates=self._updates,
            tool_calls=max(self._announced, len(self._tools)),
            output_chars=self._output,
            thought_chars=self._thought,
            tool_chars=self._tool,
            chars_since_report=self._since_report,
        )
