"""`acp-proxy import`: calls from agents' own files."""

from __future__ import annotations

import argparse
import os
import sys
import time

from acp_proxy.cli import arguments, options
from acp_proxy.system.errors import UsageError

EXAMPLE = "import --dry-run"


def add_options(command: argparse.ArgumentParser) -> None:
    from acp_proxy.importing.agents import AGENTS

    arguments.add_common(command)
    command.add_argument("agents", metavar="AGENT", nargs="*", help=f"all by default: {', '.join(AGENTS)}")
    command.add_argument("--since", metavar="TIME", help="only calls from then on, as for report")
    command.add_argument("--dry-run", action="store_true", help="show what would be imported, and write nothing")
    command.add_argument("--json", action="store_true", help="for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.importing import command, formats
    from acp_proxy.importing.agents import AGENTS
    from acp_proxy.importing.progress import bar

    for name in asked.agents:
        if name not in AGENTS:
            raise UsageError(f"import: expected one of {', '.join(AGENTS)}, not {name!r}")
    now, config = time.time_ns(), options.config(asked)
    since = options.instant(asked, "since", options.zone(None), now)
    wanted = command.Asked(tuple(asked.agents), since, asked.dry_run)
    with bar(sys.stderr) as progress:
        found = command.main(wanted, config, os.environ, now, progress)
    answer = formats.as_json if asked.json else formats.plain
    sys.stdout.write(answer(found, dry_run=asked.dry_run))
    return 0
