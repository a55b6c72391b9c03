"""`acp-proxy reconcile`: files in, or pages of an API, and an answer out."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from acp_proxy.bills import Bill, BillError, File, date_of, read
from acp_proxy.bills.spreadsheet import FIELDS
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import open_ledger
from acp_proxy.reconcile import Reconciliation, noted
from acp_proxy.system.errors import UsageError, reason_of

Interval = tuple[int | None, int | None]  # Unix ns


def bill_of(arguments: argparse.Namespace, asked: Interval, now: int, environ: Mapping[str, str]) -> Bill:
    """Of files, or of the provider's API for the days that were asked for. Raises UsageError."""
    if arguments.api:
        return _bill_of_api(arguments, asked, now, environ)
    if beside := next((name for name in ("since", "until", "key", "url") if getattr(arguments, name)), None):
        raise UsageError(f"--{beside}: expected --api beside it; a bill of files has its own days")
    columns = pairs(arguments.column, "--column", "FIELD=NAME, such as amount=Total")
    if columns and arguments.provider != "csv":
        raise UsageError("--column: expected a bill of csv; the other forms have names of their own")
    if wrong := sorted(set(columns) - set(FIELDS)):
        raise UsageError(f"--column: expected one of {', '.join(FIELDS)} before the =, not {wrong[0]!r}")
    try:
        return read(arguments.provider, _files(arguments.files), columns)
    except BillError as error:
        raise UsageError(str(error)) from error


def _bill_of_api(arguments: argparse.Namespace, asked: Interval, now: int, environ: Mapping[str, str]) -> Bill:
    from acp_proxy.reconcile.api.bill import fetched
    from acp_proxy.reconcile.api.client import Client
    from acp_proxy.reconcile.api.keys import key_of
    from acp_proxy.reconcile.api.listings import PROVIDED, WITH_API

    provider = arguments.provider
    if provider not in WITH_API:
        raise UsageError(f"--api: expected one of {', '.join(WITH_API)}, not {provider}")
    if arguments.files or arguments.column:
        raise UsageError("--api: expected no files and no --column beside it")
    provided, days = PROVIDED[provider], _days(asked, now)
    base = arguments.url or provided.base
    if base is None:
        raise UsageError(f"--api: expected --url with the address of your {provider}")
    client = Client(base, provided, key_of(arguments.key, provided, environ), time.sleep)
    try:
        return fetched(provider, days, arguments.by, client.ask)
    except BillError as error:
        raise UsageError(f"{provider}: {error}") from error


def _days(asked: Interval, now: int) -> range:
    """Whole days of UTC, since 1970; without an end those that are over."""
    since, until = asked
    if since is None:
        raise UsageError("--api: expected --since with the first day of the bill")
    today = now // DAY
    days = range(since // DAY, today if until is None else min(-(-until // DAY), today + 1))
    if not days:
        raise UsageError(f"--since: expected a day before {date_of(days.stop)}, in UTC")
    return days


def keep(found: Reconciliation, url: str, organisation: str, now: int) -> None:
    """Of this provider in place of what was kept before. Raises LedgerError."""
    with closing(open_ledger(url, must_exist=True)) as ledger:
        ledger.tables.write(noted(found, organisation, now))


def pairs(given: Iterable[str] | None, option: str, expected: str) -> Mapping[str, str]:
    """Of an option that may be repeated. Raises UsageError."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option}: expected {expected}, not {text!r}")
        found[name] = value
    return found


def _files(names: Iterable[str]) -> Iterator[File]:
    """One at a time. Raises UsageError."""
    for name in names:
        try:
            content = Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise UsageError(f"{name}: expected a file of the bill: {reason}") from error
        yield File(name, content)
