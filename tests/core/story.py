"""Tells a `Meter` a story, event by event, and keeps the rows that it makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Counters,
    Event,
    Implementation,
    Initialized,
    Opening,
    SessionClosed,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    Turn,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.meter import Meter
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage
from harness.prices import PRICES as PRICES
from harness.prices import FixedPrices as FixedPrices

CLAUDE = ("@agentclientprotocol/claude-agent-acp", "0.100.0")
CLAUDE_049 = ("@agentclientprotocol/claude-agent-acp", "0.49.0")
CLINE = ("cline", "3.0.65")
CODEX = ("@agentclientprotocol/codex-acp", "2.6.0")
COPILOT = ("Copilot", "1.0.102")
CROW = ("crow-cli", "0.1.48")
FAST = ("fast-agent-acp", "0.10.46")
AGENTPOOL = ("agentpool", "2.9.18")
BOX = ("box-agent", "0.9.7")
GEMINI = ("gemini-cli", "0.61.0")
GLM = ("glm-acp-agent", "1.0.0")
GOOSE = ("goose", "1.52.0")
HERMES = ("hermes-agent", "0.19.0")
KIMI = ("Kimi Code CLI", "2.1.0")
NANOCODER = ("nanocoder", "1.30.0")
NOOA = ("nooa-acp", "0.0.10")
OPENCODE = ("OpenCode", "1.18.33")
OPENHANDS = ("OpenHands CLI ACP Agent", "1.16.0")
QWEN = ("qwen-code", "0.24.4")
VIBE = ("@mistralai/mistral-vibe", "3.0.2")
ZED_CLAUDE = ("@zed-industries/claude-agent-acp", "0.23.1")
ZED_CODEX = ("codex-acp", "0.16.0")
UNKNOWN_AGENT = ("my-agent", "1.0")


def usd(text: str) -> Money:
    return Money.of(Decimal(text), "USD")


class LongContext(FixedPrices, frozen=True):
    """Twice the price for a request of more than 200,000 tokens."""

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        priced = FixedPrices.price(self, model, usage, at)
        if priced.cost is None or context is None or context <= 200_000:
            return priced
        return replace(priced, cost=priced.cost.plus(priced.cost))


class Story:
    """One connection. Time is the number of the event in seconds, sessions are called "s" unless said."""

    def __init__(
        self,
        agent: tuple[str, str] = UNKNOWN_AGENT,
        prices: FixedPrices = PRICES,
        *,
        profiles: Mapping[str, ProfileOverride] | None = None,
        estimate: bool = True,
        agent_name: str | None = None,
    ) -> None:
        self._numbers = itertools.count(1)
        self.meter = Meter(
            prices, lambda at: self._name("row"), profiles=profiles or {}, estimate=estimate, agent_name=agent_name
        )
        self.at = 0
        self.events: list[Event] = []
        self.tell(Initialized(self.now(), 1, Implementation(), Implementation(*agent), False))

    def _name(self, what: str) -> str:
        return f"{what}{next(self._numbers)}"

    def now(self) -> int:
        self.at += 1
        return self.at * 1_000_000_000

    def tell(self, event: Event) -> list[Entry]:
        """The rows that follow from an event."""
        events = self.meter.on_event(event)
        self.events += events
        return [event.entry for event in events if isinstance(event, TurnMetered)]

    def open(
        self, how: Opening = "new", session: str = "s", *, model: str | None = None, parent: str | None = None
    ) -> None:
        if how != "new":
            self.tell(SessionRequested(self.now(), how, parent or session))
        self.tell(SessionOpened(self.now(), how, session, parent, model=model))

    def restore(
        self, state: SessionState | None, session: str = "s", parent: str | None = None, *, again: bool = False
    ) -> list[Entry]:
        return self.tell(SessionRestored(self.now(), session, state, parent, again))

    def close(self, session: str = "s") -> None:
        self.tell(SessionClosed(self.now(), session))

    def begin(self, session: str = "s", *, chars: int = 0) -> Turn:
        turn = Turn(self._name("turn"), session, "turn", self.now(), chars)
        self.tell(TurnStarted(turn.started_at, session, turn))
        return turn

    def report(
        self,
        turn: Turn | None = None,
        *,
        used: int | None = None,
        size: int | None = None,
        cost: Money | str | None = None,
        meta: Mapping[str, Any] | None = None,
        session: str = "s",
        child: str | None = None,
    ) -> list[Entry]:
        """A `usage_update`."""
        money = usd(cost) if isinstance(cost, str) else cost
        where = turn.session if turn else session
        return self.tell(UsageReported(self.now(), where, turn, used, size, money, meta=meta or {}, child=child))

    def update(
        self,
        turn: Turn | None,
        meta: Mapping[str, Any],
        fields: Mapping[str, Any] | None = None,
        *,
        replayed: bool = False,
        session: str = "s",
    ) -> list[Entry]:
        """An update with words of the agent's own."""
        return self.tell(
            UpdateSeen(self.now(), session, turn, "agent_message_chunk", meta, fields or {}, replayed=replayed)
        )

    def end(self, turn: Turn, counters: Counters | None = None, *, stop: str = "end_turn", **rest: Any) -> list[Entry]:
        rest.setdefault("updates", 1)
        return self.tell(TurnEnded(self.now(), turn.session, turn, stop, counters, **rest))

    def turn(
        self, counters: Counters | None = None, *, cost: str | None = None, used: int | None = None, **rest: Any
    ) -> Entry:
        """A whole turn; its own row."""
        turn = self.begin(rest.pop("session", "s"), chars=rest.pop("chars", 0))
        if cost is not None or used is not None:
            self.report(turn, used=used, size=200_000, cost=cost)
        return self.end(turn, counters, **rest)[-1]

    @property
    def rows(self) -> list[Entry]:
        return [event.entry for event in self.events if isinstance(event, TurnMetered)]

    @property
    def metered(self) -> TurnMetered:
        """The last row, with what is known of its session."""
        return [event for event in self.events if isinstance(event, TurnMetered)][-1]

    @property
    def changes(self) -> list[ContextChanged]:
        return [event for event in self.events if isinstance(event, ContextChanged)]

    def booked(self, session: str = "s", currency: str = "USD") -> str:
        """The cost of all rows of a session."""
        rows = [row for row in self.rows if row.session == session]
        costs = [cost for row in rows for cost in row.costs if cost.currency == currency]
        return Money(sum(cost.nano for cost in costs), currency).text


def disjoint(input: int, read: int = 0, write: int = 0, output: int = 0) -> Counters:
    """Counters as claude and codex send them."""
    return Counters(input, output, input + read + write + output, None, read, write)


def inclusive(input: int, output: int, read: int | None = None, thought: int | None = None) -> Counters:
    """Counters whose input holds the cached part, and whose output holds thinking."""
    return Counters(input, output, input + output, thought, read)


def qwen_call(input: int, output: int, read: int = 0, parent: str | None = None) -> dict[str, object]:
    usage = {"inputTokens": input, "outputTokens": output, "totalTokens": input + output, "cachedReadTokens": read}
    return {"usage": usage} | ({"parentToolCallId": parent} if parent else {})


def codebuddy_call(prompt: int, output: int, cached: int = 0) -> dict[str, object]:
    """What CodeBuddy adds to a `usage_update` once a call has ended."""
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"codebuddy.ai/requestId": "request", "usage": usage | details}


CALL = disjoint(1100, 5010, 301, 201)  # 0.010927 by PRICES
MODEL = {"_claude/model": "claude-opus-5-5"}


def known(cost: str | None = None, agent_cost: str | None = None) -> SessionState:
    """A session that the ledger knows."""
    return SessionState(
        costs=(usd(cost),) if cost else (), agent_cost=usd(agent_cost) if agent_cost else None, context_used=7000
    )


def openhands(input: int, output: int, read: int = 0, cost: object = None) -> dict[str, object]:
    metrics = {"input_tokens": input, "output_tokens": output, "cache_read_tokens": read, "cost": cost}
    return {"field_meta": {"openhands.dev/metrics": metrics}}
