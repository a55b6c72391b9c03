"""The command line: parses arguments, calls what does the work, and turns its errors into one line and a status.

`run` is only described here; `acp_proxy.start` reads its options by hand and starts the agent before anything else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from acp_proxy import __version__, report_json, report_text, times
from acp_proxy.config import Config, ConfigError, load
from acp_proxy.ledger import LedgerError, Query, open_ledger
from acp_proxy.report import BY, FILTERS, Report, query, report

USAGE_STATUS = 2


class UsageError(Exception):
    """The command line cannot be understood; the text is one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where a check failed, 2 for what the user must correct."""
    try:
        arguments = parser().parse_args(argv)
        status: int = arguments.call(arguments)
        sys.stdout.flush()
    except (UsageError, ConfigError, LedgerError) as error:
        sys.stderr.write(f"acp-proxy: {error}\n")
        return USAGE_STATUS
    except BrokenPipeError:  # `acp-proxy report | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def parser() -> argparse.ArgumentParser:
    """All commands and options; docs/commands.md has each of them."""
    top = _Parser("acp-proxy", description="Relays the Agent Client Protocol, and meters what agents use.")
    top.add_argument("--version", action="version", version=f"acp-proxy {__version__}")
    _add_common(top)
    commands = top.add_subparsers(metavar="COMMAND", title="commands", required=True)
    for name, says, add_options, call in (
        ("run", "relay an agent and meter it", _add_run, _run),
        ("report", "what was spent", _add_report, _report),
        ("doctor", "check configuration, ledger and catalog", _add_common, _doctor),
        ("demo", "a session against a bundled agent, without network or key", _add_common, _demo),
    ):
        command = commands.add_parser(name, help=says, description=f"{says[:1].upper()}{says[1:]}.")
        command.set_defaults(call=call)
        add_options(command)
    return top


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and takes no abbreviations: an option added later must not change a script."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _add_common(command: argparse.ArgumentParser) -> None:
    unset = argparse.SUPPRESS  # so that what stands before the command's name is kept
    command.add_argument("--config", metavar="FILE", default=unset, help="in place of the user's configuration file")
    command.add_argument("--ledger", metavar="URL", default=unset, help="sqlite:///PATH")


def _add_run(command: argparse.ArgumentParser) -> None:
    command.usage = "acp-proxy [run [OPTIONS]] -- AGENT [ARG...]"
    command.epilog = "Everything after -- belongs to the agent. Its exit status is the exit status."
    _add_common(command)
    command.add_argument("--agent", metavar="NAME", help="in place of the name that the agent reports")
    command.add_argument("--user", metavar="NAME", help="who pays; by default the login name")
    command.add_argument("--team", metavar="NAME", help="by default none")
    command.add_argument("--project", metavar="NAME", help="by default the name of the git repository")
    command.add_argument("--no-summary", action="store_true", help="no summary on stderr at the end")
    command.add_argument("--log", metavar="FILE", help="log to a file instead of stderr")
    command.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning (default) or error")


def _run(_: argparse.Namespace) -> int:
    raise UsageError("no agent given; usage: acp-proxy run [OPTIONS] -- AGENT [ARG...]")


def _add_report(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("--by", metavar="KEY", choices=BY, default="day", help=f"{', '.join(BY)} (default: day)")
    command.add_argument("--since", metavar="TIME", help="2026-11-01, an RFC 3339 time, or 7d (also h, m, w)")
    command.add_argument("--until", metavar="TIME", help="the same, exclusive")
    command.add_argument("--tz", metavar="ZONE", help="an IANA time zone; by default the local one")
    for name in FILTERS:
        part = "part of a session's title" if name == "title" else f"only this {name}"
        command.add_argument(f"--{name}", metavar="TEXT" if name == "title" else "NAME", help=part)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="exact figures, for programs")
    form.add_argument("--csv", action="store_true", help="the same for spreadsheets")


def _report(arguments: argparse.Namespace) -> int:
    zone = _zone(arguments.tz)
    now = time.time_ns()
    filters = [(name, value) for name in FILTERS if (value := getattr(arguments, name)) is not None]
    wanted = query(_instant(arguments, "since", zone, now), _instant(arguments, "until", zone, now), filters)
    ledger = open_ledger(_config(arguments).ledger.url)
    try:
        found = report(ledger, arguments.by, wanted, zone)
    finally:
        ledger.close()
    sys.stdout.write(_rendered(found, arguments))
    return 0


def _rendered(found: Report, arguments: argparse.Namespace) -> str:
    if arguments.json:
        return report_json.as_json(found)
    if arguments.csv:
        return report_json.as_csv(found)
    if not found.lines:
        return report_text.empty(filtered=found.query != Query())
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return report_text.coloured(found, shutil.get_terminal_size().columns)
    return report_text.plain(found)


def _zone(name: str | None) -> times.Zone:
    try:
        return times.local_zone(os.environ) if name is None else times.zone(name)
    except ValueError as error:
        raise UsageError(f"--tz: {error}") from error


def _instant(arguments: argparse.Namespace, option: str, zone: times.Zone, now: int) -> int | None:
    text = getattr(arguments, option)
    try:
        return None if text is None else times.parse(text, zone, now)
    except ValueError as error:
        raise UsageError(f"--{option}: {error}") from error


def _doctor(arguments: argparse.Namespace) -> int:
    from acp_proxy import doctor

    return doctor.main(_options(arguments), os.environ, sys.stdout)


def _demo(_: argparse.Namespace) -> int:
    from acp_proxy import demo

    return demo.main()


def _config(arguments: argparse.Namespace) -> Config:
    return load(_options(arguments), os.environ)


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    given = vars(arguments)
    return {name: given[name] for name in ("config", "ledger") if name in given}
