"""What a scrape costs: at ten thousand, a hundred thousand and a million turns, and at 18,000 series of 500 users.

Each in a process of its own, so that its memory is its own. Between scrapes turns end, as they do while people work.
`--quick` leaves the million out.
"""

from __future__ import annotations

import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, load
from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.metrics import Exporter
from acp_proxy.system.ids import uuid7
from bench.ledgers import multiply
from harness.rows import SECOND, row

SCRAPES = 15
ENDED_BETWEEN = 100  # turns
BEGAN = 1_795_262_400 * 10**9


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["measure"]:
        sys.stdout.write(json.dumps(measured(arguments[1], int(arguments[2]), user_label=arguments[3] == "True")))
        return
    with tempfile.TemporaryDirectory() as directory:
        turns(Path(directory), [10_000, 100_000] if "--quick" in arguments else [10_000, 100_000, 1_000_000])
        series(Path(directory))


def turns(directory: Path, sizes: list[int]) -> None:
    """The same 720 series, of 20 users, with more and more turns."""
    base, first = directory / "base.db", None
    fill(base, users=20, turns=sizes[0])
    for size in sizes:
        path = directory / f"{size}.db"
        shutil.copy(base, path)
        if size > sizes[0]:
            multiply(path, size // sizes[0])
        found = measure(path, 20, user_label=False)
        path.unlink()
        first = first or found
        say(f"{size:>9,} turns, 720 series", found, first)


def series(directory: Path) -> None:
    path = directory / "series.db"
    fill(path, users=500, turns=18_000)
    first = measure(path, 500, user_label=False)
    say("18,000 series", first, first)
    say("18,000 series, each shown", measure(path, 500, user_label=True), first)


def fill(path: Path, users: int, turns: int) -> None:
    """36 series a user: two agents, nine models, two reasons to stop."""
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        rows = [a_row(number, users) for number in range(turns)]
        for start in range(0, turns, 500):
            ledger.append(rows[start : start + 500])


def a_row(number: int, users: int) -> Row:
    user, of_user = number % users, number // users
    at = BEGAN + number * SECOND
    team, agent = f"team-{user % 10}", f"agent-{of_user // 9 % 2}"
    return row(
        UsageLine(f"model-{of_user % 9}", Usage(1000, 200, 30, 40, 5), Money(1_000_000 + number, "USD")),
        id=uuid7(at),
        origin=Origin("default", f"user-{user}", team, "web", "laptop", agent, "1", "zed"),
        session=f"s{number // 20}",
        at=at,
        took=20 * SECOND,
        stop_reason=("end_turn", "cancelled")[of_user // 18 % 2],
        context_used=50_000,
        context_size=200_000,
    )


def measure(path: Path, users: int, *, user_label: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.scrape_cost", "measure", f"sqlite:///{path}", str(users), str(user_label)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measured(url: str, users: int, *, user_label: bool) -> dict[str, float]:
    exporter = Exporter(_config(url, user_label=user_label), Catalog(), journals=())
    took, cpu, zipped = [], [], []
    with closing(open_ledger(url, journals=())) as ledger:
        for _ in range(SCRAPES):
            ledger.append([a_row(number, users) for number in range(ENDED_BETWEEN)])
            began, worked = time.perf_counter(), time.process_time()
            text = exporter.scrape(ledger)
            took.append(time.perf_counter() - began)
            cpu.append(time.process_time() - worked)
            worked = time.process_time()
            gzip.compress(text, 1, mtime=0)
            zipped.append(time.process_time() - worked)
    status = Path("/proc/self/status").read_text()
    memory = int(status.partition("VmHWM:")[2].split()[0]) / 1024  # what a child inherits of ru_maxrss is its parent's
    lines = sum(not line.startswith(b"#") for line in text.splitlines())
    return {
        "p50": statistics.median(took) * 1000,
        "best": min(took) * 1000,
        "cpu": statistics.median(cpu) * 1000,
        "begin": cpu[0] * 1000,
        "gzip": statistics.median(zipped) * 1000,
        "memory": memory,
        "samples": lines,
        "size": len(text) / 1000,
    }


def _config(url: str, *, user_label: bool) -> Config:
    environ = {"HOME": "/nowhere", "USER": "bench", "ACP_PROXY_METRICS__USER_LABEL": str(user_label).lower()}
    return load({"ledger": url}, environ, admin_file=Path("/nowhere"))


def say(what: str, found: dict[str, float], first: dict[str, float]) -> None:
    sys.stdout.write(
        f"{what}: p50 {found['p50']:.1f} ms, best {found['best']:.1f} ms, cpu {found['cpu']:.1f} ms "
        f"({found['cpu'] / first['cpu']:.2f} x the first ledger's; the first scrape {found['begin']:.0f} ms, "
        f"gzip {found['gzip']:.0f} ms more), {found['memory']:.0f} MB, "
        f"{found['samples']:,.0f} samples in {found['size']:.0f} kB\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
