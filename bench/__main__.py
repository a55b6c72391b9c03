"""`python -m bench --built DIR`: measures acp-proxy and its peers, prints the goals, and writes docs/performance.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench import right, spawned, traffic
from bench.goals import US, all_met, goals_table, relays_table
from bench.peer import proc
from bench.rounds import Relays, Results, afresh, alive

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument(
        "--built", type=Path, required=True, help="where the programs in C are, and peers' node_modules"
    )
    parser.add_argument("--batches", type=int, default=20, help="of each relay; fewer are too noisy to judge by")
    parser.add_argument("--json", type=Path, help="write every figure of every round here")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    options = parser.parse_args()

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):  # ignored under nohup, and would be inherited so
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bench-home-") as home:
        # A ledger of its own, and no options: a start without a configuration is what is measured.
        os.environ |= {"XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
        relays = available(options.built)
        results = measured(relays, options.batches)
    text = "\n".join(report(results, [name for name in relays if name not in ("direct", "exec")]))
    sys.stdout.write(text + "\n")
    for where, error in results.failures.items():
        sys.stderr.write(f"failed: {where}: {error}\n")
    if options.json:
        options.json.write_text(json.dumps({"rounds": results.rounds, "failures": results.failures}))
    if options.write:
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    return 0 if all_met(results) else 1


def available(built: Path) -> dict[str, list[str]]:
    """Commands by name. `direct` is the agent alone, `exec` a Python that does nothing but become the agent."""
    agent = str(built / "agent")
    peers, node = str(HERE / "peers"), shutil.which("node")
    relays = {
        "direct": [agent],
        "c": [str(built / "relay_rw"), "--", agent],
        US: [str(Path(sys.executable).parent / "acp-proxy"), "run", "--", agent],
        "asyncio-json": [sys.executable, f"{peers}/asyncio_json.py", "--", agent],
        "python-sdk": [sys.executable, f"{peers}/python_sdk.py", "--", agent],
        "exec": [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", agent],
    }
    if node:
        relays["node-pipe"] = [node, f"{peers}/node_pipe.mjs", "--", agent]
    if node and (built / "node_modules/@thinkwell/conductor").exists():
        relays["ts-conductor"] = [node, f"{peers}/ts_conductor.mjs", str(built / "node_modules"), "--", agent]
    return relays


def measured(relays: Relays, batches: int) -> Results:
    def only(*names: str) -> Relays:
        return {name: relays[name] for name in names}

    results, everyone = Results(), {name: command for name, command in relays.items() if name != "exec"}
    afresh(results, "start", spawned.start, only("exec", US, "c"), min(batches, 10))  # on all CPUs, as users have it
    afresh(results, "life", right.life, only(US), 1)
    afresh(results, "fidelity", right.fidelity, only(US), 1)
    os.sched_setaffinity(0, {_idlest_cpu()})  # one CPU for client, relay and agent: far less noise
    alive(results, "pings", traffic.pings, everyone, batches)
    alive(results, "usages", traffic.usages, only("direct", "c", US), batches)
    alive(results, "turns", traffic.turns, only("direct", "c", US), batches)
    alive(results, "chunks", traffic.chunks, everyone, batches)
    alive(results, "stream", traffic.Stream("msg"), everyone, batches)
    alive(results, "burst", traffic.Stream("burst"), everyone, batches)
    alive(results, "duplex", traffic.Duplex(), only("c", US), batches)
    alive(results, "16 MB", traffic.Huge(16), only("c", US), batches)
    alive(results, "100 MB", traffic.Huge(100), only("c", US), min(batches, 3))
    afresh(results, "rest", spawned.rest, only(US), 1)
    afresh(results, "stall", spawned.stall, only(US), 1)
    return results


def report(results: Results, relays: list[str]) -> list[str]:
    processor = next(
        (line.partition(": ")[2] for line in proc("/proc/cpuinfo").splitlines() if "model name" in line), ""
    )
    where = f"{os.cpu_count()} × {processor or platform.machine()}, Linux {platform.release()}"
    return [
        f"Measured {time.strftime('%Y-%m-%d')} on {where}, CPython {platform.python_version()}.",
        "",
        *goals_table(results),
        "",
        *relays_table(results, relays),
    ]


def _idlest_cpu() -> int:
    def idle() -> dict[int, int]:
        rows = [line.split() for line in proc("/proc/stat").splitlines() if line.startswith("cpu") and line[3] != " "]
        return {int(row[0][3:]): int(row[4]) for row in rows}

    before = idle()
    time.sleep(0.5)
    after = idle()
    return max(os.sched_getaffinity(0), key=lambda cpu: after[cpu] - before[cpu])


if __name__ == "__main__":
    sys.exit(main())
