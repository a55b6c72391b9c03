"""How long `acp-proxy serve` takes to answer the page, by the size of the ledger: asked again, and after a new row."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from acp_proxy.core.entry import Entry, Origin, SessionState, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.report import session_key

SIZES = (10_000, 100_000, 1_000_000)
AGENTS = ("@zed-industries/claude-agent-acp", "codex-acp", "gemini-cli", "goose")
MODELS = ("claude-sonnet-5", "claude-opus-5-5", "gpt-6-codex", "gemini-4-pro", "kimi-k3", "mistral-large-4")
PROJECTS = tuple(f"project-{number}" for number in range(20))
TURNS_A_SESSION = 20
YEARS = 2
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

_DAY = 86_400 * 10**9
_BATCH = 2000
_KEPT = 12 * 3600  # seconds; "today" would be empty
_APPENDED = 100_000  # of larger ledgers the rest are copies
_LENGTHS = {"turn": 36, "line": 36, "session": len("sess-99999")}  # of what tells an original from a copy
_COPIED = tuple(_LENGTHS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-page", description=__doc__)
    parser.add_argument("--turns", type=int, action="append", help="a size of the ledger; may be given again")
    parser.add_argument("--times", type=int, default=50, help="how often each is asked")
    parser.add_argument("--directory", type=Path, default=Path("/tmp/acp-proxy-bench-page"))  # noqa: S108
    options = parser.parse_args()
    for turns in options.turns or SIZES:
        _measure(ledger_of(turns, options.directory), turns, options.times)
    return 0


def ledger_of(turns: int, directory: Path) -> Path:
    """A home directory with a ledger of so many turns up to now, made unless it is there."""
    home = directory / f"{turns}-{len(MIGRATIONS)}"
    made = home / "made"
    if made.exists() and time.time() - made.stat().st_mtime < _KEPT:
        return home
    file = home / ".local/state/acp-proxy/ledger.db"
    for path in (file, file.with_name("ledger.db-wal"), file.with_name("ledger.db-shm")):
        path.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    if turns > _APPENDED:
        shutil.copy(ledger_of(_APPENDED, directory) / file.relative_to(home), file)
        _multiply(file, turns // _APPENDED)
    else:
        _append(file, turns)
    config = home / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(BUDGETS, encoding="utf-8")
    made.touch()
    return home


def _append(file: Path, turns: int) -> None:
    ledger = open_ledger(f"sqlite:///{file}", journals=())
    now, chance = time.time_ns(), random.Random(turns)  # noqa: S311
    for start in range(0, turns, _BATCH):
        ledger.append([_row(number, turns, now, chance) for number in range(start, min(start + _BATCH, turns))])
        sys.stderr.write(f"\rmaking a ledger of {turns:,} turns: {start + _BATCH:,}")
    sys.stderr.write("\n")
    ledger.close()


def _multiply(file: Path, by: int) -> None:
    """Each turn so many times, spread over the time to the next one; appending a million would take half an hour."""
    apart = YEARS * 365 * _DAY // _APPENDED // by
    with closing(sqlite3.connect(file)) as database:
        columns = {table: [found[1] for found in database.execute(f"PRAGMA table_info({table})")] for table in _COPIED}
        database.create_function("copied", 2, lambda name, copy: f"{name}-{copy}", deterministic=True)
        for copy in range(1, by):
            sys.stderr.write(f"\rcopying: {copy + 1} of {by}")
            changed = {name: f"copied({name}, {copy})" for name in ("session", "id", "turn")}
            changed |= {name: f"{name} - {copy * apart}" for name in ("started_at", "ended_at")}
            for table in _COPIED:
                values = ", ".join(changed.get(column, column) for column in columns[table])
                original = "session" if table == "session" else "id" if table == "turn" else "turn"
                database.execute(
                    f"INSERT INTO {table} SELECT {values} FROM {table} WHERE length({original}) <= {_LENGTHS[table]}"  # noqa: S608
                )
            database.commit()
    sys.stderr.write("\nadding up\n")
    ledger = open_ledger(f"sqlite:///{file}", journals=())
    ledger.rebuild()
    ledger.close()


def _row(number: int, turns: int, now: int, chance: random.Random) -> Row:
    """Turns come evenly over the years until now; what a session is about stays the same in it."""
    session = number // TURNS_A_SESSION
    fixed = random.Random(session)  # noqa: S311
    model = fixed.choice(MODELS)
    start = now - (turns - number) * (YEARS * 365 * _DAY // turns) - 60 * 10**9
    usage = Usage(chance.randrange(5000), chance.randrange(90_000), chance.randrange(3000), chance.randrange(2000))
    used = chance.randrange(5000, 190_000)
    entry = Entry(
        id=f"{number:012x}-0000-7000-8000-000000000000",
        session=f"sess-{session}",
        kind="turn",
        started_at=start,
        ended_at=start + 40 * 10**9,
        stop_reason="end_turn" if chance.random() < 0.95 else "cancelled",
        lines=(UsageLine(model, usage, Money(chance.randrange(10**9), "USD"), f"lab/{model}"),),
        usage_source="agent" if chance.random() < 0.9 else "partial",
        cost_source="computed",
        context_used=used,
        context_size=200_000,
    )
    origin = Origin("default", "alice", "core", fixed.choice(PROJECTS), "laptop", fixed.choice(AGENTS), "1.0", "zed")
    return Row(origin, entry, SessionState(used, 200_000, model=model, title=f"Fix the tests of part {session}"))


def _measure(home: Path, turns: int, times: int) -> None:
    ledger = open_ledger(f"sqlite:///{home}/.local/state/acp-proxy/ledger.db", journals=())
    chance = random.Random()  # noqa: S311

    def add_one() -> None:
        now = time.time_ns()
        row = _row(2**60 - chance.randrange(2**30), 2**60, now, chance)  # of this minute
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
