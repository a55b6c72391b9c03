"""`acp-proxy setup`: the agents of an editor behind acp-proxy."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments, options
from acp_proxy.setup import NAMES
from acp_proxy.system.errors import UsageError

EXAMPLE = "setup zed --dry-run"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("editor", metavar="EDITOR", choices=NAMES, nargs="?", help=", ".join(NAMES))
    command.add_argument(
        "--agent", metavar="NAME", help="only this one; added if it is not there: claude, codex, gemini …"
    )
    way = command.add_mutually_exclusive_group()
    way.add_argument("--list", action="store_true", help="the editors, their settings, and the agents in them")
    way.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
    way.add_argument("--undo", action="store_true", help="put the settings back as they were")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.setup import NAMES, command, showing
    from acp_proxy.setup.changes import SetupError

    colours = options.width() is not None and not os.environ.get("NO_COLOR")
    if asked.list:
        sys.stdout.write(showing.found(os.environ))
        return 0
    if asked.editor is None:
        raise UsageError(f"setup: expected an editor, one of {', '.join(NAMES)}, or --list")
    wanted = command.Asked(asked.editor, asked.agent, asked.dry_run, asked.undo)
    try:
        sys.stdout.write(command.main(wanted, os.environ, colours=colours))
    except SetupError as error:
        raise UsageError(str(error)) from error
    return 0
