"""The commands, in the order of `--help`, and the parser of them all.

A module each, imported when its command is asked for: `add_options` describes the command, `main` does what was asked
for and returns the exit status.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol, cast

from acp_proxy import __version__
from acp_proxy.cli import arguments
from acp_proxy.cli.parser import Parser

COMMANDS = {
    "run": "relay an agent and meter it",
    "report": "what was spent",
    "export": "spend in the columns of FinOps FOCUS, for chargeback",
    "reconcile": "a provider's bill beside the ledger, and why they differ",
    "session": "one session: its turns, tokens, cost, and context as a plot",
    "status": "one line: today's spend, what is left of a budget, the last turn",
    "budget": "budgets: what is left, and how to allow more for a while",
    "serve": "the ledger as a page for browsers, and metrics for Prometheus",
    "hub": "one service for a team: sign-in, budgets and reports, with no database password on any machine",
    "metrics": "the metrics for Prometheus, in a file for node_exporter or on stdout",
    "notify": "try the webhooks for notifications",
    "setup": "put the agents of an editor behind acp-proxy",
    "prices": "what models cost",
    "ledger": "copy a ledger into another one",
    "import": "what agents wrote of their calls into files of their own, also from before acp-proxy",
    "login": "sign this machine in at a hub",
    "logout": "end what login began, at the hub as well",
    "whoami": "whom a hub knows you as: user, role, team, organisation",
    "config": "every value of the configuration, and where it comes from",
    "doctor": "check configuration, ledger and catalog",
    "demo": "a session against a bundled agent, without network or key",
    "completion": "a script that lets a shell complete commands and options",
}
_SAYS = "Relays the Agent Client Protocol, and meters what agents use."
_MORE = "`acp-proxy COMMAND --help` explains each command, `acp-proxy demo` shows them at work."


class Command(Protocol):
    """A module of a command. `EXAMPLE` is what follows `acp-proxy` in the last line of its help."""

    EXAMPLE: str

    def add_options(self, command: argparse.ArgumentParser) -> None: ...

    def main(self, asked: argparse.Namespace) -> int:
        """The exit status. Raises UsageError, ConfigError, LedgerError and OSError."""


def command_of(name: str) -> Command:
    """The module that does the command of this name."""
    module = "imports" if name == "import" else name  # `import` is a word of Python
    return cast("Command", import_module(f"{__name__}.{module}"))


def parser(*, complete: bool = False, only: str | None = None) -> argparse.ArgumentParser:
    """The result has `command`, and for commands with more of them `action`.

    A command has its options once it is the one that is asked for, or with `complete` from the start. With `only` it
    is the only one: that of a command line which begins with it, and so says nothing of others.
    """
    top = Parser("acp-proxy", description=_SAYS, epilog=_MORE)
    top.add_argument("-V", "--version", action="version", version=f"acp-proxy {__version__}")
    arguments.add_common(top)
    commands = top.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    for name, says in COMMANDS.items() if only is None else [(only, COMMANDS[only])]:
        command = cast("Parser", arguments.add_command(commands, name, says))  # of the class of `top`
        command.describe = _describe
        if complete:
            command.described()
    return top


def _describe(command: Parser) -> None:
    module = command_of(command.prog.rpartition(" ")[2])
    command.epilog = arguments.example(module.EXAMPLE)
    module.add_options(command)
