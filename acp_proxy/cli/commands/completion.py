"""`acp-proxy completion`: scripts for shells."""

from __future__ import annotations

import argparse
import sys

from acp_proxy.cli import arguments
from acp_proxy.completion import SHELLS

EXAMPLE = "completion bash"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.completion import script_of

    sys.stdout.write(script_of(asked.shell))
    return 0
