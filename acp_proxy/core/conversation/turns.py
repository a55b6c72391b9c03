"""Open turns, and counts of what passes in a session while they are open; never content."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.acp import OUTPUT_UPDATES, THOUGHT_UPDATES, TOOL_UPDATES
from acp_proxy.core.conversation.tool_times import ToolTimes
from acp_proxy.core.events import Turn, TurnEnded

if TYPE_CHECKING:
    from acp_proxy.core.acp import Ending

Elapsed = Callable[[], int]
"""Nanoseconds since some moment, by a clock that cannot be set."""

_CALLS = 1024  # tool calls of a session that are told apart, the latest ones


class Counts(Struct, frozen=True):
    """The counts of a session up to a moment, or between two."""

    updates: int = 0
    announced: int = 0  # tool calls that an update of their own began
    named: int = 0  # tool calls with an id of their own; some agents never announce them
    output: int = 0  # characters, like the next two
    thought: int = 0
    tool: int = 0
    chars: int = 0  # all of them
    messages: int = 0  # to the user, as their ids tell

    def since(self, before: Counts) -> Counts:
        return Counts(
            self.updates - before.updates,
            self.announced - before.announced,
            self.named - before.named,
            self.output - before.output,
            self.thought - before.thought,
            self.tool - before.tool,
            self.chars - before.chars,
            self.messages - before.messages,
        )

    def plus(self, more: Counts) -> Counts:
        return self.since(Counts().since(more))


class SessionCounts:
    """Everything that was counted in a session so far. A turn is the difference between two moments."""

    __slots__ = (
        "_announced",
        "_calls",
        "_message",
        "_messages",
        "_named",
        "_output",
        "_thought",
        "_tool",
        "_updates",
        "reported",
        "tools",
    )

    def __init__(self) -> None:
        self._updates = self._announced = self._named = 0
        self._message: Any = None  # the id of the last one to the user
        self._messages = 0
        self._output = self._thought = self._tool = 0
        self._calls: dict[str, tuple[int, int]] = {}  # characters of input and of output, by tool call
        self.tools = ToolTimes()
        self.reported = Counts()  # when the agent last said how full its context is

    def now(self) -> Counts:
        chars = self._output + self._thought + self._tool
        return Counts(
            self._updates,
            self._announced,
            self._named,
            self._output,
            self._thought,
            self._tool,
            chars,
            self._messages,
        )

    def count(self, kind: str, chars: int, updates: int = 1, message: Any = None) -> None:
        """Updates of this kind, with so many characters in all; `message` is the id of that which they are part of."""
        self._updates += updates
        if kind in OUTPUT_UPDATES:
            self._output += chars
            if message is not None and message != self._message:
                self._message = message
                self._messages += 1
        elif kind in THOUGHT_UPDATES:
            self._thought += chars
        elif kind in TOOL_UPDATES:
            self._tool += chars
            self._announced += updates if kind == "tool_call" else 0

    def count_tool(self, kind: str, call: str | None, input_chars: int, output_chars: int) -> None:
        """`count` where the tool call is named: what several updates repeat of one call counts once."""
        if call is None:
            self.count(kind, input_chars + output_chars)
            return
        self.saw_tool(call)
        known_input, known_output = self._calls[call]
        longest = max(known_input, input_chars), max(known_output, output_chars)
        self._calls[call] = longest
        self.count(kind, sum(longest) - known_input - known_output)

    def knows_tool(self, call: str) -> bool:
        return call in self._calls

    def saw_tool(self, call: str) -> None:
        """A tool call, though perhaps only a request for permission names it."""
        if call in self._calls:
            return
        self._named += 1
        self._calls[call] = (0, 0)
        if len(self._calls) > _CALLS:
            del self._calls[next(iter(self._calls))]


class OpenTurn:
    """A prompt, or work without one, until it ends. In v2 a prompt may wait first: it is open, but not started."""

    __slots__ = ("_began", "_elapsed", "accepted", "overtaken", "since", "turn")

    def __init__(self, turn: Turn, elapsed: Elapsed | None = None) -> None:
        self.turn = turn
        self._elapsed = elapsed
        self._began = 0 if elapsed is None else elapsed()
        self.accepted = False  # v2: the agent has taken the prompt in
        self.overtaken = False  # a later one was done first: some agents never answer it
        self.since = Counts()  # when the agent began to work on it, as far as can be told

    def accept(self, message_id: str | None) -> None:
        self.accepted = True
        if message_id is not None:
            self.turn = replace(self.turn, message_id=message_id)

    def worked(self, counted: SessionCounts) -> bool:
        """Whether anything was said or done since it began."""
        counts = counted.now().since(self.since)
        return bool(counts.chars or counts.named or counts.announced)

    def ended(self, at: int, ending: Ending, counted: SessionCounts, *, behind: bool, owed: bool) -> TurnEnded:
        """`behind` an older turn that goes on, it has done nothing itself; `owed` an answer that may still come."""
        now = counted.now()
        counts = Counts() if behind else now.since(self.since)
        return TurnEnded(
            at,
            self.turn.session,
            self.turn,
            ending.stop_reason,
            counters=ending.counters,
            quota=ending.quota,
            model_usage=ending.model_usage,
            meta=ending.meta,
            updates=counts.updates,
            tool_calls=max(counts.announced, counts.named),
            messages=counts.messages,
            output_chars=counts.output,
            thought_chars=counts.thought,
            tool_chars=counts.tool,
            chars_since_report=min(counts.chars, now.chars - counted.reported.chars),
            behind=behind,
            owed=owed,
            work=None if behind else counted.tools.taken(self.turn.parent, self.turn.started_at, at),
            duration=None if self._elapsed is None else self._elapsed() - self._began,
        )
