"""`acp-proxy whoami`: whom a hub knows this machine as."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments
from acp_proxy.system.errors import UsageError

EXAMPLE = "whoami"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("url", metavar="URL", nargs="?", type=arguments.text, help="the hub; by default all")
    command.add_argument("--json", action="store_true", help="for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.signin import SignInError, command

    try:
        sys.stdout.write(command.whoami(asked.url, os.environ, as_json=asked.json))
    except SignInError as error:
        raise UsageError(str(error)) from error
    return 0
