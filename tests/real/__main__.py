"""`python -m tests.real --npm DIR [AGENT …]`: runs released agents through acp-proxy, and judges its ledger."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.agents import AGENTS, NODE, Agent
from tests.real.client import AgentError
from tests.real.model import Tokens
from tests.real.runs import SCENARIOS, Run, run, say

HEADER = (
    "agent",
    "ACP",
    "scenario",
    "turns",
    "rows",
    "served",
    "in the ledger",
    "beside the turns",
    "sources",
    "completed",
    "cost",
    "verdict",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="real-agents", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"of {', '.join(AGENTS)}; default: all")
    parser.add_argument("--npm", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="default: all")
    parser.add_argument("--direct", action="store_true", help="without acp-proxy, to see that an agent runs at all")
    parser.add_argument("--packages", action="store_true", help="list what has to be installed, and stop")
    options = parser.parse_args()
    agents = [AGENTS[name] for name in options.agents or AGENTS]
    if options.packages:
        say(f"node{NODE} node@{NODE}", *(f"{agent.name} {agent.package}" for agent in agents))
        return 0

    say("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|")
    good, shares = True, {agent.name: Share() for agent in agents}
    for agent in agents:
        for version in agent.versions:
            for scenario in options.scenario or SCENARIOS:
                cells, right = _one(agent, scenario, version, options, shares[agent.name])
                say("| " + " | ".join((agent.package.rpartition("/")[2], str(version), scenario, *cells)) + " |")
                good = good and right
    say("", "| agent | turns | exact | exact once completed |", "|---|--:|--:|--:|")
    say(*(f"| {name} | {share.turns} | {share.exact} | {share.completed} |" for name, share in shares.items()))
    return 0 if good else 1


@dataclass
class Share:
    """How many turns of an agent are exact, and how many are once they were completed from what it recorded."""

    turns: int = 0
    exact: int = 0
    completed: int = 0

    def add(self, seen: Run) -> None:
        self.turns += len(seen.turns)
        self.exact += sum(row["usage_source"] == "agent" for row in _turns(seen.rows))
        self.completed += sum(row["usage_source"] == "agent" for row in _turns(seen.completed))


def _one(
    agent: Agent, scenario: str, version: int, options: argparse.Namespace, share: Share
) -> tuple[list[str], bool]:
    with tempfile.TemporaryDirectory(prefix="real-agents-", ignore_cleanup_errors=True) as home:
        try:
            seen = run(agent, scenario, version, options.npm, Path(home), direct=options.direct)
        except (AgentError, TimeoutError) as error:
            stderr = Path(home, "stderr").read_text(errors="replace").strip().splitlines()
            return [*[""] * 8, f"failed: {error} {' '.join(stderr[-1:])[:120]}"], False
    share.add(seen)
    wrong = [] if options.direct else faults(seen)
    verdict = "ran" if options.direct else "right"
    return [*_cells(seen), "; ".join(wrong) or verdict], not wrong


def faults(seen: Run) -> list[str]:
    """What the ledger says and the model does not, one line each; before and after the turns were completed."""
    before, after = _turns(seen.rows), _turns(seen.completed)
    return [*_faults(before, seen), *(f"completed, {fault}" for fault in _faults(after, seen))]


def _turns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == "turn"]


def _faults(rows: list[dict[str, Any]], seen: Run) -> list[str]:
    if len(rows) != len(seen.turns):
        return [f"{len(rows)} rows for {len(seen.turns)} turns"]
    found = []
    for number, (row, turn) in enumerate(zip(rows, seen.turns, strict=True), 1):
        counted = Tokens(**{name: count for name, count in row["tokens"].items() if name != "total"})
        told, served = (counted.prompt, counted.completion), (turn.main.prompt, turn.main.completion)
        exact = told == served or (turn.unfinished and told[0] == served[0] and told[1] < served[1])
        if row["usage_source"] == "agent" and not exact:
            found.append(f"turn {number}: {told} is not {served}")
        if row["usage_source"] == "partial" and row["tokens"]["total"] > turn.main.total + turn.side.total:
            found.append(f"turn {number}: more than was served")
    return found


def _cells(seen: Run) -> list[str]:
    main = sum((turn.main for turn in seen.turns), Tokens())
    side = sum((turn.side for turn in seen.turns), Tokens())
    turns = _turns(seen.rows)
    beside: Counter[str] = Counter()
    for row in seen.rows:
        if row["kind"] != "turn":
            beside[row["kind"]] += row["tokens"]["total"]
    return [
        str(len(seen.turns)),
        str(len(seen.rows)),
        f"{main.total:,}" + (f" + {side.total:,}" if side.total else ""),
        f"{sum(row['tokens']['total'] for row in turns):,}",
        ", ".join(f"{kind} {total:,}" for kind, total in beside.items()) or "–",
        _counted(row["usage_source"] for row in turns),
        _counted(row["usage_source"] for row in _turns(seen.completed)),
        _counted(row["cost_source"] for row in turns),
    ]


def _counted(values: Any) -> str:
    return ", ".join(f"{count} {value}" for value, count in Counter(values).items()) or "–"


if __name__ == "__main__":
    sys.exit(main())
