"""`python -m bench.growth --built DIR`: how cost grows with turns, users, messages, proxies; tables, pictures, JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench import growth_holds, growth_ledgers, growth_postgres, growth_relays
from bench.documents import MEASURED, machine, put, put_json, put_picture, today
from bench.growth_ledgers import Costs
from bench.ledgers import DIRECTORY
from bench.svg import Axis, Points, lines

SIZES = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000  # takes minutes to make and 6 GB: measured where it is there already, or asked for

Figures = dict[str, dict[str, Any]]  # part -> when it was measured, the load at its end, and what by size


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-growth", description="Parts that are not measured are kept.")
    parser.add_argument("--built", type=Path, required=True, help="where the programs in C are")
    parser.add_argument("--turns", type=int, nargs="+", help=f"sizes of ledgers; {LARGEST} is made only when given")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS), help="only these")
    parser.add_argument("--resume", action="store_true", help="go on where a run of today was broken off")
    parser.add_argument("--write", action="store_true", help="put tables, pictures and figures into docs/")
    options = parser.parse_args()
    kept = options.built / "growth.json"
    found = _figures(kept)
    for part in options.parts:
        if options.resume and found.get(part, {}).get("measured", "").startswith(today()):
            continue
        began = time.monotonic()
        by_size = _PARTS[part](options)
        load = round(os.getloadavg()[0], 1)  # by whoever else works on this machine, too
        found[part] = {"measured": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "load": load, "by_size": by_size}
        put_json(kept, found)
        sys.stderr.write(f"measured: {part}, in {time.monotonic() - began:.0f} s\n")
    text = report(found)
    sys.stdout.write("\n".join(text) + "\n")
    if options.write:
        put("performance.md", "growth", text)
        put_json(MEASURED / "growth.json", {"date": today(), "machine": machine(), **found})
        for name, _, svg in pictures(found):
            put_picture(name, svg)
    return 0


def _ledgers(options: argparse.Namespace) -> dict[str, Any]:
    larger = (LARGEST,) if any(DIRECTORY.glob(f"{LARGEST}/made")) else ()
    found = {}
    for turns in options.turns or (*SIZES, *larger):
        found[str(turns)] = growth_ledgers.on_sqlite(turns)
        sys.stderr.write(f"measured: a ledger of {turns:,} turns\n")
    return found


def _of_relays(part: Callable[[Path], Iterable[tuple[int, Costs]]], options: argparse.Namespace) -> dict[str, Any]:
    return {str(size): costs for size, costs in part(options.built / "agent")}


def _holds(_: argparse.Namespace) -> dict[str, Any]:
    return {str(size): costs for size, costs in growth_holds.on_sqlite()}


def _ledgers_on_postgres(options: argparse.Namespace) -> dict[str, Any]:
    return {str(turns): costs for turns, costs in growth_postgres.ledgers(options.turns or SIZES)}


def _holds_on_postgres(_: argparse.Namespace) -> dict[str, Any]:
    return {str(size): costs for size, costs in growth_postgres.holds()}


_PARTS: Mapping[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "ledgers": _ledgers,
    "holds": _holds,
    "postgresql": _ledgers_on_postgres,
    "postgresql-holds": _holds_on_postgres,
    "messages": partial(_of_relays, growth_relays.messages),
    "turns": partial(_of_relays, growth_relays.turns),
    "proxies": partial(_of_relays, growth_relays.proxies),
}


def report(found: Figures) -> list[str]:
    """Markdown lines."""
    days = sorted({part["measured"][:10] for part in found.values()})
    text = [f"Measured {' and '.join(days)} on {machine()}."]
    if ledgers := _by_size(found, "ledgers"):
        text += ["", "Processor time in milliseconds, by turns in the ledger:", ""]
        text += _asked(ledgers, "cpu ms")
        text += ["", "Largest memory of the commands in MB:", ""]
        text += _asked(ledgers, "MB")
    if ledgers := _by_size(found, "postgresql"):
        where = f"its server on the same machine, of load {found['postgresql']['load']:.0f}"
        text += ["", f"On PostgreSQL, milliseconds until the answer; {where}:", ""]
        text += _asked(ledgers, "ms")
    for part, title in _TITLES.items():
        if by_size := _by_size(found, part):
            text += ["", title, "", *_grown(by_size)]
    shown = [f"\n![{title}](pictures/{name})" for name, title, _ in pictures(found)]
    return [*text, *shown, "", "Every figure: [growth.json](measured/growth.json)."]


_TITLES = {
    "holds": "A turn on two budgets, by the combinations of user, model and agent that share one of them:",
    "postgresql-holds": "The same on PostgreSQL, in microseconds until the answer:",
    "messages": "One session by its messages:",
    "turns": "One session by its turns:",
    "proxies": "Proxies on one ledger with a budget, four turns a second each:",
}


def _asked(ledgers: Mapping[int, Mapping[str, Costs]], figure: str) -> Iterator[str]:
    names = dict.fromkeys(name for asked in ledgers.values() for name, costs in asked.items() if figure in costs)
    yield "| | " + " | ".join(f"{turns:,}" for turns in ledgers) + " |"
    yield "|---" + "|--:" * len(ledgers) + "|"
    for name in names:
        cells = [_figure(asked[name][figure]) if name in asked else "not measured" for asked in ledgers.values()]
        yield f"| {name} | {' | '.join(cells)} |"


def _grown(by_size: Mapping[int, Costs]) -> Iterator[str]:
    names = dict.fromkeys(name for costs in by_size.values() for name in costs)
    yield "| | " + " | ".join(f"{size:,}" for size in by_size) + " |"
    yield "|---" + "|--:" * len(by_size) + "|"
    for name in names:
        yield f"| {name} | " + " | ".join(_figure(costs[name]) for costs in by_size.values()) + " |"


def pictures(found: Figures) -> Iterator[tuple[str, str, str]]:
    """Their file names and titles, and SVG."""
    if ledgers := _by_size(found, "ledgers"):
        names = dict.fromkeys(name for asked in ledgers.values() for name in asked)
        series = {
            name: [(turns, asked[name]["cpu ms"]) for turns, asked in ledgers.items() if name in asked]
            for name in names
        }
        axes = Axis("turns in the ledger"), Axis("milliseconds of processor time")
        yield _picture("growth-ledger.svg", "Cost of a question by the size of the ledger", *axes, series)
    sessions = {part: _by_size(found, part) for part in ("messages", "turns")}
    memory = {name: [(size, costs["MB"]) for size, costs in by_size.items()] for name, by_size in sessions.items()}
    if all(memory.values()):
        axes = Axis("messages or turns of one session"), Axis("MB resident", logarithmic=False)
        yield _picture("growth-memory.svg", "Memory of a relay over a session", *axes, memory)
    if by_proxies := _by_size(found, "proxies"):
        delays = {
            name: [(size, costs[name]) for size, costs in by_proxies.items()] for name in ("p50 ms", "p99 ms", "cpu ms")
        }
        axes = Axis("proxies on one ledger"), Axis("milliseconds a turn")
        yield _picture("growth-proxies.svg", "A turn by the number of proxies", *axes, delays)


def _picture(name: str, title: str, x: Axis, y: Axis, series: Mapping[str, Points]) -> tuple[str, str, str]:
    return name, title, lines(title, x, y, series)


def _by_size(found: Figures, part: str) -> dict[int, Any]:
    by_size = found.get(part, {}).get("by_size", {})
    return {int(size): by_size[size] for size in sorted(by_size, key=int)}


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _figures(path: Path) -> Figures:
    try:
        found: Figures = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    return found


if __name__ == "__main__":
    sys.exit(main())
