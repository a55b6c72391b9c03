"""`python -m tests.real.clients --npm DIR`: runs checkers and clients on released agents with and without acp-proxy.

The status is 1 when anything differs but the usage updates that acp-proxy adds.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.real.agents import AGENTS, CLAUDE, CODEX, NODE, Agent
from tests.real.budgets import ACPX
from tests.real.clients.checks import CHECKS, CONDUCTOR, Check, played
from tests.real.clients.toad import toad
from tests.real.runs import say

OURS = re.compile(r"usage_update|acp-proxy")


def main() -> int:
    parser = argparse.ArgumentParser(prog="check-clients", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"of {', '.join(CHECKS)}; default: all")
    parser.add_argument("--agent", choices=AGENTS, action="append", help="default: claude-agent-acp and codex-acp")
    parser.add_argument("--npm", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--packages", action="store_true", help="list what has to be installed, and stop")
    parser.add_argument("--whole", action="store_true", help="all that is said behind acp-proxy")
    options = parser.parse_args()
    agents = [AGENTS[name] for name in options.agent or (CLAUDE.name, CODEX.name)]
    if options.packages:
        say(
            f"node{NODE} node@{NODE}",
            f"acpx {ACPX}",
            f"conductor {CONDUCTOR}",
            *(f"{agent.name} {agent.package}" for agent in agents),
        )
        return 0

    say("| check | agent | lines compared | different |", "|---|---|---|---|")
    good = True
    if not options.checks and toad() is None:
        sys.stderr.write(
            "check-clients: no tmux, or no Toad (it needs Python 3.14; its command may stand in $TOAD): not checked\n"
        )
    for name in options.checks or (name for name in CHECKS if name != "toad" or toad()):
        for agent in agents:
            if name == "conformance-2" and 2 not in agent.versions:
                continue
            direct, relayed = both(CHECKS[name], agent, options.npm)
            different = [line for line in changed(direct, relayed) if not OURS.search(line)]
            say(f"| {name} | {agent.package.rpartition('/')[2]} | {len(direct)} | {len(different) or 'none'} |")
            say(*(f"    {line}" for line in (relayed if options.whole else different)))
            good = good and not different
    return 0 if good else 1


def both(check: Check, agent: Agent, npm: Path) -> tuple[list[str], list[str]]:
    """At the same time, in homes of their own."""
    homes = tempfile.TemporaryDirectory(prefix="check-clients-", ignore_cleanup_errors=True)
    with homes as name, ThreadPoolExecutor(2) as pool:
        direct = pool.submit(played, check, agent, npm, Path(name, "direct"), relayed=False)
        relayed = pool.submit(played, check, agent, npm, Path(name, "behind"), relayed=True)
        return direct.result(), relayed.result()


def changed(direct: list[str], relayed: list[str]) -> list[str]:
    return [line for line in difflib.ndiff(direct, relayed) if line[0] in "+-"]


if __name__ == "__main__":
    sys.exit(main())
