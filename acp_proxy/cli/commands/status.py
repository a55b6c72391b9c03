"""`acp-proxy status`: one line for prompts and status bars."""

from __future__ import annotations

import argparse
import os

from acp_proxy.cli import arguments, options
from acp_proxy.status.overview import FIELDS
from acp_proxy.system.errors import UsageError

EXAMPLE = "status --format '{today} {left}'"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    form = command.add_mutually_exclusive_group()
    fields = f"with fields in braces: {', '.join(FIELDS)}; or json"
    form.add_argument("--format", metavar="TEXT", help=fields)
    form.add_argument("--json", action="store_true", help="exact figures, for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.status import command

    form = {} if asked.format is None else {"format": asked.format}
    if asked.json:
        form = {"format": "json"}
    if wrong := command.main(asked.words, {**options.common(asked), **form}, os.environ):
        raise UsageError(wrong)
    return 0
