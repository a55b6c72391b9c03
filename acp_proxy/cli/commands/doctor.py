"""`acp-proxy doctor`: checks of configuration, ledger and catalog."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments, options

EXAMPLE = "doctor --rebuild"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    again = "recompute all totals of the ledger from its rows; writers wait meanwhile"
    command.add_argument("--rebuild", action="store_true", help=again)


def main(asked: argparse.Namespace) -> int:
    from acp_proxy import doctor

    return doctor.main(options.common(asked), os.environ, sys.stdout, rebuild=asked.rebuild)
