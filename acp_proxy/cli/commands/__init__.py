"""The commands, in the order of `--help`, and the parser of them all.

A module each: `add_options` describes the command, `main` does what was asked for and returns the exit status.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol

from acp_proxy import __version__
from acp_proxy.cli import arguments
from acp_proxy.cli.commands import (
    budget,
    completion,
    config,
    demo,
    doctor,
    export,
    hub,
    imports,
    ledger,
    login,
    logout,
    metrics,
    notify,
    prices,
    reconcile,
    report,
    run,
    serve,
    session,
    setup,
    status,
    whoami,
)
from acp_proxy.cli.parser import Parser

_SAYS = "Relays the Agent Client Protocol, and meters what agents use."
_MORE = "`acp-proxy COMMAND --help` explains each command, `acp-proxy demo` shows them at work."


class Command(Protocol):
    """A module of a command. `EXAMPLE` is what follows `acp-proxy` in the last line of its help."""

    NAME: str
    SAYS: str
    EXAMPLE: str

    def add_options(self, command: argparse.ArgumentParser) -> None: ...

    def main(self, asked: argparse.Namespace) -> int:
        """The exit status. Raises UsageError, ConfigError, LedgerError and OSError."""


COMMANDS: tuple[Command, ...] = (
    run,
    report,
    export,
    reconcile,
    session,
    status,
    budget,
    serve,
    hub,
    metrics,
    notify,
    setup,
    prices,
    ledger,
    imports,
    login,
    logout,
    whoami,
    config,
    doctor,
    demo,
    completion,
)


def parser() -> argparse.ArgumentParser:
    """The result has `command`, and for commands with more of them `action`."""
    top = Parser("acp-proxy", description=_SAYS, epilog=_MORE)
    top.add_argument("-V", "--version", action="version", version=f"acp-proxy {__version__}")
    arguments.add_common(top)
    commands = top.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    for each in COMMANDS:
        each.add_options(arguments.add_action(commands, each.NAME, each.SAYS, each.EXAMPLE))
    return top


def main_of(name: str) -> Callable[[argparse.Namespace], int]:
    """What does the command of this name."""
    return next(each.main for each in COMMANDS if name == each.NAME)
