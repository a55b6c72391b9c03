"""`acp-proxy metrics`: the metrics once, to stdout or into a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acp_proxy.cli import arguments, options

EXAMPLE = "metrics --textfile /var/lib/node_exporter/acp-proxy.prom"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    into = "a file for node_exporter's textfile collector, written whole or not at all; by default stdout"
    command.add_argument("--textfile", metavar="PATH", help=into)


def main(asked: argparse.Namespace) -> int:
    with options.installed("metrics"):
        from acp_proxy.metrics import command
    config, tell = options.config(asked), options.tell(asked)
    if asked.textfile is None:
        sys.stdout.buffer.write(command.scraped(config, tell))
    else:
        command.into_file(Path(asked.textfile), config, tell)
    return 0
