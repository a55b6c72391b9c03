"""How long `acp-proxy serve` takes to answer the page, by the size of the ledger: asked again, and after a new row."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from acp_proxy.ledger import open_ledger
from acp_proxy.report import session_key
from bench.ledgers import DIRECTORY, LEDGER, ledger_of, row_of

SIZES = (10_000, 100_000, 1_000_000)
ASKED = (
    "/healthz",
    "/api/live",
    "/api/spend?range=today&by=model",
    "/api/spend?range=week&by=agent",
    "/api/spend?range=month&by=model",
    "/api/spend?range=year&by=project",
    "/api/spend?range=all&by=model",
    "/api/sessions?limit=50",
    "/api/session?key={session}",
    "/api/budgets",
)
BUDGETS = """
[[budget]]
name = "daily"
window = "day"
limit = { amount = "30", currency = "USD" }

[[budget]]
name = "monthly-by-project"
per = "project"
window = "month"
limit = { amount = "300", currency = "USD" }
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-page", description=__doc__)
    parser.add_argument("--turns", type=int, action="append", help="a size of the ledger; may be given again")
    parser.add_argument("--times", type=int, default=50, help="how often each is asked")
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    options = parser.parse_args()
    for turns in options.turns or SIZES:
        _measure(ledger_of(turns, options.directory, BUDGETS), turns, options.times)
    return 0


def _measure(home: Path, turns: int, times: int) -> None:
    ledger = open_ledger(f"sqlite:///{home / LEDGER}", journals=())
    chance = random.Random()

    def add_one() -> None:
        now = time.time_ns()
        row = row_of(2**60 - chance.randrange(2**30), 2**60, now, chance)  # of this minute
        ledger.append([row])

    last = next(iter(ledger.recent.sessions("default", 1)))
    key = session_key(last.origin, last.session)
    sys.stdout.write(f"\n{turns:,} turns\n{'':38}{'first':>9}{'p50':>9}{'p99':>9}{'p50 after a row':>18}  ms\n")
    with _served(home) as port:
        for path in ASKED:
            asked = path.replace("{session}", key)
            again = [_timed(port, asked) for _ in range(times)]
            after = [_timed(port, asked, add_one) for _ in range(times // 5)]
            figures = (again[0], _part(again[1:], 0.5), _part(again[1:], 0.99))
            texts = "".join(f"{figure * 1000:9.1f}" for figure in figures)
            sys.stdout.write(f"{path:38}{texts}{_part(after, 0.5) * 1000:18.1f}\n")
            sys.stdout.flush()
    ledger.close()


def _timed(port: int, path: str, before: Callable[[], None] | None = None) -> float:
    if before:
        before()
        time.sleep(0.25)  # whether there are new rows is asked five times a second at most
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - began
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}")
    return took


def _part(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


@contextmanager
def _served(home: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "acp_proxy", "serve", "--port", "0"]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "Europe/Berlin", "USER": "alice"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline() if process.stderr else ""
            yield urlsplit(said.split()[-1]).port or 0
        finally:
            process.terminate()


if __name__ == "__main__":
    raise SystemExit(main())
