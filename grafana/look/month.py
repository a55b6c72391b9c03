"""A month of a team that does not exist: seeded, always the same, and in the ledger as real turns would be."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.core.budget import Account, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import IMPORT, CostSource, Kind, Origin, UsageLine, UsageSource
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row, captures
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.captures import Capture
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.sums.tallies import BOUNDS, NO_BOUND, Tally
from grafana.look.history import Happening
from harness.rows import row

SINCE = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
NOW = int(datetime(2026, 11, 20, 16, 0, tzinfo=UTC).timestamp())

CONFIG = """
[identity]
user = "lead"
team = "core"

[[budget]]
name = "company-month"
window = "month"
limit = { amount = "600", currency = "USD" }

[[budget]]
name = "core-month"
scope = { team = "core" }
window = "month"
limit = { amount = "200", currency = "USD" }

[[budget]]
name = "developer-daily"
per = "user"
window = "day"
limit = { amount = "9", currency = "USD" }

[[budget]]
name = "data-tokens"
scope = { team = "data" }
window = "rolling:24h"
mode = "shadow"
limit = { tokens = 9_000_000 }

[[notify]]
name = "alerts"
url = "https://hooks.example.com/alerts"
"""


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    models: tuple[str, ...]
    share: int  # of turns
    counts: UsageSource = "agent"
    prices: CostSource = "computed"
    currency: str = "USD"


AGENTS = (
    Agent(
        "@agentclientprotocol/claude-agent-acp",
        ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5"),
        50,
        prices="agent",
    ),
    Agent("@agentclientprotocol/codex-acp", ("gpt-5.5", "gpt-5-mini"), 27),
    Agent("gemini-cli", ("gemini-3.1-pro",), 13),
    Agent("copilot", ("gpt-5-mini",), 6, prices="agent", currency="credits"),
    Agent("goose", ("qwen3-coder-plus", "our-own-llama"), 4, counts="estimated", prices="estimated"),
)
TEAMS = {"core": ("ada", "bo", "cleo", "dev"), "web": ("eve", "finn", "gus"), "data": ("hana", "ivo"), None: ("jo",)}
AROUND = (("claude-code", "claude-sonnet-5", 40_000_000), ("gemini-cli", "gemini-3.1-pro", 6_000_000))
CLIENTS = ("Zed", "JetBrains", "Neovim")
PROCESSES = ("relay-1", "relay-2")


@dataclass(slots=True)
class Month:
    """`happenings` are what to do to the ledger, in order of time, from `since` until before `until` (Unix seconds)."""

    config: Config
    since: int = SINCE
    until: int = NOW
    catalog: Catalog = field(default_factory=Catalog)
    random: random.Random = field(default_factory=lambda: random.Random(20261101))  # noqa: S311  always the same
    _number: int = 0

    def happenings(self) -> Iterator[Happening]:
        yield Happening(self.since, self._reconciled)
        yield Happening(self.since, self._imported)
        for minute in range(self.since, self.until, 60):
            if self.random.random() < _turns_per_minute(minute):
                at = minute + self.random.randrange(60)
                yield Happening(at, self._turn(at))

    def _reconciled(self, ledger: BudgetLedger) -> None:
        """The bill of the month before, of which nine tenths were metered."""
        until = self.since * NANO
        since = until - 30 * 24 * 3600 * NANO
        bill = Capture("anthropic", since, until, until, 90_000_000, 82_000_000, "USD", 410 * NANO, 371 * NANO)
        ledger.tables.write(lambda run: captures.note(run, "default", bill))

    def _imported(self, ledger: BudgetLedger) -> None:
        """What went around the relays."""
        for number, (agent, model, tokens) in enumerate(AROUND):
            origin = Origin("default", "kim", None, "shop", "laptop", agent, "1.0", IMPORT)
            usage = Usage(input=tokens // 10, cached_read=tokens - tokens // 10)
            at = self.since * NANO
            call = row(
                UsageLine(model, usage, self.catalog.price(model, usage, at).cost, "a row"),
                id=f"0000000{number}-0000-8000-8000-000000000000",
                origin=origin,
                session=f"around-{agent}",
                at=at,
                took=0,
                kind="call",
                stop_reason=None,
            )
            ledger.append([call])

    def _turn(self, at: int) -> _Turn:
        self._number += 1
        chance = self.random
        agent = chance.choices(AGENTS, [each.share for each in AGENTS])[0]
        user, team = chance.choice([(user, team) for team, users in TEAMS.items() for user in users])
        client = CLIENTS[sum(map(ord, user)) % len(CLIENTS)]
        origin = Origin("default", user, team, "shop", "laptop", agent.name, "1.0", client)
        session = f"{user}-{agent.name}-{at // 7200}"
        return _Turn(self, f"{self._number:08x}-0000-7000-8000-000000000000", origin, session, at, agent)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Admitted by the budgets, relayed, and booked; or refused."""

    month: Month
    id: str
    origin: Origin
    session: str
    at: int
    agent: Agent

    def __call__(self, ledger: BudgetLedger) -> None:
        chance, started = self.month.random, self.at * NANO
        model = chance.choice(self.agent.models)
        accounts = self._accounts(model)
        opened = OpenTurn(self.id, self.origin, self.session, started, Owner.this(), model)
        sizes = [(account, HoldSize.of(account.budget)) for account in accounts]
        held = ledger.hold(opened, sizes, started, started + EXPIRY)
        if not held.admitted:
            ledger.outbox.count("default", "alerts", "sent")
            return
        ledger.append([self._row(model)])
        self._relayed(ledger)
        if "claude" in self.agent.name:
            ledger.note_plan(self.origin, [self._plan_window("five_hour", 5), self._plan_window("seven_day", 7 * 24)])
        if accounts and chance.random() < 0.004:
            ledger.count_decisions([(chance.choice(accounts), chance.choice(["cancel", "fail_open"]))])
        if accounts and chance.random() < 0.002:
            self._granted(ledger, accounts[-1])

    def _accounts(self, model: str) -> tuple[Account, ...]:
        subject = self.origin.subject(model, self.session, "run")
        return accounts_for(self.month.config.budgets, subject, self.at * NANO, ZoneInfo, self.id)

    def _plan_window(self, name: str, hours: int) -> PlanWindow:
        """Used evenly, nine tenths of it until its reset."""
        length = hours * 3600
        begun = self.at - self.at % length
        used = FULL * 9 * (self.at - begun) // (10 * length)
        return PlanWindow(name, used, "allowed", (begun + length) * NANO, None, self.at * NANO)

    def _granted(self, ledger: BudgetLedger, account: Account) -> None:
        budget, now = account.budget, self.at * NANO
        amount, day = account.limit // 5, 24 * 3600 * NANO
        ledger.grant(
            Grant(
                self.id,
                "default",
                budget.layer,
                budget.name,
                account.value,
                amount,
                account.unit,
                now,
                now + day,
                "lead",
                "",
            )
        )
        ledger.count_decisions([(account, "grant")])

    def _row(self, model: str) -> Row:
        chance = self.month.random
        kind: Kind = chance.choices(("turn", "autonomous", "compaction"), (93, 4, 3))[0]
        stop = chance.choices(("end_turn", "cancelled", "max_tokens", "refusal", "error"), (900, 62, 18, 6, 14))[0]
        size = self.month.catalog.window(model)
        window = min(size or 200_000, 400_000)
        used = int(window * min(1.0, chance.betavariate(1.6, 3.2) + 0.04))
        usage, counts = self._usage(used), self.agent.counts
        if chance.random() < 0.006:
            usage, counts = Usage(), "none"
        cost = self._cost(model, usage)
        prices = self.agent.prices if cost else "unknown"
        seconds = min(3000.0, chance.lognormvariate(3.4, 1.0))
        return row(
            UsageLine(model, usage, cost, "a row" if cost else None),
            id=self.id,
            origin=self.origin,
            session=self.session,
            at=self.at * NANO,
            took=int(seconds * NANO),
            kind=kind,
            stop_reason=stop if kind == "turn" else None,
            usage_source=counts,
            cost_source=prices,
            context_used=used if size else None,
            context_size=window if size else None,
        )

    def _usage(self, used: int) -> Usage:
        chance = self.month.random
        calls = 1 + int(chance.expovariate(0.35))
        new, written = int(chance.lognormvariate(7.6, 0.9)), int(chance.lognormvariate(6.2, 0.9)) * calls
        if self.agent.counts == "estimated":
            return Usage(input=new * 2, output=written)
        hits = chance.betavariate(8, 2)
        asked = used * calls
        read = int(asked * hits)
        stored = int((asked - read) * 0.3) if self.agent.prices == "agent" else 0
        return Usage(int((asked - read) * 0.2) + new, read, stored, written, written // 3)

    def _cost(self, model: str, usage: Usage) -> Money | None:
        if self.agent.currency != "USD":
            return Money(NANO if usage.total else 0, self.agent.currency)
        return self.month.catalog.price(model, usage, self.at * NANO).cost

    def _relayed(self, ledger: BudgetLedger) -> None:
        """What the relay of the turn reports."""
        chance = self.month.random
        counts = []
        for direction, most in (("client_to_agent", 8), ("agent_to_client", 600)):
            messages = chance.randint(2, most)
            counts.append(Tally("relay_messages", (direction,), 0, messages, 0))
            counts.append(Tally("relay_bytes", (direction,), 0, messages * chance.randint(150, 900), 0))
            counts += [
                _delay(direction, int(chance.lognormvariate(-9.6, 0.7) * NANO)) for _ in range(min(messages, 20))
            ]
        if chance.random() < 0.08:
            reason = chance.choices(("ok", "stopped", "failed", "signal"), (60, 30, 6, 4))[0]
            counts.append(Tally("agent_exits", (reason,), 0, 1, 0))
        if chance.random() < 0.002:
            counts.append(Tally("relay_errors", ("interceptor",), 0, 1, 0))
        process = chance.choice(PROCESSES)
        ledger.tallied.count_relayed("default", process, int(self.id[:8], 16), counts, self.at * NANO)


def scrape_times() -> Iterator[int]:
    """Just often enough for Prometheus to take series for uninterrupted, and each minute in the last hours."""
    recent = NOW - 7 * 3600
    yield from range(SINCE, recent, 290)
    yield from range(recent, NOW + 1, 60)


def _delay(direction: str, nano: int) -> Tally:
    slot = next((bound for bound in BOUNDS["relay_seconds"] if nano <= bound), NO_BOUND)
    return Tally("relay_seconds", (direction,), slot, 1, nano)


def _turns_per_minute(at: int) -> float:
    """Two humps on a working day; at night and at the weekend little."""
    day, hour = datetime.fromtimestamp(at, UTC), at % 86400 / 3600
    busy = 0.34 * math.exp(-(((hour - 10.2) / 1.9) ** 2)) + 0.4 * math.exp(-(((hour - 15) / 2.1) ** 2)) + 0.006
    return busy * (0.07 if day.weekday() > 4 else 1.0)
