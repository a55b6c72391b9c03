"""Events on the wire, in past tense: facts that the conversation reads from messages, and the meter's results.

An event never carries content of a session: no prompt, answer, path of a file, or tool argument, only counts of
characters. `meta` is the `_meta` object of the message; only `dialects` and `plan_windows` of `core/meter` look inside.
`at` is Unix time in nanoseconds.

Structs, not dataclasses: making two dozen of those took 50 ms of every start.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from acp_proxy.core.entry import CostSource, Entry, SessionState, UsageLine, Work
from acp_proxy.core.money import Money
from acp_proxy.core.plans import PlanWindow
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.core.usage import Counters as Counters

Meta = Mapping[str, Any]
_SLEW = 10**9  # ns by which two clocks may differ over a turn without one of them being set
Opening = Literal["new", "load", "resume", "fork"]


class Side(enum.Enum):
    """The sender of a message."""

    CLIENT = "client"
    AGENT = "agent"

    __hash__ = object.__hash__  # Enum's own is a Python function, and sides are keys on the relay's path


class ModelCounters(Struct, frozen=True):
    """One row of `_meta.quota.model_usage`."""

    model: str
    counters: Counters


class Implementation(Struct, frozen=True):
    """`clientInfo` or `agentInfo` (v2: `info`)."""

    name: str | None = None
    version: str | None = None
    title: str | None = None


class Initialized(Struct, frozen=True):
    """The response to `initialize` came."""

    at: int
    protocol_version: int
    client: Implementation
    agent: Implementation
    client_notices: bool  # the client shows `notice` updates: v2 always, v1 when it advertised session.notices
    client_forms: bool = False  # it shows forms (`elicitation/create`), as it advertised


class SessionRequested(Struct, frozen=True):
    """A client asked to load, resume or fork a session: the ledger's state of it will be needed soon."""

    at: int
    how: Opening
    session: str  # for a fork, the parent


class SessionOpened(Struct, frozen=True):
    """The response that opens a session came, without error."""

    at: int
    how: Opening
    session: str
    parent: str | None = None  # of a fork
    cwd: str | None = None
    model: str | None = None


class SessionRestored(Struct, frozen=True):
    """The ledger returned its state of a session. `state` is None for a session without rows."""

    at: int
    session: str
    state: SessionState | None
    parent: str | None = None  # of a fork: the state is the parent's
    again: bool = False  # of a session that is used here: another process may have used it, too


class CostsCorrected(Struct, frozen=True):
    """More became known of a session's rows: it has cost so much more, or less, than was booked."""

    at: int
    session: str
    by: tuple[Money, ...]


class SessionClosed(Struct, frozen=True):
    """The client closed the session. Follows the ends of its turns, and `owed` answers to their prompts."""

    at: int
    session: str
    deleted: bool = False


class ModelSelected(Struct, frozen=True):
    """A session's model, by config option, `models` or a `session/set_model` that succeeded. Often an alias."""

    at: int
    session: str
    model: str
    again: bool = False  # a `session/set_model` to the one that it had


class SessionInfoChanged(Struct, frozen=True):
    """The merged state after a `session_info_update`, or an entry of `session/list` for a known session."""

    at: int
    session: str
    title: str | None
    updated_at: str | None
    meta: Meta
    cleared: bool = False  # the session itself says that it has no title (any more)
    titled: bool = True  # this is news of its title; else it is what was said before


class ChildSessionSeen(Struct, frozen=True):
    """A `subagent_update` named a child session on this connection."""

    at: int
    session: str  # the root
    child: str


class Turn(Struct, frozen=True):
    """An open turn. v1: a prompt until its response; v2: running until idle."""

    id: str  # UUIDv7
    session: str
    kind: Literal["turn", "autonomous"]
    started_at: int
    prompt_chars: int = 0
    message_id: str | None = None
    parent: str | None = None  # the editor's span, as `Work` has it


class TurnStarted(Struct, frozen=True):
    at: int
    session: str
    turn: Turn


class PromptDropped(Struct, frozen=True):
    """A prompt whose answer is no longer awaited: its work, if any, belongs to another prompt.

    v2: it went into a turn that ran, or was refused while one did. v1: a later prompt has overtaken it; its turn ends
    all the same, with its answer or with the connection.
    """

    at: int
    session: str
    turn: Turn


class EarlierReport(Struct, frozen=True):
    """A `usage_update` that another one followed within milliseconds."""

    used: int
    cost: Money | None


class UsageReported(Struct, frozen=True):
    """A `usage_update`. Fields are None where absent or malformed.

    While a turn runs, several in a row may come as one event: the last of them, which says all that still holds, with
    what those before it told in `earlier`.
    """

    at: int
    session: str  # the root session; `child` tells which of its subagents spoke
    turn: Turn | None  # the oldest open turn, None between turns
    used: int | None
    size: int | None
    cost: Money | None
    cost_cleared: bool = False  # v2: `cost` was null
    meta: Meta = field(default_factory=dict)
    child: str | None = None
    earlier: tuple[EarlierReport, ...] = ()
    replayed: bool = False  # before the response to a load, resume or fork


class UpdateSeen(Struct, frozen=True):
    """Any other update that carries a `_meta` (or tool output that names usage): some agents report usage there."""

    at: int
    session: str
    turn: Turn | None
    update: str  # the value of `sessionUpdate`
    meta: Meta
    fields: Meta  # the update itself, for `core/meter/dialects.py`; never kept, never logged
    replayed: bool = False  # between a load's request and its response: history, not new work
    child: str | None = None


class Compacted(Struct, frozen=True):
    """A `compaction_update`, with its `status`."""

    at: int
    session: str
    turn: Turn | None
    status: str | None = None


class TurnEnded(Struct, frozen=True):
    """The turn's last message. Counters are as reported: the meter interprets them."""

    at: int
    session: str
    turn: Turn
    stop_reason: str  # ACP's, or "error" (JSON-RPC error), "crashed" (agent gone), "disconnected" (client gone)
    counters: Counters | None = None  # `usage` of the response or of the idle state
    quota: Counters | None = None  # `_meta.quota.token_count`
    model_usage: tuple[ModelCounters, ...] = ()  # `_meta.quota.model_usage`
    meta: Meta = field(default_factory=dict)
    updates: int = 0  # session updates since the prompt
    tool_calls: int = 0
    messages: int = 0  # to the user, as far as the agent gives them ids
    output_chars: int = 0  # text of messages to the user
    thought_chars: int = 0
    tool_chars: int = 0  # tool input and output
    chars_since_report: int = 0  # all of them since the last `usage_update`
    behind: bool = False  # an older turn of the session goes on: what was reported meanwhile is that one's
    owed: bool = False  # the agent has let go of its session; the answer to the prompt may still come
    work: Work | None = None  # None where nothing is known of it
    duration: int | None = None  # ns by a clock that cannot be set, unlike that of `at`; None where there is none

    @property
    def started_at(self) -> int:
        """Unix ns, as when the turn was admitted: budgets hold for that window. A clock that was set back is right now:
        the turn began as long ago as it took.
        """
        return self.turn.started_at if self.at >= self.turn.started_at else self.at - (self.duration or 0)

    @property
    def ended_at(self) -> int:
        """Unix ns; if the clock was set ahead during the turn, as long after its start as it took."""
        took = self.at - self.started_at
        if self.duration is None or abs(took - self.duration) <= _SLEW:
            return self.at
        return self.started_at + self.duration

    @property
    def most_calls(self) -> int:
        """Of the model, as far as calls show: one, and one after each tool call; or each message is of its own."""
        return max(self.tool_calls + 1, self.messages)


class AnsweredLate(Struct, frozen=True):
    """An `owed` answer arrived with the usage of its turn, which has ended and may have been booked in part."""

    at: int
    session: str
    turn: Turn
    counters: Counters


class PermissionRequested(Struct, frozen=True):
    at: int
    session: str
    request_id: Any  # as JSON decoded it


class PermissionAnswered(Struct, frozen=True):
    at: int
    session: str
    request_id: Any
    outcome: str | None


class ConnectionClosed(Struct, frozen=True):
    """One side is gone; every open turn has ended before this event."""

    at: int
    side: Side


class TurnMetered(Struct, frozen=True):
    """The meter's result for a turn (or work outside of one): the row to store, and the session's state after it."""

    at: int
    entry: Entry
    state: SessionState
    reported_usage: bool  # the agent itself sent a `usage_update` since the turn began
    reported_cost: bool  # ... with a cost


class PlanReported(Struct, frozen=True):
    """An agent reported the state of at least one window of the user's plan."""

    at: int
    session: str
    windows: tuple[PlanWindow, ...]


class TurnEnding(Struct, frozen=True):
    """The message that ends a turn has arrived, or its side is gone; earlier lines may not be accounted yet.

    What is sent to the agent from here on comes too late for this turn, and could only hit the next one. `session` is
    the one that the message names, None stands for all.
    """

    at: int
    session: str | None


class ToldSoFar(Struct, frozen=True):
    """A lower bound for the row of a running turn, from the tokens that its agent has reported so far."""

    lines: tuple[UsageLine, ...]
    cost_source: CostSource
    detail: str = ""


class ContextChanged(Struct, frozen=True):
    """A session's context or cost changed in mid-turn, or became known from the ledger."""

    at: int
    session: str
    state: SessionState
    restored: bool = False  # from the ledger
    lower_bound: Usage = NOTHING  # of what the turn that runs has used, by what the agent told meanwhile
    done: bool = False  # the agent tells this when all work of the turn is done
    told: ToldSoFar | None = None  # None where the agent tells no tokens in mid-turn
    left: tuple[str, ...] = ()  # models that the turn had before that of `state`


Event = (
    Initialized
    | SessionRequested
    | SessionOpened
    | SessionRestored
    | CostsCorrected
    | SessionClosed
    | ModelSelected
    | SessionInfoChanged
    | ChildSessionSeen
    | TurnStarted
    | PromptDropped
    | UsageReported
    | UpdateSeen
    | Compacted
    | TurnEnding
    | TurnEnded
    | AnsweredLate
    | PermissionRequested
    | PermissionAnswered
    | ConnectionClosed
    | TurnMetered
    | ContextChanged
    | PlanReported
)
