"""Ledgers of any size to measure with: a hundred thousand turns are appended, more are copies of those, made in SQL."""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from acp_proxy.core.entry import Origin, SessionState, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.session_keys import note_all
from acp_proxy.ledger.sqlite.executor import Executor
from acp_proxy.ledger.sums.buckets import LEVELS, QUARTER_HOUR, WHOLE
from acp_proxy.ledger.sums.totals import COUNTS
from harness.rows import MINUTE, SECOND, row

DIRECTORY = Path("/tmp/acp-proxy-bench-ledgers")  # noqa: S108  they take long to make, and are kept
LEDGER = Path(".local/state/acp-proxy/ledger.db")  # in a home directory
AGENTS = ("@zed-industries/claude-agent-acp", "codex-acp", "gemini-cli", "goose")
MODELS = ("claude-sonnet-5", "claude-opus-5-5", "gpt-6-codex", "gemini-4-pro", "kimi-k3", "mistral-large-4")
PROJECTS = tuple(f"project-{number}" for number in range(20))
TURNS_A_SESSION = 20
YEARS = 2

_DAY = 86_400 * 10**9
_BATCH = 2000
_KEPT = 12 * 3600  # seconds; "today" would be empty
_APPENDED = 100_000


def ledger_of(turns: int, directory: Path = DIRECTORY, config: str = "") -> Path:
    """A home directory with a ledger of so many turns up to now, made unless it is there.

    Above a hundred thousand `turns` is a multiple of that. A million takes a minute and 1 GB.
    """
    home = directory / str(turns)  # one of an older version is brought up to this one when it is opened
    made, file = home / "made", home / LEDGER
    if not made.exists() or time.time() - made.stat().st_mtime > _KEPT:
        for path in (made, file, file.with_name("ledger.db-wal"), file.with_name("ledger.db-shm")):
            path.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        if turns > _APPENDED:
            shutil.copy(ledger_of(_APPENDED, directory) / LEDGER, file)
            multiply(file, turns // _APPENDED)
        else:
            _append(file, turns)
        made.touch()
    own = home / ".config/acp-proxy/config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(config, encoding="utf-8")
    return home


def multiply(file: Path, by: int) -> None:
    """Each turn so many times, a quarter hour apart, so that running totals move by whole buckets."""
    sys.stderr.write(f"copying the turns of a ledger {by - 1} times\n")
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):  # it can be made again
            database.execute(f"PRAGMA {pragma}")
        database.execute("CREATE TEMP TABLE copy (number INTEGER)")
        database.executemany("INSERT INTO copy VALUES (?)", [(number,) for number in range(1, by)])
        for table in ("turn", "line", "session"):
            _copy(database, table)
        note_all(Executor(database))
        _add_up(database)
        for column in ("count", "units", "nano"):
            database.execute(f"UPDATE tally SET {column} = {column} * ?", (by,))
        database.execute("PRAGMA journal_mode = WAL")


def row_of(number: int, turns: int, now: int, chance: random.Random) -> Row:
    """Turns come evenly over the years until now; what a session is about stays the same in it."""
    session = number // TURNS_A_SESSION
    fixed = random.Random(session)
    model = fixed.choice(MODELS)
    start = now - (turns - number) * (YEARS * 365 * _DAY // turns) - MINUTE
    usage = Usage(chance.randrange(5000), chance.randrange(90_000), chance.randrange(3000), chance.randrange(2000))
    used = chance.randrange(5000, 190_000)
    stop_reason = "end_turn" if chance.random() < 0.95 else "cancelled"
    return row(
        UsageLine(model, usage, Money(chance.randrange(10**9), "USD"), f"lab/{model}"),
        id=f"{number:012x}-0000-7000-8000-000000000000",
        origin=Origin("default", "alice", "core", fixed.choice(PROJECTS), "laptop", fixed.choice(AGENTS), "1.0", "zed"),
        session=f"sess-{session}",
        at=start,
        took=40 * SECOND,
        stop_reason=stop_reason,
        usage_source="agent" if chance.random() < 0.9 else "partial",
        state=SessionState(used, 200_000, model=model, title=f"Fix the tests of part {session}"),
        context_used=used,
        context_size=200_000,
    )


def _append(file: Path, turns: int) -> None:
    now, chance = time.time_ns(), random.Random(turns)
    with closing(open_ledger(f"sqlite:///{file}", journals=())) as ledger:
        for start in range(0, turns, _BATCH):
            ledger.append([row_of(number, turns, now, chance) for number in range(start, min(start + _BATCH, turns))])
            sys.stderr.write(f"\rmaking a ledger of {turns:,} turns: {start + _BATCH:,}")
    sys.stderr.write("\n")


def _copy(database: sqlite3.Connection, table: str) -> None:
    """Copies follow their original in the order of keys, so that pages are filled one after the other."""
    changed = {name: f"{name} || '-' || number" for name in ("id", "turn", "session")}
    changed |= {name: f"{name} - number * {QUARTER_HOUR}" for name in ("started_at", "ended_at")}
    columns = [found[1] for found in database.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(column, column) for column in columns)
    database.execute(f"CREATE TEMP TABLE original AS SELECT * FROM main.{table}")
    database.execute(f"INSERT INTO {table} SELECT {values} FROM original CROSS JOIN copy")
    database.execute("DROP TABLE original")


def _add_up(database: sqlite3.Connection) -> None:
    """The totals of quarter hours from those of the original, and all others from these."""
    sums = ", ".join(f"sum({column})" for column in COUNTS)
    moved = f"min(first_at - number * {QUARTER_HOUR}), max(last_at - number * {QUARTER_HOUR})"
    database.execute("CREATE TEMP TABLE quarter AS SELECT * FROM total WHERE level = 0")
    database.execute("DELETE FROM total")
    database.execute("INSERT INTO copy VALUES (0)")
    database.execute(f"""
        INSERT INTO total SELECT org_id, 0, series, bucket - number AS moved, {sums}, {moved}
        FROM quarter CROSS JOIN copy GROUP BY org_id, series, moved
    """)
    for level, size in enumerate((*LEVELS[1:], 2**62), 1):
        bucket = "0" if level == WHOLE else f"bucket / {size}"
        database.execute(f"""
            INSERT INTO total SELECT org_id, {level}, series, {bucket} AS larger, {sums}, min(first_at), max(last_at)
            FROM total WHERE level = 0 GROUP BY org_id, series, larger
        """)


def main() -> int:
    """`python -m bench.ledgers TURNS…` makes them beforehand."""
    for turns in sys.argv[1:]:
        began = time.monotonic()
        home = ledger_of(int(turns))
        size = (home / LEDGER).stat().st_size / 1e6
        sys.stdout.write(f"{turns} turns: {home}, {size:.0f} MB, {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
