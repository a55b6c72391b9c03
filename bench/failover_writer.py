"""A proxy's worker under a budget, as one process: prompt after prompt, each held, begun and booked, whatever happens.

It notes when it asked, what it was told and when its turns ended, by the clock that all processes share. Started by
`bench.failover_proof`; ends when it has been refused some time after its standard input was closed.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.money import Money
from acp_proxy.ledger import LedgerError, OpenTurn
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Held
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.system.ids import uuid7
from bench.accounts import HOLD, ORIGIN, accounts
from harness.rows import line, row

PATIENCE = 60.0  # seconds, the admission_timeout: no prompt is to fail for want of a ledger
_LONGEST_TURN = 0.1  # seconds
_REFUSALS = 2  # until it ends, so far apart:
_PAUSE = 0.5  # seconds
_CLOSE = 60.0  # seconds


class Notes:
    """Lines of JSON in a file: what happened to a turn, and when."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def add(self, what: str, **fields: object) -> None:
        os.write(self._file, json.dumps({"what": what, "at": time.monotonic(), **fields}).encode() + b"\n")


class Writer:
    def __init__(self, url: str, state: Path, notes: Notes, cap: int) -> None:
        self._notes = notes
        self._accounts = accounts(cap)
        self._worker = LedgerWorker.at(url, {"XDG_STATE_HOME": str(state), "HOME": str(state)}, self._warn)

    def prompt(self) -> bool | None:
        """Whether it was admitted; None where no answer came in time. An admitted turn is run and booked."""
        turn, now = uuid7(time.time_ns()), time.time_ns()
        self._notes.add("asked", turn=turn)
        opened = OpenTurn(turn, ORIGIN, f"session {os.getpid()}", now, self._worker.owner)
        wants = [(account, HoldSize(HOLD, HOLD)) for account in self._accounts]
        held = self._ask(lambda ledger: ledger.hold(opened, wants, time.time_ns(), time.time_ns() + EXPIRY))
        if held is None or not held.admitted:
            self._notes.add("refused" if held else "unanswered", turn=turn)
            self._worker.do(lambda ledger: ledger.release(ORIGIN.organisation, turn))
            return None if held is None else False
        self._notes.add("began", turn=turn)
        time.sleep(random.uniform(0, _LONGEST_TURN))
        took = time.time_ns() - now
        used = line("model", Money(HOLD, "USD"), input=10)
        self._worker.append(row(used, id=turn, origin=ORIGIN, session=opened.session, at=now, took=took))
        self._notes.add("ended", turn=turn)
        return True

    def close(self) -> None:
        self._notes.add("closed", left=self._worker.close(_CLOSE))

    def _ask(self, job: Callable[[BudgetLedger], Held]) -> Held | None:
        answers = SimpleQueue[Held | None]()

        def work(ledger: BudgetLedger) -> None:
            answers.put(job(ledger))

        def failed(error: LedgerError) -> None:
            self._notes.add("failed", error=str(error))
            answers.put(None)

        self._worker.ask(work, failed, within=PATIENCE)
        return answers.get()

    def _warn(self, event: str, **fields: object) -> None:
        self._notes.add("warned", event=event, fields={name: str(value) for name, value in fields.items()})


def main(url: str, directory: str, number: int, cap: int) -> None:
    place = Path(directory)
    writer = Writer(url, place / f"state{number}", Notes(place / f"{number}.notes"), cap)
    told, over = threading.Event(), threading.Event()

    def listen() -> None:
        for _ in sys.stdin:
            told.set()
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    told.wait()
    refused = 0
    while refused < _REFUSALS:
        answer = writer.prompt()
        if answer is not True:
            time.sleep(_PAUSE)
        refused = refused + 1 if answer is False and over.is_set() else 0
    writer.close()


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
