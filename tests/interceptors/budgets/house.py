"""A proxy with budgets between a pair of ends, with a real ledger in a file. Time is set by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import jsonschema
from msgspec.structs import replace

from acp_proxy.catalog import Catalog
from acp_proxy.core.budget import Budget, Limit, accounts_for
from acp_proxy.core.entry import Origin
from acp_proxy.core.money import Money
from acp_proxy.core.windows import Window
from acp_proxy.dispatch.accounting import Later
from acp_proxy.interceptors.budgets import Budgets, Rules
from acp_proxy.interceptors.budgets.plan_limits import PlanLimits
from acp_proxy.interceptors.plans import Plans
from acp_proxy.interceptors.recorder import Recorder
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger, Grant
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.system.ids import uuid7
from acp_proxy.text.plan_budgets import exceeded, refusal
from acp_proxy.text.times import UTC_ZONE, zone_info
from harness.rows import NOON
from tests.ends import SESSION, Ends, answer, prompt, request
from tests.ledger.warned import Warnings

ALICE = Origin("default", "alice", "core", "web", "laptop", "someone", None, None)
SECONDS = 10**9
PATIENT = 20.0  # seconds; tests that are about the timeout set their own


def usd(text: str) -> Limit:
    return Limit(Money.of(text, "USD").nano, "USD")


def daily(limit: str | Limit = "1", **fields: Any) -> Budget:
    limit = usd(limit) if isinstance(limit, str) else limit
    return Budget("daily", "user", Window("day"), limit, **fields)


SCHEMAS = Path(__file__).parents[2] / "schema"


@cache
def validator(version: int, definition: str) -> Any:
    schema = json.loads((SCHEMAS / f"acp-v{version}.schema.unstable.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


class Clock:
    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now


@dataclass
class House:
    """One proxy. Several share a ledger when they share a directory."""

    root: Path
    budgets: tuple[Budget, ...]
    origin: Origin = ALICE
    options: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    beat: float = 3600.0
    client_notices: bool = False
    client_forms: bool = False
    protocol: int = 1
    later: Later | None = None
    at_first: Callable[[BudgetLedger], object] | None = None
    agent: tuple[str, str] = ("someone", "1")
    project_of: Callable[[Path], str] | None = None
    aliases: Mapping[str, str] | None = None
    ledger_url: str | None = None  # by default a file in its directory

    def __post_init__(self) -> None:
        self.warnings = Warnings()
        self.logged: list[tuple[str, str, dict[str, Any]]] = []  # of budgets on plans
        self.environ = {"HOME": str(self.root)}
        self.worker = LedgerWorker.at(
            self.url, self.environ, self.warnings, self.at_first, clock=lambda: self.clock.now
        )
        catalog = Catalog(aliases=self.aliases)
        rules = Rules(
            self.budgets,
            concrete=catalog.concrete,
            price=catalog.price,
        )
        rules = replace(rules, **{"timeout": PATIENT, **self.options})
        self.recorder = Recorder(
            self.worker,
            self.origin,
            lambda event: self.ends.dispatcher.announce(event),
            project_of=self.project_of,
            process=rules.process,
        )
        self.enforcer = Budgets(
            rules,
            self.worker,
            self.recorder,
            uuid7,
            clock=self.clock,
            beat=self.beat,
            warn=self.warnings,
            ask=lambda about, line: self.ends.dispatcher.ask(about, line),
        )
        texts = partial(refusal, zone=UTC_ZONE), partial(exceeded, zone=UTC_ZONE)
        of_plans = PlanLimits(rules, self.worker, self.recorder, *texts, self.log, clock=self.clock)
        kept = Plans(self.worker, self.recorder.origin_of, lambda *_: "", clock=self.clock)
        self.ends: Ends = Ends(
            [self.recorder, *((of_plans,) if rules.of_plans else ()), self.enforcer, kept],
            clock=self.clock,
            later=self.later,
            aliases=self.aliases,
            estimate=rules.estimate,
        )

    @property
    def url(self) -> str:
        return self.ledger_url or f"sqlite:///{self.root}/ledger.db"

    def log(self, level: str, event: str, **fields: Any) -> None:
        self.logged.append((level, event, fields))

    def open(self, model: str = "claude-sonnet-5", agent: str | None = None) -> None:
        ends = self.ends
        capabilities: dict[str, Any] = {"session": {"notices": {}}} if self.client_notices else {}
        capabilities |= {"elicitation": {"form": {}}} if self.client_forms else {}
        hello = {"protocolVersion": self.protocol, "clientCapabilities": capabilities, "capabilities": capabilities}
        ends.client_says({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        name, version = self.agent
        who = {"name": agent or name, "version": version}
        ends.agent_says(answer(0, protocolVersion=self.protocol, agentInfo=who, info=who))
        ends.client_says({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/w"}})
        ends.agent_says(answer(1, sessionId=SESSION, models={"currentModelId": model}))
        self.forget()

    def forget(self) -> None:
        """What was said so far."""
        self.ends.client.data = self.ends.agent.data = b""

    async def prompt(self, id: int, session: str = SESSION) -> bool:
        """Whether it reached the agent, when that is decided."""
        self.ends.client_says(prompt(id, session=session))
        await self.until(lambda: self.reached(id) or self.answer_to(id) is not None)
        return self.reached(id)

    def answer_to(self, id: int) -> dict[str, Any] | None:
        found = (
            message for message in self.ends.client.messages if message.get("id") == id and "method" not in message
        )
        return next(found, None)

    def finish(self, id: int, cost: str | None = None, **result: Any) -> None:
        """The agent's last words on a prompt; `cost` is the session's so far."""
        if cost is not None:
            self.reports(cost)
        self.ends.agent_says(answer(id, stopReason="end_turn", **result))

    def reports(self, cost: str, used: int = 1000) -> None:
        money = f'{{"amount":{cost},"currency":"USD"}}'.encode()
        line = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":'
        self.ends.agent_says(
            line + b'{"sessionUpdate":"usage_update","used":%d,"size":200000,"cost":%s}}}\n' % (used, money)
        )

    def texts(self) -> list[str]:
        """What the proxy said to the user, as chunks or notices; the agent says nothing in these tests."""
        updates = [
            message["params"]["update"]
            for message in self.ends.client.messages
            if message.get("method") == "session/update"
        ]
        return [
            each.get("description") or each["content"]["text"].strip()
            for each in updates
            if each["sessionUpdate"] in ("notice", "agent_message_chunk")
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                for wire in (self.ends.client, self.ends.agent):
                    wire.written.clear()
                waits = [asyncio.ensure_future(wire.written.wait()) for wire in (self.ends.client, self.ends.agent)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()

    async def settled(self) -> None:
        """The ledger has all that it was given before, and the loop has heard of it."""
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.worker.do(lambda _: loop.call_soon_threadsafe(done.set))
        async with asyncio.timeout(30):
            await done.wait()

    def rows(self) -> list[Row]:
        with closing(self.ledger()) as ledger:
            return list(ledger.rows(Query()))

    def decisions(self) -> dict[str, int]:
        with closing(self.ledger()) as ledger:
            return {count.decision: count.count for count in ledger.decision_counts(self.origin.organisation)}

    def ledger(self) -> BudgetLedger:
        return open_ledger(self.url, journals=(), clock=lambda: self.clock.now)

    def held(self) -> int:
        """By all processes, for the first budget of this house."""
        subject = self.origin.subject(session=SESSION, process=self.options.get("process"))
        accounts = accounts_for(self.budgets[:1], subject, self.clock.now, zone_info, "")
        with closing(self.ledger()) as ledger:
            return ledger.standing(accounts, self.clock.now)[0].held

    def grant(self, amount: str, budget: str = "daily") -> None:
        now = self.clock.now
        nano = Money.of(amount, "USD").nano
        grant = Grant(uuid7(now), "default", "user", budget, None, nano, "USD", now, now + 3600 * SECONDS, "bob", "why")
        with closing(self.ledger()) as ledger:
            ledger.grant(grant)

    def reached(self, id: int) -> bool:
        return any(
            message.get("id") == id and message.get("method") == "session/prompt"
            for message in self.ends.agent.messages
        )


@asynccontextmanager
async def house(root: Path, *budgets: Budget, **fields: Any) -> AsyncIterator[House]:
    made = House(root, budgets, **fields)
    made.open()
    try:
        yield made
    finally:
        made.ends.dispatcher.finish()
        await made.ends.dispatcher.aclose()
        assert made.ends.dispatcher.failures == 0, made.ends.log


CANCELLED = {"outcome": {"outcome": "cancelled"}}
CANCEL = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}
SMALL = usd("0.01").amount


def permission(id: Any) -> dict[str, Any]:
    return request(
        id, "session/request_permission", sessionId=SESSION, toolCall={"toolCallId": f"call-{id}"}, options=[]
    )


def own(made: House) -> list[Any]:
    """What the agent got beside the prompts."""
    return [message for message in made.ends.agent.messages if message.get("method") != "session/prompt"]
