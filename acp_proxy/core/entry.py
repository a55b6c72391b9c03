"""The row of the ledger: usage and cost of one turn, and the state of its session after it.

Only values: the meter creates them, ledgers store them, reports read them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.core.money import Money, summed
from acp_proxy.core.scope import Subject
from acp_proxy.core.usage import Counters, Usage

Kind = Literal["turn", "autonomous", "subagent", "compaction", "side", "call"]  # the last: from an agent's own files
UsageSource = Literal["agent", "partial", "estimated", "none"]
Billing = Literal["plan", "tokens"]  # of what the user pays for: a seat, or what is used
CostSource = Literal["agent", "computed", "estimated", "parent", "unknown"]


COST_TOLD = "a cost by the agent itself"
"""In the detail of a row whose cost is an estimate only because it is not certain from where the agent counted."""


IMPORT = "acp-proxy import"
"""The client of rows that are from an agent's own files, in place of an editor's name: a relay's rows never have it."""


class UsageLine(Struct, frozen=True):
    """The usage of one model in a turn. An unknown `cost` is None, never 0."""

    model: str | None  # as the agent named it; None when it never did
    usage: Usage
    cost: Money | None = None
    price_row: str | None = None  # the catalog row that priced it, e.g. "anthropic/claude-opus-5-5"


class ToolCall(Struct, frozen=True, array_like=True):
    """One call of a tool, as updates tell of it: no name, no argument. Times are milliseconds; None is unknown."""

    kind: str  # one of `TOOL_KINDS`
    started: int  # after the turn's start
    took: int | None = None
    outcome: Literal["completed", "failed"] | None = None


class ToolSum(Struct, frozen=True, array_like=True):
    """All calls of one kind in a turn, also those that are not kept one by one. `took` is milliseconds."""

    kind: str
    count: int
    failed: int
    took: int


class Work(Struct, frozen=True):
    """What is known of a turn beside its usage. `parent` are the ids of an editor's span: 32 hex digits, "-", 16."""

    parent: str | None = None
    calls: tuple[ToolCall, ...] = ()  # the first `MOST_CALLS`
    sums: tuple[ToolSum, ...] = ()
    busy: int = 0  # milliseconds in which at least one tool ran, and nobody was asked for permission
    waited: int = 0  # milliseconds in which somebody was


TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
MOST_CALLS = 64


class Entry(Struct, frozen=True):
    """One row. Times are Unix time in nanoseconds; `id` is a UUIDv7 made when the turn was admitted."""

    id: str
    session: str  # the ACP session id
    kind: Kind
    started_at: int
    ended_at: int
    stop_reason: str | None
    lines: tuple[UsageLine, ...]  # at least one; one per model
    usage_source: UsageSource
    cost_source: CostSource
    detail: str = ""  # why a source is what it is, for `doctor` and the curious; never content of the session
    message_id: str | None = None
    context_used: int | None = None  # tokens
    context_size: int | None = None
    work: Work | None = None  # read back by `Exports.work` alone

    @property
    def usage(self) -> Usage:
        if len(self.lines) == 1:  # as nearly always: reports ask for it a million times
            return self.lines[0].usage
        return sum((line.usage for line in self.lines), Usage())

    @property
    def costs(self) -> tuple[Money, ...]:
        if len(self.lines) == 1:
            return () if self.lines[0].cost is None else (self.lines[0].cost,)
        return summed(line.cost for line in self.lines if line.cost is not None)

    @property
    def unpriced(self) -> bool:
        """Whether tokens of this row have no known price (a subagent's cost is in its parent's row)."""
        if self.cost_source == "parent":
            return False
        if len(self.lines) == 1:
            return self.lines[0].cost is None and self.lines[0].usage.total > 0
        return any(line.cost is None and line.usage.total for line in self.lines)

    @property
    def cost_at_least(self) -> bool:
        """Whether `costs` miss something: a price, or uncounted tokens that no cost of the agent covers."""
        return self.cost_untold or self.unpriced

    @property
    def usage_untold(self) -> bool:
        """Whether its tokens are a lower bound, which may be 0."""
        return self.usage_source in ("partial", "none")

    @property
    def cost_untold(self) -> bool:
        """Whether tokens may be missing that its cost does not cover."""
        return self.usage_untold and self.cost_source not in ("agent", "parent")

    @property
    def model(self) -> str | None:
        """The model that did most of the work."""
        return max(self.lines, key=lambda line: line.usage.total).model if self.lines else None


class SessionState(Struct, frozen=True):
    """The state that outlives an agent process: baselines of its counters, and figures for a reconnecting client."""

    context_used: int | None = None
    context_size: int | None = None
    context_estimated: bool = False
    costs: tuple[Money, ...] = ()  # booked for this session so far, one per currency
    agent_cost: Money | None = None  # the last cumulative cost that the agent itself reported
    counters: Counters | None = None  # the last cumulative token counters that the agent reported
    model: str | None = None
    title: str | None = None
    presumed: tuple[Money, ...] = ()  # of `costs` what is an estimate, or was held, since the agent told its own
    from_zero: bool = False  # its agent's cost began at 0 where rows see it, and was not told yet
    titled_at: int | None = None  # when its title was told, Unix ns; None: with the row


class Origin(Struct, frozen=True):
    """The dimensions that all rows of one proxy share: user, team, machine and so on."""

    organisation: str
    user: str
    team: str | None
    project: str | None
    host: str
    agent: str
    agent_version: str | None
    client: str | None
    billing: Billing | None = None  # at the time of the row; None is unknown

    def subject(self, model: str | None = None, session: str | None = None, process: str | None = None) -> Subject:
        """The subject of budgets for rows of this origin; `model` is a concrete one."""
        who = (self.organisation, self.user, self.team, self.project, self.host, self.agent)
        return Subject(*who, model, session, process, self.billing)
