"""`acp-proxy login`: this machine signs in at a hub."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments
from acp_proxy.system.errors import UsageError

EXAMPLE = "login https://hub.example.com"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("url", metavar="URL", type=arguments.text, help="the hub: https://HOST")
    made = "a file with a token that an administrator made, - for stdin; by default a browser signs in"
    command.add_argument("--token-file", metavar="FILE", help=made)
    kept = "where tokens are kept: the keyring, by default if there is one, or a file that only you can read"
    command.add_argument("--store", metavar="WHERE", choices=("keyring", "file"), help=kept)
    command.add_argument("--no-browser", action="store_true", help="open none: the address is for another machine")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.ledger.hub.returning import give_all_back
    from acp_proxy.signin import SignInError, command
    from acp_proxy.signin.asking import hub_url

    wanted = command.Asked(asked.url, asked.token_file, asked.store, not asked.no_browser)
    try:
        give_all_back(hub_url(asked.url), os.environ)  # of who was signed in before
        sys.stdout.write(command.login(wanted, os.environ, _tell))
    except SignInError as error:
        raise UsageError(str(error)) from error
    return 0


def _tell(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
