"""What is asked of a ledger, at more and more turns: commands as users type them, and what a proxy and a scraper do."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from acp_proxy.catalog import Catalog
from acp_proxy.config import load
from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import OpenTurn, Row, log_warning, open_ledger
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.owners import Owner
from acp_proxy.metrics import Exporter
from acp_proxy.report import session_key
from acp_proxy.system.ids import uuid7
from bench.accounts import HOLD, accounts, new_accounts
from bench.ledgers import LEDGER, ledger_of, row_of

Costs = dict[str, float]  # "cpu ms", "ms", of a command "MB", or what else a figure is called

COMMANDS = {
    "report of a week, by day": ["report", "--since", "7d"],
    "report of a year, by day": ["report", "--since", "365d"],
    "report of all, by month": ["report", "--by", "month"],
    "report of all, by model": ["report", "--by", "model"],
    "report of a day, by turn": ["report", "--by", "turn", "--since", "1d", "--json"],
    "session last": ["session", "last"],
    "session ID": ["session", "{id}"],
    "session KEY": ["session", "{key}"],
    "status": ["status", "--format", "{now}"],
    "budget list": ["budget", "list", "--config", "{budgets}"],
    "metrics": ["metrics"],
}
ONCE = {  # they take seconds
    "export of all, in FOCUS": ["export", "--focus"],
    "report of all, by session": ["report", "--by", "session", "--csv"],
    "report of all, by turn": ["report", "--by", "turn", "--csv"],
}
BUDGETS = """
[[budget]]
name = "day"
window = "day"
per = "user"
limit = { amount = "1000", currency = "USD" }
[[budget]]
name = "month"
window = "month"
limit = { amount = "10000", currency = "USD" }
[[budget]]
name = "session"
window = "session"
limit = { tokens = 100_000_000 }
"""
_GREATEST = {"report of all, by session": 1_000_000, "report of all, by turn": 1_000_000}  # turns; more take minutes
_TIMES = 3
_LEFT = 100  # rows in the journal of a process that is gone
_REPEATED = 40


def on_sqlite(turns: int) -> dict[str, Costs]:
    home = ledger_of(turns)
    found = measured(home, f"sqlite:///{home / LEDGER}")
    for name, command in ONCE.items():
        if turns <= _GREATEST.get(name, turns):
            found[name] = command_cost(home, command, times=1)
    return found


def measured(home: Path, url: str) -> dict[str, Costs]:
    """By what was asked of the ledger at `url`, which is the one that commands find in `home`."""
    with closing(open_ledger(url, journals=())) as ledger:
        old = ledger.recent.sessions("default", 500)[-1]
    budgets = home / "budgets.toml"
    budgets.write_text(f'[ledger]\nurl = "{url}"\n{BUDGETS}', encoding="utf-8")
    words = {"{id}": old.session, "{key}": session_key(old.origin, old.session), "{budgets}": str(budgets)}
    found = {
        name: command_cost(home, [words.get(word, word) for word in command]) for name, command in COMMANDS.items()
    }
    command = [sys.executable, "-m", "bench.growth_ledgers", str(home), url]
    asked: dict[str, Costs] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found | asked


def command_cost(home: Path, command: Sequence[str], times: int = _TIMES) -> Costs:
    """The median of its processor and wall time, and its largest memory. Its answer goes nowhere.

    Raises SystemExit where it fails.
    """
    environment = {"HOME": str(home), "USER": "alice", "TZ": "Europe/Berlin", "PATH": os.environ["PATH"]}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    program = str(Path(sys.executable).parent / "acp-proxy")
    found = list[Costs]()
    for _ in range(times):
        # An answer of `status` is kept; that to a question of its own is not there.
        words = [word.replace("{now}", f"{{today}} {time.time_ns()}") for word in command]
        timed = [sys.executable, "-I", "-S", str(Path(__file__).with_name("timed.py")), program, *words]
        done = subprocess.run(timed, env=environment, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            raise SystemExit(f"acp-proxy {' '.join(command)}: ended with {done.returncode}")
        found.append(json.loads(done.stdout))
    median = {name: statistics.median(cost[name] for cost in found) for name in ("cpu ms", "ms")}
    return {**median, "MB": max(cost["MB"] for cost in found)}


def inside(home: Path, url: str) -> dict[str, Costs]:
    """In this process, so that no start of Python is in it. What is measured adds a few hundred rows."""
    found: dict[str, Costs] = {}
    with tempfile.TemporaryDirectory() as directory:
        _die_with_rows(Path(directory), url)
        found[f"start-up that recovers {_LEFT} rows"] = _cost(
            lambda: open_ledger(url, journals=[Path(directory)]).close()
        )
    chance, now = random.Random(), time.time_ns()
    with closing(open_ledger(url, journals=())) as ledger:
        rows = iter([_row(now, chance) for _ in range(_REPEATED)])
        owner, wanted = Owner.this(), [(account, HoldSize(HOLD, 1)) for account in accounts(10**6)]

        def hold(wanted: Sequence[tuple[Account, HoldSize]]) -> None:
            at = time.time_ns()
            ledger.hold(OpenTurn(uuid7(at), _row(now, chance).origin, "s", at, owner), wanted, at, at + EXPIRY)

        def hold_first() -> None:
            hold([(account, HoldSize(HOLD, 1)) for account in new_accounts(10**6, str(uuid7(time.time_ns())))])

        found["admission: a hold on two budgets"] = _median(lambda: hold(wanted))
        found["admission: the first hold of a session, and of a run"] = _median(hold_first)
        found["a turn's row"] = _median(lambda: ledger.append([next(rows)]))
        environ = {"HOME": str(home), "USER": "alice"}
        exporter = Exporter(load({"ledger": url}, environ, admin_file=Path("/nowhere")), Catalog(), journals=())
        found["scrape"] = _median(lambda: exporter.scrape(ledger))
        ledger.settle_dead(time.time_ns())
    return found


def _die_with_rows(directory: Path, url: str) -> None:
    child = os.fork()
    if not child:
        journal, now, chance = open_journal([directory], url, log_warning), time.time_ns(), random.Random()
        for _ in range(_LEFT):
            journal.write(_row(now, chance))
        os._exit(0)
    os.waitpid(child, 0)


def _row(now: int, chance: random.Random) -> Row:
    """Of this minute, and of no other run."""
    return row_of(2**60 - chance.randrange(2**40), 2**60, now, chance)


def _median(call: Callable[[], object]) -> Costs:
    costs = [_cost(call) for _ in range(_REPEATED)]
    return {name: statistics.median(cost[name] for cost in costs) for name in costs[0]}


def _cost(call: Callable[[], object]) -> Costs:
    began, used = time.perf_counter(), time.process_time()
    call()
    return {"cpu ms": (time.process_time() - used) * 1e3, "ms": (time.perf_counter() - began) * 1e3}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(inside(Path(sys.argv[1]), sys.argv[2])))
