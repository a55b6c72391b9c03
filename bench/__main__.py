"""`python -m bench --built DIR`: measures acp-proxy and its peers, prints the goals, and writes docs/performance.md."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.documents import MEASURED, machine, put, put_json, put_picture, today
from bench.goals import all_met, compared, goals_table
from bench.parts import PARTS, RELAYS, relays
from bench.rounds import Relays, Results
from bench.side_by_side import PICTURES, pictures, tables

PUBLISHED = MEASURED / "performance.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Parts that are not measured are kept.")
    parser.add_argument(
        "--built", type=Path, required=True, help="where the programs in C are, and peers' node_modules"
    )
    parser.add_argument("--batches", type=int, default=20, help="of each relay; fewer are too noisy to judge by")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these; the default is all")
    parser.add_argument("--resume", action="store_true", help="go on where a run of today was broken off")
    parser.add_argument("--json", type=Path, help="keep every figure of every round here")
    parser.add_argument("--write", action="store_true", help="put tables, pictures and figures into docs/")
    options = parser.parse_args()

    kept: Path = options.json or options.built / "performance.json"
    results = _results_of(kept)
    done = [name for name, when in results.measured.items() if options.resume and when.startswith(today())]
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):  # ignored under nohup, and would be inherited so
        signal.signal(number, signal.default_int_handler)
    available, results.absent = relays(options.built)
    with tempfile.TemporaryDirectory(prefix="bench-home-") as home:
        # A ledger of its own, and no options: a start without a configuration is what is measured.
        os.environ |= {"XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
        _measure(results, [name for name in options.parts if name not in done], available, options.batches, kept)
    text = report(results)
    sys.stdout.write("\n".join(text) + "\n")
    for line in compared(results, _results_of(PUBLISHED)):
        sys.stderr.write(f"outside of what was published: {line}\n")
    if options.write:
        put("performance.md", "measured", text)
        put_json(PUBLISHED, {"date": today(), "machine": machine(), **results.as_json()})
        for name, svg in pictures(results, RELAYS):
            put_picture(name, svg)
    return 0 if all_met(results) else 1


def _measure(results: Results, names: Sequence[str], available: Relays, batches: int, kept: Path) -> None:
    for name in names:
        began = time.monotonic()
        results.failures = {where: why for where, why in results.failures.items() if not where.startswith(f"{name}, ")}
        PARTS[name].run(results, name, available, batches)
        results.measured[name] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        put_json(kept, results.as_json())
        sys.stderr.write(f"measured: {name}, in {time.monotonic() - began:.0f} s\n")


def _results_of(path: Path) -> Results:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return Results()
    return Results.from_json(found) if isinstance(found, Mapping) and "measured" in found else Results()


def report(results: Results) -> list[str]:
    days = sorted({when[:10] for when in results.measured.values()})
    return [
        f"Measured {' and '.join(days)} on {machine()}.",
        "",
        *goals_table(results),
        "",
        *tables(results, RELAYS),
        *(f"\n![{title}](pictures/performance-{name}.svg)" for name, title in PICTURES.items()),
        "",
        f"Every figure of every round: [{PUBLISHED.name}](measured/{PUBLISHED.name}).",
    ]


if __name__ == "__main__":
    sys.exit(main())
