"""Options that several commands have, and the types of their values."""

from __future__ import annotations

import argparse
from typing import Any

_MOST = 10**12  # tokens or lines: more is a typing mistake


def add_common(command: argparse.ArgumentParser) -> None:
    unset = argparse.SUPPRESS  # so that what stands before the command's name is kept
    command.add_argument("--config", metavar="FILE", default=unset, help="in place of the user's configuration file")
    command.add_argument(
        "--ledger", metavar="PATH", default=unset, help="the ledger: a file, or postgresql://HOST/DATABASE"
    )


def add_interval(command: argparse.ArgumentParser) -> None:
    add_since(command)
    command.add_argument("--until", metavar="TIME", help="before then, in the same forms; by default all")
    add_zone(command)


def add_since(command: argparse.ArgumentParser) -> None:
    dates = "2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time"
    forms = f"from then on, by default all: {dates}, or 7d before now (also m, h, w)"
    command.add_argument("--since", metavar="TIME", help=forms)


def add_zone(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tz", metavar="ZONE", help="a time zone such as Europe/Berlin; by default the local one")


def add_action(actions: argparse._SubParsersAction[Any], name: str, says: str, shown: str) -> argparse.ArgumentParser:
    """`shown` is an example: what follows `acp-proxy` in the last line of its help."""
    made = add_command(actions, name, says)
    made.epilog = example(shown)
    return made


def add_command(actions: argparse._SubParsersAction[Any], name: str, says: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(name, help=says, description=f"{says[:1].upper()}{says[1:]}.")
    return made


def example(words: str) -> str:
    return f"Example: acp-proxy {words}"


def text(given: str) -> str:
    """Text that JSON and a ledger can store: a command line may hold other bytes."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected text in UTF-8") from None
    return given


def tokens(text: str) -> int:
    return _number(text, "tokens")


def lines(text: str) -> int:
    if not (number := _number(text, "lines, at least 1")):
        raise argparse.ArgumentTypeError(f"expected a number of lines, at least 1, not {text!r}")
    return number


def _number(text: str, of: str) -> int:
    """From 0 on. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number of {of}, not {text!r}")
    if len(text.lstrip("0")) > len(str(_MOST)) or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"expected a number of {of.partition(',')[0]} up to {_MOST:,}, not {text!r}")
    return int(text)
