"""What admission costs: the time of a hold and of a settle while many processes prompt, and of sums over many rows.

`python -m bench.admission_cost` prints a table; each process is this module again, with five turns a second.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Query, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.sqlite.file import patiently
from acp_proxy.system.ids import uuid7
from bench.accounts import HOLD, ORIGIN, accounts
from harness.postgres import running
from harness.rows import line, row

ROOT = Path(__file__).parent.parent
PERIOD = 0.2  # seconds between two turns of a process
CAP = 10**6  # in turns: never in the way
_LINE = "{:<12} {:>5} {:>8} {:>9} {:>9} {:>11} {:>11} {:>8} {:>7}"
_COLUMNS = ("turns", "hold p50", "hold p99", "settle p50", "settle p99", "cpu/turn", "stolen")
QUARTER = 900 * 10**9
_STOLEN = 7  # the column of /proc/stat


def client(url: str, number: int, seconds: float, *, plain: bool) -> None:
    """Turns at their times, however long the ones before took; prints the times of holds and settles in µs."""
    owner = Owner.this()
    held, settled = list[int](), list[int]()
    with closing(Plain(url) if plain else open_ledger(url, journals=(), patience=30)) as ledger:
        turn(ledger, owner, number)  # the first one of a process takes longer; relays live for hours
        _meet("ready")
        used = time.process_time()
        due = time.monotonic() + random.uniform(0, PERIOD)
        end = time.monotonic() + seconds
        while due < end:
            time.sleep(max(0.0, due - time.monotonic()))
            due += PERIOD
            hold, settle = turn(ledger, owner, number, PERIOD / 4)
            held.append(hold)
            settled.append(settle)
        used = time.process_time() - used
        _meet(json.dumps([held, settled, round(used * 1e6)]))  # who leaves earlier takes time from the others


def turn(ledger: Plain | BudgetLedger, owner: Owner, number: int, seconds: float = 0) -> tuple[int, int]:
    """The times in µs of a hold and, some seconds later, of a settle."""
    now = time.time_ns()
    opened = OpenTurn(uuid7(now), ORIGIN, f"session {number}", now, owner)
    wants = [(account, HoldSize(HOLD, 1)) for account in accounts(CAP)]
    held = _microseconds(lambda: ledger.hold(opened, wants, now, now + EXPIRY))
    time.sleep(seconds)
    used = line("model", Money(HOLD // 2, "USD"), input=10)
    ended = row(used, id=opened.id, origin=ORIGIN, session=opened.session, at=now, took=0)
    return held, _microseconds(lambda: ledger.append([ended]))


def _meet(text: str) -> None:
    """Tell the one who measures, and go on when everybody has come so far."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


class Plain:
    """The yardstick: in place of a hold, and of a settle, one row of two columns in a transaction of its own."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0.001, isolation_level=None)
        patiently(lambda: self._connection.execute("PRAGMA journal_mode = WAL").fetchall(), 30)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        patiently(lambda: self._connection.execute("CREATE TABLE IF NOT EXISTS plain (turn, at)"), 30)

    def hold(self, turn: OpenTurn, wants: object, now: int, until: int) -> None:  # noqa: ARG002  (as a ledger's)
        self._insert(turn.id, now)

    def append(self, rows: Sequence[Row]) -> None:
        self._insert(rows[0].entry.id, rows[0].entry.started_at)

    def close(self) -> None:
        self._connection.close()

    def _insert(self, turn: str, at: int) -> None:
        patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"), 30)
        self._connection.execute("INSERT INTO plain VALUES (?, ?)", (turn, at))
        self._connection.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class Times:
    """Of all processes, in µs and in order; `used` is processor time of their own, all of a turn. `stolen` is what
    part of its processors a virtual machine did not get meanwhile: whoever has the lock then keeps all waiting."""

    held: list[int]
    settled: list[int]
    used: float
    stolen: float

    @property
    def figures(self) -> tuple[str, ...]:
        figures = [_at(times, percent) for times in (self.held, self.settled) for percent in (50, 99)]
        return (str(len(self.held)), *figures, f"{self.used / 1000:.1f}", f"{self.stolen:.1%}")


def measure(url: str, processes: int, seconds: float, *, plain: bool = False) -> Times:
    if not plain:
        open_ledger(url, journals=()).close()
    pipes = subprocess.PIPE
    clients = []
    for number in range(processes):
        settings = json.dumps([url, number, seconds, plain])
        command = [sys.executable, "-m", "bench.admission_cost", "--client", settings]
        clients.append(subprocess.Popen(command, cwd=ROOT, stdin=pipes, stdout=pipes, text=True))
    answers, ticks = list[str](), list[list[int]]()
    for _ in range(2):
        answers = [each.stdout.readline() for each in clients if each.stdout]
        ticks.append(_processor_ticks())
        for each in clients:
            if each.stdin:
                each.stdin.write("\n")
                each.stdin.flush()
    for each in clients:
        each.communicate(timeout=60)
    found = [json.loads(answer or "[[], [], 0]") for answer in answers]
    held = sorted(held for holds, _, _ in found for held in holds)
    settled = sorted(settled for _, settles, _ in found for settled in settles)
    passed = [after - before for before, after in zip(*ticks, strict=True)]
    used = sum(used for _, _, used in found) / max(1, len(held))
    return Times(held, settled, used, passed[_STOLEN] / max(1, sum(passed)))


def _processor_ticks() -> list[int]:
    """Of all processors, by what they did (Linux: proc(5), /proc/stat)."""
    return [int(text) for text in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]


def sums(url: str, count: int) -> Iterator[tuple[str, float]]:
    """Milliseconds of questions over so many rows of a year, of 20 users, 4 projects and 5 models."""
    with closing(open_ledger(url, journals=(), patience=60)) as ledger:
        began = time.monotonic()
        for start in range(0, count, 2000):
            ledger.append([_row(number, count) for number in range(start, min(start + 2000, count))])
        yield "append, µs a row", (time.monotonic() - began) / count * 1e6
        latest = _start(count - 1, count)
        month = Query(latest - 30 * 96 * QUARTER)
        wanted = accounts(CAP)
        questions: dict[str, Callable[[], object]] = {
            "standing of 2 budgets": lambda: ledger.standing(wanted, latest),
            "summed, all": lambda: ledger.summed(Query(), ()),
            "summed by model": lambda: ledger.summed(Query(), ("model",)),
            "summed by user, 30 days": lambda: ledger.summed(month, ("user",)),
            "summed by quarter hour": lambda: ledger.summed(Query(), ("quarter_hour",)),
            "summed by quarter hour, 30 days": lambda: ledger.summed(month, ("quarter_hour",)),
            "recent costs": lambda: ledger.recent_costs("default", "agent", "USD", model="model 1", user="user 1"),
        }
        for name, question in questions.items():
            yield name, min(_microseconds(question) for _ in range(3)) / 1000
        yield "summed by host, from rows", _microseconds(lambda: ledger.summed(Query(), ("host",))) / 1000
        yield "rebuild", _microseconds(ledger.rebuild) / 1000


def _row(number: int, count: int) -> Row:
    at = _start(number, count)
    origin = replace(ORIGIN, user=f"user {number % 20}", project=f"project {number % 4}")
    used = UsageLine(f"model {number % 5}", Usage(100, 1000, 10, 50), Money(12_345_678, "USD"))
    return row(used, id=f"{number:09}", origin=origin, session=f"s{number // 20}", at=at, took=0)


def _start(number: int, count: int) -> int:
    return 1_764_000_000 * 10**9 + number * (365 * 96 * QUARTER // count)


def _microseconds(call: Callable[[], object]) -> int:
    began = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - began) // 1000


def _at(samples: Sequence[int], percent: int) -> str:
    return f"{samples[min(len(samples) - 1, len(samples) * percent // 100)] / 1000:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-admission", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement (10)")
    parser.add_argument("--backend", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--processes", type=int, nargs="+", help="how many at once (1, 16 and 50; PostgreSQL: 64)")
    parser.add_argument("--rows", type=int, default=0, help="ask for sums over so many rows instead")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        url, number, seconds, plain = json.loads(arguments.client)
        client(url, number, seconds, plain=plain)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        if arguments.rows:
            for name, figure in sums(f"sqlite:///{directory}/rows.db", arguments.rows):
                sys.stdout.write(f"{name:<34} {figure:>10,.1f}{'' if 'µs' in name else ' ms'}\n")
                sys.stdout.flush()
            return 0
        sys.stdout.write(_LINE.format("ms", "proc", *_COLUMNS) + "\n")
        for backend, number, times in admissions(arguments, Path(directory)):
            sys.stdout.write(_LINE.format(backend, number, *times.figures) + "\n")
            sys.stdout.flush()
    return 0


def admissions(arguments: argparse.Namespace, directory: Path) -> Iterator[tuple[str, int, Times]]:
    """On SQLite each figure has that of the yardstick beside it, for a machine has slow minutes."""
    if arguments.backend != "postgresql":
        for number in arguments.processes or (1, 16, 50):
            for name, plain in (("plain insert", True), ("SQLite", False)):
                url = f"sqlite:///{directory}/{name}-{number}.db"
                yield name, number, measure(url, number, arguments.seconds, plain=plain)
    if arguments.backend != "sqlite":
        with running(settings=()) as server:
            for number in arguments.processes or (1, 16, 64):
                yield "PostgreSQL", number, measure(server.create(f"cost{number}"), number, arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())
