"""Tokens as a disjoint partition: every token of a model call is in exactly one of five counters.

`Counters` are what agents report; how they map to the partition is in `core/meter/counters.py`, nothing here knows an
agent.
"""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True):
    """Tokens of one or more model calls; counts, never negative.

    `input` is uncached input, `output` visible output; `thought` stands beside `output`, not inside it.
    """

    input: int = 0
    cached_read: int = 0
    cached_write: int = 0
    output: int = 0
    thought: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cached_read + self.cached_write + self.output + self.thought

    @property
    def prompt(self) -> int:
        """Everything that was sent to the model, cached or not."""
        return self.input + self.cached_read + self.cached_write

    @property
    def completion(self) -> int:
        """Everything that the model wrote, thinking included."""
        return self.output + self.thought

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached_read + other.cached_read,
            self.cached_write + other.cached_write,
            self.output + other.output,
            self.thought + other.thought,
        )

    def minus(self, other: Usage) -> Usage:
        """The difference, each counter at least 0."""
        return Usage(
            max(0, self.input - other.input),
            max(0, self.cached_read - other.cached_read),
            max(0, self.cached_write - other.cached_write),
            max(0, self.output - other.output),
            max(0, self.thought - other.thought),
        )

    def covers(self, other: Usage) -> bool:
        """Whether no counter is below the other's, as it is for a later state of the same cumulative counter."""
        return (
            self.input >= other.input
            and self.cached_read >= other.cached_read
            and self.cached_write >= other.cached_write
            and self.output >= other.output
            and self.thought >= other.thought
        )

    def to_openai(self) -> dict[str, int]:
        """The three counters of OpenAI's `usage` object; cached tokens count as prompt, thinking as completion."""
        return {"prompt_tokens": self.prompt, "completion_tokens": self.completion, "total_tokens": self.total}


NOTHING = Usage()


class Counters(Struct, frozen=True):
    """Token counters as one message carried them; None where a field was absent or malformed.

    They overlap in ways that differ by agent: this is not a partition, `Usage` is.
    """

    input: int | None = None
    output: int | None = None
    total: int | None = None
    thought: int | None = None
    cached_read: int | None = None
    cached_write: int | None = None
