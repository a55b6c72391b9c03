"""Whether the relay's latency moves while the ledger is slow: two relays stay alive, and only one ledger is.

`python -m bench.slow_ledger` prints a table. Slow is an SQLite file that another process keeps locked for most of the
time, and a PostgreSQL behind a connection that delays what it says. Meanwhile each relay admits prompts.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from acp_proxy.ledger import open_ledger
from bench.peer import Peer
from harness.postgres import Server, running

ROOT = Path(__file__).parent.parent
DELAY = 0.2  # seconds that a slow ledger takes for anything, at least
PERIOD = 0.5  # seconds between two prompts: as many to each relay
PINGS = 200  # a batch
CONFIG = """
[ledger]
url = "{url}"
admission_timeout = "5s"
on_unavailable = "open"
[[budget]]
name = "daily"
window = "day"
limit = {{ amount = "1000000", currency = "USD" }}
"""
_LINE = "{:<11} {:<8} {:>7} {:>9} {:>8} {:>8} {:>11}"
_RATIOS = "{:<11} {:<8} {:>7} {:>9} {:>8.2f} {:>8.2f}"


class Client:
    """An editor with two sessions: in one a prompt waits or runs, in the other pings go to and fro."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._asked = 0.0
        self._waits = False
        self.admissions: list[float] = []  # seconds from a prompt to the end of its turn

    def _prompt_if_due(self) -> None:
        now = time.perf_counter()
        if self._waits or now < self._asked + PERIOD:
            return
        params = {"sessionId": "another", "prompt": [{"type": "text", "text": "bench stream n=1 size=300 mode=msg"}]}
        self._waits, self._asked = True, now
        self._peer.send(self._peer.request("session/prompt", params))

    def batch(self) -> list[float]:
        """Round trips in µs."""
        times = []
        for _ in range(PINGS):
            self._prompt_if_due()
            ping = self._peer.ping()
            sent = time.perf_counter_ns()
            self._peer.send(ping)
            while not self._is_answer(self._peer.line()):
                pass
            times.append((time.perf_counter_ns() - sent) / 1e3)
            time.sleep(0.002)  # so that a batch sees several moments of a slow ledger
        return times

    def _is_answer(self, line: bytes) -> bool:
        """Of a ping. What belongs to the prompt stands between them."""
        if b'"stopReason"' in line:
            self.admissions.append(time.perf_counter() - self._asked)
            self._waits = False
        return b'"result"' in line and b'"stopReason"' not in line


def compare(normal: str, slow: str, agent: str, directory: Path, rounds: int) -> dict[str, tuple[list[float], Client]]:
    """Batches in turns; which is first changes from round to round."""
    times: dict[str, list[float]] = {"normal": [], "slow": []}
    clients: dict[str, Client] = {}
    with ExitStack() as stack:
        for name, url in (("normal", normal), ("slow", slow)):
            config = directory / f"{name}.toml"
            config.write_text(CONFIG.format(url=url))
            command = [str(Path(sys.executable).parent / "acp-proxy"), "run", "--config", str(config), "--", agent]
            home = {"XDG_STATE_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
            peer = stack.enter_context(Peer(command, seconds=600, environment=home))
            clients[name] = Client(peer.hello())
            clients[name].batch()
        for number in range(rounds):
            for name in ("normal", "slow") if number % 2 else ("slow", "normal"):
                times[name] += clients[name].batch()
    return {name: (times[name], clients[name]) for name in times}


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another process is in a transaction of `DELAY` again and again, and lets others in for a moment between them."""
    open_ledger(url, journals=()).close()
    with _process("--hold", url):
        yield


@contextmanager
def delayed(server: Server) -> Iterator[int]:
    """The port of a process that hands everything on a while later, so that a call of five journeys takes `DELAY`."""
    with _process("--delay", str(server.port)) as port:
        yield int(port)


@contextmanager
def _process(*arguments: str) -> Iterator[str]:
    """This module in a process of its own, until it is no longer needed; what it says first."""
    command = [sys.executable, "-m", "bench.slow_ledger", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline() if process.stdout else ""
        finally:
            process.kill()


def hold(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=5)) as connection:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(DELAY)
            connection.execute("COMMIT")
            time.sleep(DELAY / 20)


async def delay(port: int) -> None:
    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(DELAY / 10)
            writer.write(data)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(hand_on(reader, to_writer), hand_on(to_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def percentile(times: Sequence[float], percent: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * percent / 100))]


def told(backend: str, found: dict[str, tuple[list[float], Client]]) -> Iterator[str]:
    for name, (times, client) in found.items():
        waited = f"{statistics.median(client.admissions) * 1e3:.0f}" if client.admissions else "-"
        p50, p99 = (f"{percentile(times, percent):.0f}" for percent in (50, 99))
        yield _LINE.format(backend, name, len(times), len(client.admissions), p50, p99, waited)
    (normal, _), (slow, _) = found["normal"], found["slow"]
    yield _RATIOS.format(
        backend, "ratio", "", "", *(percentile(slow, each) / percentile(normal, each) for each in (50, 99))
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-slow-ledger", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help=f"of {PINGS} round trips with each ledger (20)")
    parser.add_argument("--agent", help="the bench agent, built")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    parser.add_argument("--delay", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.hold:
        hold(arguments.hold)
    if arguments.delay:
        asyncio.run(delay(arguments.delay))
    sys.stdout.write(_LINE.format("", "ledger", "pings", "prompts", "p50 µs", "p99 µs", "a turn, ms") + "\n")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        normal, slow = (f"sqlite:///{directory}/{which}.db" for which in ("normal", "slow"))
        with locked(slow):
            found = compare(normal, slow, arguments.agent, directory, arguments.rounds)
        sys.stdout.write("\n".join(told("SQLite", found)) + "\n")
        with running(settings=()) as server, delayed(server) as port:
            normal, slow = server.create("normal"), server.create("slow").replace(f":{server.port}/", f":{port}/")
            found = compare(normal, slow, arguments.agent, directory, arguments.rounds)
        sys.stdout.write("\n".join(told("PostgreSQL", found)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
