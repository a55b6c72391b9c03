"""`acp-proxy serve`: the page and the metrics, by HTTP."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments, options
from acp_proxy.config import load_to_answer

EXAMPLE = "serve --port 8080"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("--host", metavar="ADDRESS", help="where to listen; by default 127.0.0.1")
    command.add_argument("--port", metavar="N", help="by default 9464; 0 picks a free one")
    command.add_argument(
        "--token-file", metavar="FILE", help="a file with the token that clients must send; needed except on loopback"
    )


def main(asked: argparse.Namespace) -> int:
    with options.installed("serve"):
        from acp_proxy.serve import command
    given = vars(asked)
    chosen = {name: given[name] for name in ("host", "port", "token_file") if given[name] is not None}
    return command.main(load_to_answer({**options.common(asked), **chosen}, os.environ), os.environ, sys.stderr)
