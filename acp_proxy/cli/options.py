"""Options of several commands, as values: a configuration, a time zone, an interval; and the terminal's width."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from acp_proxy.config import Config, load_to_answer
from acp_proxy.ledger import Tell
from acp_proxy.report import BY
from acp_proxy.system.errors import UsageError
from acp_proxy.text import times
from acp_proxy.text.figures import clean


def config(arguments: argparse.Namespace) -> Config:
    """Raises ConfigError."""
    return load_to_answer(common(arguments), os.environ)


def common(arguments: argparse.Namespace) -> dict[str, str]:
    """The options that all commands have, by their names in the configuration."""
    given = vars(arguments)
    return {name: given[name] for name in ("config", "ledger") if name in given}


def tell(arguments: argparse.Namespace) -> Tell | None:
    """Reports on stderr that there is no ledger, if `--ledger` names it: the path may be mistyped."""
    if "ledger" not in vars(arguments):
        return None
    return lambda told: sys.stderr.write(f"acp-proxy: {clean(told)}\n")


def copied(arguments: argparse.Namespace) -> Iterator[str]:
    """URLs of the ledgers that `ledger copy` names."""
    return filter(None, (ledger_url(arguments, name) for name in ("source", "target")))


def ledger_url(arguments: argparse.Namespace, name: str) -> str | None:
    """The URL of the ledger that `--from` (source) or `--to` (target) names by a path or a URL. Raises UsageError."""
    given = vars(arguments).get(name)
    if given is None:
        return None
    from acp_proxy.config.checks import ledger_url as checked

    try:
        return checked(given)
    except ValueError as error:
        raise UsageError(f"--{'from' if name == 'source' else 'to'}: {error}") from None


def report_key(arguments: argparse.Namespace) -> str:
    """The key of a report. `today` and `yesterday` in its place mean an interval, by the hour. Raises UsageError."""
    key: str | None = arguments.key
    if key not in (None, *BY, *times.DAYS):
        raise UsageError(f"report: expected {', '.join((*BY, *times.DAYS[:1]))} or {times.DAYS[1]}, not {key!r}")
    if key in times.DAYS:
        if arguments.since is not None or arguments.until is not None:
            raise UsageError(f"report: expected {key}, or --since and --until, not both")
        arguments.since = key
        arguments.until = "today" if key == "yesterday" else None
        return str(arguments.by or "hour")
    if key is not None and arguments.by not in (None, key):
        raise UsageError(f"report: expected {key} or --by {arguments.by}, not both")
    return str(key or arguments.by or "day")


def zone(name: str | None) -> times.Zone:
    """Raises UsageError."""
    try:
        return times.local_zone(os.environ) if name is None else times.zone(name)
    except ValueError as error:
        raise UsageError(f"--tz: {error}") from error


def interval(arguments: argparse.Namespace, zone: times.Zone, now: int) -> tuple[int | None, int | None]:
    """The interval of `--since` and `--until`, in Unix ns. Raises UsageError."""
    since, until = (instant(arguments, option, zone, now) for option in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise UsageError(f"--until: expected a time after that of --since, not {arguments.until!r}")
    return since, until


def instant(arguments: argparse.Namespace, option: str, zone: times.Zone, now: int) -> int | None:
    """The time that one option names, in Unix ns. Raises UsageError."""
    text = getattr(arguments, option)
    try:
        return None if text is None else times.parse(text, zone, now)
    except ValueError as error:
        raise UsageError(f"--{option}: {error}") from error


def budget_values(arguments: argparse.Namespace) -> dict[str, Any]:
    """The values that `budget add` and `budget set` write into a `[[budget]]`, by key. Raises UsageError."""
    given = vars(arguments)
    if arguments.action not in ("add", "set"):
        return {}
    values = {name: given[name] for name in ("per", "window", "timezone", "mode", "on_exceed", "on_overage")}
    values["limit"] = _limit(given)
    values["scope"] = dict(map(_scope, given["scope"])) if given["scope"] else None
    if arguments.action == "add" and values["limit"] is None:
        raise UsageError("budget add: expected a limit: --amount N, --tokens N, --turns N or --plan WINDOW")
    if arguments.action == "add" and values["window"] is None and given["plan"] is None:
        raise UsageError("budget add: expected --window, such as day or month")
    if not any(value is not None for value in values.values()):
        raise UsageError("budget set: expected what to change, such as --amount N")
    return values


def _limit(given: Mapping[str, Any]) -> dict[str, Any] | None:
    if given["amount"] is not None:
        return {"amount": given["amount"], "currency": given["currency"] or "USD"}
    if given["currency"] is not None:
        raise UsageError("--currency: expected --amount N beside it")
    if given["plan"] is not None or given["percent"] is not None:
        return {"plan": given["plan"], "percent": given["percent"]}
    return next(({unit: given[unit]} for unit in ("tokens", "turns") if given[unit] is not None), None)


def _scope(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise UsageError(f"--scope: expected KEY=VALUE, such as team=core, not {text!r}")
    return key, value


def width() -> int | None:
    """The terminal's width, None if stdout is no terminal."""
    in_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if not in_terminal:
        return None
    import shutil  # and with it what unpacks archives

    return shutil.get_terminal_size().columns


@contextmanager
def installed(command: str, extra: str = "serve") -> Iterator[None]:
    """Around the import of a command that needs packages of its own. Raises UsageError where they are missing."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{command}: not installed, run pip install '.[{extra}]' in a clone of acp-proxy") from error
