"""How long prompts wait for admission when many proxies ask a hub, beside proxies that ask PostgreSQL themselves.

All share one budget. The link with the delay lies between proxies and hub, or proxies and PostgreSQL; a hub stands
beside its database. Ratios are those of one round, the median of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from acp_proxy.hub.store import Store
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from bench.postgres_far import linked, started, told
from harness.faults.hubs import HubProcess
from harness.postgres import Server, running

_ROOT = Path(__file__).parents[1]
_WAYS = ("PostgreSQL", "a hub on PostgreSQL", "a hub on SQLite")
_SHARES = (50, 99)  # percentiles

Waits = dict[tuple[int, str, int], float]  # ms, by delay, way and percentile


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench-hub", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="of each way and delay in a round")
    parser.add_argument("--proxies", type=int, default=16)
    parser.add_argument("--delays", type=int, nargs="*", default=(0, 40), help="milliseconds, there and back")
    asked = parser.parse_args()
    rounds: list[Waits] = []
    with running(settings=()) as server:  # with fsync
        for number in range(asked.rounds):
            one = _Round(server, f"round{number}", asked.seconds, asked.proxies)
            rounds.append({key: wait for delay in asked.delays for key, wait in one.waits(delay).items()})
    sys.stdout.write(f"{asked.proxies} proxies, {asked.rounds} rounds, load {os.getloadavg()[1]:.0f}\n\n")
    sys.stdout.write("| link | proxies ask | p50, ms | p99, ms | p50 | p99 |\n|--:|---|--:|--:|--:|--:|\n")
    for delay in asked.delays:
        for way in _WAYS:
            sys.stdout.write(_line(delay, way, rounds))


def _line(delay: int, way: str, rounds: Sequence[Waits]) -> str:
    waits = [statistics.median(each[delay, way, share] for each in rounds) for share in _SHARES]
    ratios = [
        statistics.median(each[delay, way, share] / each[delay, _WAYS[0], share] for each in rounds)
        for share in _SHARES
    ]
    figures = [f"{wait:,.3g}" for wait in waits] + [f"{ratio:.1f} ×" for ratio in ratios]
    return f"| {delay} ms | {way} | {' | '.join(figures)} |\n"


class _Round:
    """Each way has a database of its own."""

    def __init__(self, server: Server, name: str, seconds: float, proxies: int) -> None:
        self._server = server
        self._name = name
        self._seconds = seconds
        self._proxies = proxies

    def waits(self, delay: int) -> Waits:
        found = Waits()
        for number, way in enumerate(_WAYS):
            with tempfile.TemporaryDirectory(prefix="acp-proxy-bench-") as directory, ExitStack() as stack:
                database = f"sqlite:///{directory}/ledger.db"
                if "SQLite" not in way:
                    database = self._server.create(f"{self._name}-{delay}-{number}")
                token = _made(database)
                port, url = self._server.port, database
                if "hub" in way:
                    port = stack.enter_context(_hub(Path(directory), database))
                    url = f"http://127.0.0.1:{port}/"
                url = url.replace(f":{port}/", f":{stack.enter_context(linked(port, delay))}/")
                ordered = sorted(self._run(url, {"HOME": directory, "ACP_PROXY_HUB_TOKEN": token}))
            for share in _SHARES:
                found[delay, way, share] = ordered[len(ordered) * share // 100] * 1000
        return found

    def _run(self, url: str, environ: Mapping[str, str]) -> Iterator[float]:
        with ExitStack() as stack:
            commands = [
                [sys.executable, "-m", "bench.hub_writer", url, str(number), str(self._seconds)]
                for number in range(self._proxies)
            ]
            processes = started(stack, commands, _ROOT, {**os.environ, **environ})
            for each in told(processes):
                yield from json.loads(each)


def _made(database: str) -> str:
    """A token of the hub that will stand in front of it; its tables are there then, whoever asks it."""
    with closing(open_ledger(database, journals=())) as ledger:
        secret, _ = Store(ledger.tables, "default").tokens.make(
            Asked("bench", "everybody", "administrator"), "bench", 0
        )
    return secret


@contextmanager
def _hub(directory: Path, database: str) -> Iterator[int]:
    hub = HubProcess(directory, database, "hub")
    try:
        hub.start()
        yield hub.port
    finally:
        hub.kill()


if __name__ == "__main__":
    main()
