"""The profile of an agent as a value: how it counts, and the peculiarities of its counters, cost and contexts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.core.agents import InputCounts, UsageScope

Thinking = Literal["inside", "beside", "either", "untold"]
AfterFailure = Literal["its own", "repeats", "late"]
Restart = Literal["process", "model", "command", "close"]
CostCounter = Literal["carried", "restarts", "turn", "unknown", "none"]
CostMove = Literal["kill", "clear", "model"]
Comes = Literal["in turn", "each call", "after turn", "never"]


class Tokens(Struct, frozen=True):
    """The scope of a usage object, and when it has which values.

    `scope`: the turn, the session so far, only the last model call, or each call by itself; `none` when there is no
    such object. It names the reader in `core/meter/readers`.
    """

    scope: UsageScope
    often_silent: bool = False  # it tells what its model's provider tells, and that may be nothing, in all turns
    after_failure: AfterFailure = "its own"  # a turn that failed, or the next: the usage of the one before, or of both
    names_chosen: bool = False  # its rows name the model that was chosen last, also when the turn ran on another
    restarts: frozenset[Restart] = frozenset()  # scope session: with these, of which commands are only seen as text
    message_a_call: bool = False  # scope last_call: each call that says something does so in a message with an own id


class Overlap(Struct, frozen=True):
    """Which token counters include which others."""

    input: InputCounts | None = None  # None: only an identity of the total can tell
    decided: bool = False  # an identity of the total does not overrule `input`: the user's word, or a wrong total
    thinking: Thinking = "inside"  # of output; `either`: inside with some providers, and beside it in the total of all
    hides_cache: bool = False  # how much of the input was cached is never told
    known: bool = True  # how the agent counts is in the table, or the user's word


class Cost(Struct, frozen=True):
    """The meaning of an agent's own cost, and when it changes without a call.

    `counter`: whether the cumulative cost goes on where it was when a session is loaded in a new process; of `unknown`
    only its figures can tell. `turn` is no cumulative one.
    """

    counter: CostCounter = "none"
    moves: frozenset[CostMove] = frozenset()  # older after a kill; 0 where a `used` of 0 clears; by the chosen model
    fork_inherits: bool | None = False  # a fork's cost begins with its parent's; None: it may, and so may its counters
    shared: bool = False  # each process tells what all of them spent on a session
    at_end: bool = False  # it comes when all work of the turn is done


class Context(Struct, frozen=True):
    """The meaning of `used` in a `usage_update`: a context, whose window is `size`."""

    comes: Comes = "in turn"  # `each call`: a new one for each, before the turn ends; `never`: it is something else
    holds_output: bool = False  # what the call wrote, not only its prompt
    a_call: int = 0  # so many different ones are told of one call at most, meanwhile; 0: they prove no call


class Profile(Struct, frozen=True):
    """How one agent counts."""

    tokens: Tokens
    overlap: Overlap = Overlap()
    cost: Cost = Cost()
    context: Context = Context()
    unreported: str = ""  # paid model calls that never show in its reports, for people

    @property
    def known(self) -> bool:
        return self.overlap.known


UNKNOWN = Profile(Tokens("turn"), Overlap(known=False), Cost("unknown", fork_inherits=None))
