"""`acp-proxy logout`: the sign-in of this machine ends, at the hub as well."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments
from acp_proxy.system.errors import UsageError

EXAMPLE = "logout"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("url", metavar="URL", nargs="?", type=arguments.text, help="the hub; by default all")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.ledger.hub.returning import give_all_back
    from acp_proxy.signin import SignInError, command
    from acp_proxy.signin.asking import hub_url

    try:
        give_all_back(None if asked.url is None else hub_url(asked.url), os.environ)
        sys.stdout.write(command.logout(asked.url, os.environ))
    except SignInError as error:
        raise UsageError(str(error)) from error
    return 0
