"""`acp-proxy run`, described for `--help`: `startup/start.py` reads its options, before anything here is imported."""

from __future__ import annotations

import argparse

from acp_proxy.cli import arguments
from acp_proxy.system.errors import UsageError

EXAMPLE = "run --budget 5 -- claude-agent-acp"


def add_options(command: argparse.ArgumentParser) -> None:
    command.usage = "acp-proxy [run [OPTIONS]] -- AGENT [ARG...]"
    command.description = (
        "Relay an agent and meter it. Everything after -- belongs to the agent; its exit status is the exit status."
    )
    arguments.add_common(command)
    command.add_argument("--agent", metavar="NAME", help="a name to use instead of the one that the agent reports")
    command.add_argument("--user", metavar="NAME", help="who pays; by default the login name")
    command.add_argument("--team", metavar="NAME", help="by default none")
    command.add_argument("--project", metavar="NAME", help="by default the name of the git repository")
    command.add_argument("--budget", metavar="AMOUNT", help="US dollars that this run may spend, over all its sessions")
    command.add_argument("--no-summary", action="store_true", help="no summary on stderr at the end")
    command.add_argument("--log", metavar="FILE", help="log to a file instead of stderr")
    command.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning (default) or error")


def main(_: argparse.Namespace) -> int:
    raise UsageError("no agent given; usage: acp-proxy run [OPTIONS] -- AGENT [ARG...]")
