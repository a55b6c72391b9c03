"""`acp-proxy whoami`: whom a hub knows this machine as, what they asked it for, and what it has lent."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from acp_proxy.cli import arguments, options
from acp_proxy.system.errors import UsageError

if TYPE_CHECKING:
    from acp_proxy.core.budget.requests import MoreRequest
    from acp_proxy.policy.borrowed import Borrowed

EXAMPLE = "whoami"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("url", metavar="URL", nargs="?", type=arguments.text, help="the hub; by default all")
    command.add_argument("--json", action="store_true", help="for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.signin import SignInError, command
    from acp_proxy.status import at_hub

    try:
        found = command.whoami(asked.url, os.environ)
    except SignInError as error:
        raise UsageError(str(error)) from error
    beside = [_beside(str(each["hub"]), str(each.get("user"))) for each in found]
    if asked.json:
        told = [
            each
            | {"requests": [at_hub.described(one) for one in requests], "lent": list(map(at_hub.described_loan, lent))}
            for each, (requests, lent) in zip(found, beside, strict=True)
        ]
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
        return 0
    zone = options.zone(None)
    for each, (requests, lent) in zip(found, beside, strict=True):
        sys.stdout.write(command.in_words(each) + "\n")
        sys.stdout.writelines(f"  {line}\n" for line in at_hub.in_lines(requests, lent, zone))
    return 0


def _beside(hub: str, user: str) -> tuple[list[MoreRequest], list[Borrowed]]:
    """What they have asked for, and what is lent; of a hub that does not say it nothing is told."""
    from acp_proxy.ledger import LedgerError
    from acp_proxy.policy.borrowed import borrowed
    from acp_proxy.policy.editing import opened
    from acp_proxy.status import at_hub

    now = time.time_ns()
    requests: list[MoreRequest] = []
    with suppress(LedgerError), opened(hub) as ledger:
        requests = at_hub.news(ledger.requests(own=True), now)
    return requests, borrowed(hub, user, os.environ, now)
