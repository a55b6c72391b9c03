"""`acp-proxy notify`: a sample through the webhooks."""

from __future__ import annotations

import argparse
import sys
import time

from acp_proxy.cli import arguments, options

EXAMPLE = "notify test"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    tested = arguments.add_action(
        actions, "test", "send a sample through each channel: status 1 when one fails", "notify test leads"
    )
    arguments.add_common(tested)
    tested.add_argument("name", metavar="NAME", nargs="?", help="only the channel of this name")


def main(asked: argparse.Namespace) -> int:
    with options.installed("notify"):
        from acp_proxy.notify import command
    status, answer = command.test(options.config(asked), asked.name, time.time_ns())
    sys.stdout.write(answer)
    return status
