"""Ten weeks of somebody's work as rows of a ledger, the same for the same `now`: agents, projects, prices, contexts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from acp_proxy.core.entry import CostSource, Kind, Origin, SessionState, UsageLine, UsageSource
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row
from harness.rows import row

SECOND = 10**9
DAY = 86_400 * SECOND
DAYS = 70

BUDGETS = """\
[identity]
user = "alice"
team = "core"

[[budget]]
name = "developer-daily"
per = "user"
window = "day"
limit = { amount = "4", currency = "USD" }

[[budget]]
name = "team-month"
scope = { team = "core" }
window = "month"
limit = { amount = "50", currency = "USD" }

[[budget]]
name = "copilot-credits"
scope = { agent = "Copilot" }
window = "month"
limit = { amount = "45", currency = "credits" }
mode = "warn"

[[budget]]
name = "opus-turns"
scope = { model = "claude-opus*" }
window = "month"
limit = { turns = 38 }
mode = "shadow"
"""


@dataclass(frozen=True, slots=True)
class Agent:
    """What one agent's turns look like. `rates` are nano-units a token of input, cached read, cached write, output."""

    name: str
    version: str
    client: str
    model: str
    size: int
    share: int  # of the sessions, out of all shares
    rates: tuple[int, int, int, int] | None
    currency: str = "USD"
    usage_source: UsageSource = "agent"
    cost_source: CostSource = "computed"


CLAUDE = Agent(
    "@agentclientprotocol/claude-agent-acp", "0.100.0", "zed", "claude-sonnet-5", 200_000, 9, (2000, 200, 2500, 10_000)
)
AGENTS = (
    CLAUDE,
    replace(CLAUDE, model="claude-opus-5-5", share=4, rates=(4000, 200, 5000, 20_000)),
    Agent("@agentclientprotocol/codex-acp", "2.6.0", "zed", "gpt-5.6-terra", 400_000, 5, (2000, 200, 0, 12_000)),
    Agent("gemini-cli", "0.61.0", "jetbrains", "gemini-3.8-flash", 1_000_000, 3, (300, 30, 0, 2500), "USD", "partial"),
    Agent("Copilot", "1.0.102", "copilot.vim", "claude-sonnet-5", 128_000, 2, (40_000, 4000, 0, 90_000), "credits"),
    Agent(
        "Kimi Code CLI", "2.1.0", "zed", "kimi-k3", 262_144, 2, (3000, 300, 0, 15_000), "USD", "estimated", "estimated"
    ),
    Agent("OpenCode", "1.18.33", "neovim", "house-gateway/coder-32b", 131_072, 1, None, "USD", "agent", "unknown"),
)
PROJECTS = ("payments-api", "payments-api", "web-shop", "web-shop", "infra", "docs", None)
TITLES = (
    "Fix the flaky checkout test", "Move sessions to PostgreSQL", "Explain the retry loop", "Rename invoices to bills",
    "Type the webhook handlers", "Why is the build slow?", "Add dark mode to the account page", "Review the migration",
    "Cut the image by half", "Find the leak in the importer", "Write the runbook for alerts",
    "Make search tolerate typos", "Port the cron jobs to timers", "Replace moment.js", "Trace the double charge", None,
)  # fmt: skip


def rows(now: int) -> list[Row]:
    """Work of the days before `now` (Unix ns), busy on weekdays; the last session ended a minute ago."""
    chance = random.Random(20261122)
    found = [row for day in range(DAYS, -1, -1) for row in _day(now - day * DAY, chance)]
    found += _session(now - 55 * 60 * SECOND, CLAUDE, "payments-api", "Untangle the order states", 14, chance)
    return [row for row in found if row.entry.ended_at <= now]


def _day(end: int, chance: random.Random) -> Iterator[Row]:
    weekend = (end // DAY + 4) % 7 in (0, 6)
    for _ in range(chance.randint(0, 1) if weekend else chance.randint(2, 6)):
        begin = end - chance.randint(90, 540) * 60 * SECOND
        agent = chance.choices(AGENTS, [agent.share for agent in AGENTS])[0]
        yield from _session(begin, agent, chance.choice(PROJECTS), chance.choice(TITLES), chance.randint(1, 9), chance)


def _session(
    begin: int, agent: Agent, project: str | None, title: str | None, turns: int, chance: random.Random
) -> Iterator[Row]:
    """Turns one after the other; each reads the context again, and where it is nearly full it is compacted."""
    origin = Origin("default", "alice", "core", project, "laptop", agent.name, agent.version, agent.client)
    session = f"{chance.getrandbits(64):016x}"
    at, used = begin, chance.randint(9_000, 24_000)
    for _ in range(turns):
        took = chance.randint(8, 260) * SECOND
        if used > agent.size * 0.92:
            yield _row(origin, session, at, 9 * SECOND, agent, Usage(input=400, cached_read=used, output=1800), 21_000,
                       title, chance, kind="compaction")  # fmt: skip
            at, used = at + 10 * SECOND, 21_000
        added, wrote, calls = chance.randint(1_500, 34_000), chance.randint(150, 5_200), chance.randint(1, 9)
        cached, fresh = used * calls, added // 8
        written = added - fresh if agent.rates and agent.rates[2] else 0
        usage = Usage(fresh if written else added, cached, written, wrote, wrote // 5)
        used = min(agent.size, used + added + wrote)
        yield _row(origin, session, at, took, agent, usage, used, title, chance)
        at += took + chance.randint(5, 90) * SECOND


def _row(
    origin: Origin, session: str, at: int, took: int, agent: Agent, usage: Usage, used: int, title: str | None,
    chance: random.Random, kind: Kind = "turn",
) -> Row:  # fmt: skip
    cost = None
    if agent.rates:
        amounts = (usage.input, usage.cached_read, usage.cached_write, usage.completion)
        cost = Money(sum(n * rate for n, rate in zip(amounts, agent.rates, strict=True)), agent.currency)
    return row(
        UsageLine(agent.model, usage, cost, f"made-up/{agent.model}" if cost else None),
        id=f"{at // 1_000_000:012x}"[:8] + f"-{chance.getrandbits(16):04x}-7000-8000-{chance.getrandbits(48):012x}",
        origin=origin,
        session=session,
        at=at,
        took=took,
        kind=kind,
        stop_reason="cancelled" if chance.random() < 0.03 else "end_turn",
        usage_source=agent.usage_source,
        cost_source=agent.cost_source,
        state=SessionState(context_used=used, context_size=agent.size, title=title),
        context_used=used,
        context_size=agent.size,
    )
