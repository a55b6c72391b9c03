"""What a relay counted reaches the ledger once: while something passes, and at the end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acp_proxy.core.traffic import BOUNDS, Flow, Traffic
from acp_proxy.interceptors.relay_counters import PERIOD, RelayCounters
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.sums.tallies import NO_BOUND, Tally
from acp_proxy.ledger.worker import LedgerWorker
from tests.ledger.warned import Warnings

US = 1000


@dataclass
class Timers:
    """Those that were set, and are due when the test says so."""

    set: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def later(self, seconds: float, call: Callable[[], object]) -> Timers:
        self.set.append((seconds, call))
        return self

    def cancel(self) -> None:
        self.set.clear()

    def due(self) -> None:
        (_, call) = self.set.pop()
        call()


@dataclass
class Relay:
    directory: Path
    traffic: Traffic = field(default_factory=Traffic)
    timers: Timers = field(default_factory=Timers)

    def __post_init__(self) -> None:
        self.worker = LedgerWorker.at(self.url, {"HOME": str(self.directory)}, Warnings())
        self.counters = RelayCounters(
            self.worker, self.traffic, "default", "process", later=self.timers.later, clock=lambda: 0
        )

    @property
    def url(self) -> str:
        return f"sqlite:///{self.directory}/ledger.db"

    async def end(self) -> None:
        await self.counters.aclose()
        await asyncio.to_thread(self.worker.close, 30)

    def tallies(self) -> dict[tuple[str, str | None, int], int]:
        ledger = open_ledger(self.url, journals=())
        try:
            found = ledger.tallied.tallies("default")
            return {(tally.family, tally.labels[0], tally.slot): tally.number for tally in found if tally.number}
        finally:
            ledger.close()


def _pass(flow: Flow, size: int, took: int) -> None:
    """A chunk, which is timed."""
    flow.bytes += size
    flow.timed(took)


@pytest.fixture
def relay(tmp_path: Path) -> Relay:
    return Relay(tmp_path)


async def test_what_passed_reaches_the_ledger_at_the_end(relay: Relay) -> None:
    relay.traffic.from_client.messages += 3
    _pass(relay.traffic.from_client, 100, 9 * US)
    _pass(relay.traffic.from_client, 50, 10 * US)
    _pass(relay.traffic.from_agent, 7, 60_000 * US)
    relay.traffic.exits["stopped"] += 1
    await relay.end()
    assert relay.tallies() == {
        ("relay_messages", "client_to_agent", 0): 3,
        ("relay_bytes", "client_to_agent", 0): 150,
        ("relay_bytes", "agent_to_client", 0): 7,
        ("relay_seconds", "client_to_agent", 10 * US): 2,
        ("relay_seconds", "agent_to_client", NO_BOUND): 1,
        ("agent_exits", "stopped", 0): 1,
    }


async def test_the_sum_of_what_chunks_took_is_exact(relay: Relay) -> None:
    for took in (1, BOUNDS[3], BOUNDS[-1] + 1):
        _pass(relay.traffic.from_agent, 1, took)
    await relay.end()
    ledger = open_ledger(relay.url, journals=())
    seconds = [tally for tally in ledger.tallied.tallies("default") if tally.family == "relay_seconds"]
    ledger.close()
    assert sum(tally.nano for tally in seconds) == 1 + BOUNDS[3] + BOUNDS[-1] + 1


async def test_a_timer_is_set_by_what_passes_and_by_nothing_else(relay: Relay) -> None:
    assert relay.timers.set == []
    _pass(relay.traffic.from_agent, 1, 1)
    _pass(relay.traffic.from_agent, 1, 1)
    assert [seconds for seconds, _ in relay.timers.set] == [PERIOD]
    relay.timers.due()
    assert relay.timers.set == []
    _pass(relay.traffic.from_client, 1, 1)
    assert len(relay.timers.set) == 1
    await relay.end()
    assert relay.timers.set == []


async def test_reports_add_up_to_what_passed(relay: Relay) -> None:
    for number in range(1, 4):
        _pass(relay.traffic.from_agent, number, 1)
        relay.timers.due()
    _pass(relay.traffic.from_agent, 4, 1)
    await relay.end()
    assert relay.tallies()["relay_bytes", "agent_to_client", 0] == 10


async def test_a_report_that_comes_twice_counts_once(relay: Relay) -> None:
    await relay.end()
    ledger = open_ledger(relay.url, journals=())
    one = Tally("relay_bytes", ("agent_to_client",), 0, 5, 0)
    for sequence in (1, 1, 2, 2, 1):
        ledger.tallied.count_relayed("default", "another", sequence, [one], 0)
    ledger.close()
    assert relay.tallies()["relay_bytes", "agent_to_client", 0] == 10


async def test_processes_are_forgotten_and_what_they_counted_is_not(relay: Relay, tmp_path: Path) -> None:
    one = Tally("relay_bytes", ("agent_to_client",), 0, 5, 0)
    ledger = open_ledger(relay.url, journals=())
    days = 86_400 * 10**9
    for day in range(5):
        ledger.tallied.count_relayed("default", f"process-{day}", 1, [one], 2 * day * days)
    ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database:
        assert database.execute("SELECT process FROM relayed").fetchall() == [("process-4",)]
    assert relay.tallies()["relay_bytes", "agent_to_client", 0] == 25
    await relay.end()


async def test_nothing_waits_but_one_report_while_the_ledger_is_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()  # no file can be there
    relay = Relay(tmp_path)
    for _ in range(3):
        _pass(relay.traffic.from_agent, 1, 1)
        relay.timers.due()
    assert relay.counters.reports == 1
    (tmp_path / "ledger.db").rmdir()
    await relay.end()
    assert relay.tallies()["relay_bytes", "agent_to_client", 0] == 3
