"""Proves that a cap holds: many processes prompt against one cap at once, some are killed, the database is restarted.

`python -m bench.admission_proof` runs all of it and prints a table; each process is this module again, as a client.
The control reads, compares and then writes, as one would without thinking of others; it must overspend.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.money import NANO, Money
from acp_proxy.ledger import LedgerUnavailableError, OpenTurn, Query, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.journal.writer import Journal, open_journal
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.ids import uuid7
from bench.accounts import HOLD, ORIGIN, accounts
from harness.postgres import Server, running
from harness.rows import line, row

ROOT = Path(__file__).parent.parent
_CLOSED_AFTER = 10.0  # seconds, the admission_timeout of the proof
_LONGEST_TURN = 0.02  # seconds
_LOCKED = 2.0  # seconds

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    processes: int
    prompts: int  # of each process
    cap: int  # in turns at their hold
    exact: bool = False  # every turn costs what it holds, and nobody is killed
    naive: bool = False
    restart: bool = False  # the database, in the middle; SQLite has no server: another process locks the file
    spare: bool = False  # nobody is killed


@dataclass(slots=True)
class Outcome:
    case: Case
    admitted: int = 0
    booked: int = 0
    killed: int = 0
    samples: int = 0
    most: int = 0  # committed + held, nano-units
    seconds: float = 0
    faults: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        case = self.case
        most = f"{self.most / NANO:.2f} of {case.cap * HOLD / NANO:.2f}"
        figures = (
            f"{self.admitted:>6} {self.booked:>6} {self.killed:>6} {most:>16} {self.samples:>7} {self.seconds:>6.1f}"
        )
        verdict = "; ".join(self.faults) or "ok"
        return f"{case.name:<42} {case.processes:>4} {case.processes * case.prompts:>7} {figures}  {verdict}"


HEADER = (
    f"{'':<42} {'proc':>4} {'prompts':>7} {'admit':>6} {'booked':>6} {'killed':>6} {'most':>16} {'samples':>7} {'s':>6}"
)


def prove(case: Case, url: str, directory: Path, server: Server | None = None) -> Outcome:
    """Run a case against an empty ledger; `directory` is for journals and notes of who began what."""
    open_ledger(url, journals=()).close()
    outcome = Outcome(case)
    began = time.monotonic()
    with ExitStack() as stack:
        clients = [stack.enter_context(_client(case, url, directory, number)) for number in range(case.processes)]
        for client in clients:
            if client.stdout:
                client.stdout.readline()
        _go_on(clients)
        _observe(case, url, clients, server, outcome)
        for client in clients:
            client.wait(120)
            if client.returncode not in (0, -signal.SIGKILL):
                outcome.faults.append(f"a client ended with {client.returncode}")
    _check(case, url, directory, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _observe(
    case: Case, url: str, clients: Sequence[subprocess.Popen[str]], server: Server | None, outcome: Outcome
) -> None:
    """Sample until all clients have ended; in the middle kill a third of them, and restart the database.

    However late we look: no client begins its last prompts before all of that has happened.
    """
    to_kill = [] if case.exact or case.spare else list(clients[::3])
    interruptions = [lambda: _interrupt(url, server)] if case.restart else []
    watched, waiting = accounts(case.cap)[:1], True
    with closing(open_ledger(url, journals=())) as ledger:
        while any(client.poll() is None for client in clients):
            standing = _patiently(lambda: ledger.standing(watched, time.time_ns())[0])
            used = standing.spent + standing.held
            outcome.samples += 1
            outcome.most = max(outcome.most, used)
            if to_kill and used > case.cap * HOLD // 4:
                for client in to_kill:
                    if client.poll() is None:
                        os.kill(client.pid, signal.SIGKILL)
                        outcome.killed += 1
                to_kill = []
            if interruptions and used > case.cap * HOLD // 2:
                interruptions.pop()()
            if waiting and not (to_kill or interruptions):
                _go_on(clients)
                waiting = False
            time.sleep(0.002)
    if outcome.most > case.cap * HOLD:
        outcome.faults.append("beyond the cap")
    if to_kill or interruptions:
        outcome.faults.append("it was over before the middle")


def _go_on(clients: Sequence[subprocess.Popen[str]]) -> None:
    for client in clients:
        if client.stdin:
            with suppress(BrokenPipeError):  # it was killed
                os.write(client.stdin.fileno(), b"\n")


def _interrupt(url: str, server: Server | None) -> None:
    """Nobody gets anything from the database for a while."""
    if server:
        server.stop()
        server.start()
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        time.sleep(_LOCKED)
        holder.execute("COMMIT")


def _check(case: Case, url: str, directory: Path, outcome: Outcome) -> None:
    """What the next command on the ledger finds."""
    with closing(open_ledger(url, journals=[directory])) as ledger:
        (standing,) = ledger.standing(accounts(case.cap)[:1], time.time_ns())
        booked = [row.entry.id for row in ledger.rows(Query())]
        (sums,) = ledger.summed(Query(), ())
    started = [line for path in directory.glob("*.started") for line in path.read_text().split()]
    outcome.booked, outcome.admitted = len(booked), len(started)
    outcome.most = max(outcome.most, standing.spent)
    if standing.held:
        outcome.faults.append(f"holds left: {standing.held}")
    if standing.spent > case.cap * HOLD:
        outcome.faults.append("committed beyond the cap")
    if (totals := sum(cost.nano for cost in sums.costs)) != standing.spent:
        counted = f"{totals} in {sums.rows} rows, {standing.spent} in {len(booked)}"
        outcome.faults.append(f"totals differ from rows: {counted}")
    if len(set(booked)) != len(booked) or not set(started) <= set(booked):
        outcome.faults.append(f"{len(set(started) - set(booked))} turns not booked")
    if case.exact and len(booked) != case.cap:
        outcome.faults.append(f"admitted {len(booked)} of {case.cap}")


@contextmanager
def _client(case: Case, url: str, directory: Path, number: int) -> Iterator[subprocess.Popen[str]]:
    settings = json.dumps([url, str(directory), number, case.prompts, case.cap, case.exact, case.naive])
    command = [sys.executable, "-m", "bench.admission_proof", "--client", settings]
    pipes = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipes, stdout=pipes, text=True) as client:
        try:
            yield client
        finally:
            client.kill()


def client(url: str, directory: str, number: int, prompts: int, cap: int, exact: bool, naive: bool) -> None:
    """One proxy: prompt after prompt, each held, begun, put into the journal and settled."""
    place = Path(directory)
    started = os.open(place / f"{number}.started", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    journal = open_journal([place], url, _silent)
    with closing(open_ledger(url, journals=[place], warn=_silent)) as ledger:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for nth in range(prompts):
            if nth == prompts * 3 // 4:  # by then more than half of any cap is used
                sys.stdin.readline()
            turn = uuid7(time.time_ns())
            if _naively(ledger, cap) if naive else _admitted(ledger, turn, cap):
                os.write(started, f"{turn}\n".encode())
                time.sleep(random.uniform(0, _LONGEST_TURN))
                _settle(ledger, journal, turn, HOLD if exact else random.randint(HOLD // 2, HOLD))
    journal.close()


def _admitted(ledger: BudgetLedger, turn: str, cap: int) -> bool:
    now = time.time_ns()
    opened = OpenTurn(turn, ORIGIN, f"session {os.getpid()}", now, Owner.this())
    wants = [(account, HoldSize(HOLD, HOLD)) for account in accounts(cap)]
    try:
        return _patiently(lambda: ledger.hold(opened, wants, now, now + EXPIRY), _CLOSED_AFTER).admitted
    except LedgerUnavailableError:  # refused, as `closed` says; should the hold have come through, it is given up
        _patiently(lambda: ledger.release(ORIGIN.organisation, turn))
        return False


def _naively(ledger: BudgetLedger, cap: int) -> bool:
    (standing,) = ledger.standing(accounts(cap)[:1], time.time_ns())
    return standing.left >= HOLD


def _settle(ledger: BudgetLedger, journal: Journal, turn: str, nano: int) -> None:
    now = time.time_ns()
    used = line("model", Money(nano, "USD"), input=10)
    ended = row(used, id=turn, origin=ORIGIN, session=f"session {os.getpid()}", at=now, took=0)
    slot = journal.write(ended)
    _patiently(lambda: _book(ledger, ended))
    if slot is not None:
        journal.done(slot)


def _book(ledger: BudgetLedger, row: Row) -> None:
    """As a proxy does: a turn holds what it holds until its row is there, however long that takes."""
    try:
        ledger.append([row])
    except LedgerUnavailableError:
        ledger.beat(row.origin.organisation, [row.entry.id], time.time_ns() + EXPIRY)
        raise


def _patiently(call: Callable[[], T], seconds: float = 90) -> T:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except LedgerUnavailableError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _silent(event: str, **fields: object) -> None:
    """What goes wrong shows in the ledger."""


def cases(processes: Sequence[int], *, postgres: bool) -> Iterator[Case]:
    backend = "PostgreSQL" if postgres else "SQLite"
    for number in processes:
        each = max(8, 256 // number)
        yield Case(f"{backend}, hold = cost, 50 turns", number, each, 50, exact=True)
        yield Case(f"{backend}, kill −9", number, 2 * each, number * each)
        name = f"{backend}, {'stopped and started' if postgres else 'locked for 2 s'}"
        yield Case(name, number, 2 * each, number * each, restart=True, spare=True)
        yield Case(f"{name}, kill −9", number, 2 * each, number * each, restart=True)
    yield Case(f"{backend}, naive (must overspend)", processes[0], 16, 50, exact=True, naive=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/prove-cap", description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[16, 64], help="how many at once (16 and 64)")
    parser.add_argument("--backend", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        client(*json.loads(arguments.client))
        return 0
    sys.stdout.write(f"{HEADER}\n")
    good = True
    with running(settings=()) as server:
        for postgres in (False, True):
            if arguments.backend == ("sqlite" if postgres else "postgresql"):
                continue
            for number, case in enumerate(cases(arguments.processes, postgres=postgres)):
                with tempfile.TemporaryDirectory() as directory:
                    place = Path(directory)
                    url = server.create(f"proof{number}") if postgres else f"sqlite:///{place}/ledger.db"
                    outcome = prove(case, url, place, server if postgres else None)
                good = good and bool(outcome.faults) == case.naive
                sys.stdout.write(f"{outcome.line}\n")
                sys.stdout.flush()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
