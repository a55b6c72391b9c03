"""`acp-proxy hub`: one service for a team, in front of a ledger."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from acp_proxy.cli import options
from acp_proxy.cli.commands import hub_administration

EXAMPLE = "hub --config /etc/acp-proxy/hub.toml"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", metavar="FILE", help="hub.toml; by default a hub for this machine alone")
    command.add_argument("--port", metavar="N", help="by default 8765; 0 picks a free one")
    hub_administration.add_actions(command.add_subparsers(metavar="ACTION", title="actions", dest="action"))


def main(asked: argparse.Namespace) -> int:
    if asked.action is not None:
        return hub_administration.main(asked)
    with options.installed("hub", "hub"):
        from acp_proxy.hub import command
    given = None if asked.config is None else Path(asked.config).expanduser()
    return command.main(given, asked.port, os.environ, sys.stderr)
