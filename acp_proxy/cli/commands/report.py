"""`acp-proxy report`: what was spent, as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from contextlib import closing

from acp_proxy.cli import arguments, options
from acp_proxy.ledger import LedgerReader, Query, open_reader
from acp_proxy.report import BY, FILTERS, Report, formats, query, report, tables
from acp_proxy.system.errors import UsageError
from acp_proxy.text.times import DAYS, Zone

EXAMPLE = "report --by model --since 7d"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("key", metavar="KEY", nargs="?", help=f"as --by; or {', '.join(DAYS)}")
    command.add_argument("--by", metavar="KEY", choices=BY, help=f"{', '.join(BY)} (default: day)")
    arguments.add_interval(command)
    for name in FILTERS:
        part = "part of a session's title" if name == "title" else f"only this {name}"
        command.add_argument(f"--{name}", metavar="TEXT" if name == "title" else "NAME", type=arguments.text, help=part)
    seen = "how much of what agents used went through acp-proxy, and how much around it, by what was imported"
    command.add_argument("--coverage", action="store_true", help=seen)
    most = "at most N lines: those that cost most, or the latest days, weeks or months"
    command.add_argument("--limit", metavar="N", type=arguments.lines, help=most)
    command.add_argument("--plans", action="store_true", help="windows of plans and their history, in place of spend")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="exact figures, for programs")
    form.add_argument("--csv", action="store_true", help="the same for spreadsheets")


def main(asked: argparse.Namespace) -> int:
    if asked.plans:
        from acp_proxy.cli.commands import report_plans

        sys.stdout.writelines(report_plans.answer(asked))
        return 0
    zone = options.zone(asked.tz)
    now = time.time_ns()
    filters = [(name, value) for name in FILTERS if (value := getattr(asked, name)) is not None]
    config = options.config(asked)
    ours = config.identity.organisation
    by = options.report_key(asked)
    wanted = query(*options.interval(asked, zone, now), [("organisation", ours), *filters])
    ledger = open_reader(config.ledger.url, tell=options.tell(asked))
    if asked.coverage:
        by = "agent" if asked.by is None and asked.key is None else by
        sys.stdout.write(_coverage(ledger, by, wanted, zone, asked))
        return 0
    try:
        found = report(ledger, by, wanted, zone, asked.limit)
        if not (found.lines or asked.json or asked.csv):
            from acp_proxy.report.nothing import nothing

            is_timed = (wanted.since, wanted.until) != (None, None)
            sys.stdout.write(nothing(ledger, ours, filters, zone if is_timed else None))
            return 0
    finally:
        ledger.close()
    sys.stdout.writelines(_rendered(found, asked))
    return 0


def _coverage(ledger: LedgerReader, by: str, wanted: Query, zone: Zone, asked: argparse.Namespace) -> str:
    from acp_proxy.report import coverage

    if by not in coverage.BY or asked.csv or asked.limit is not None:
        raise UsageError(f"report --coverage: expected by {', '.join(coverage.BY)}, and neither --csv nor --limit")

    with closing(ledger):
        found = coverage.coverage(ledger, by, wanted, zone)
    return coverage.as_json(found, by, wanted, zone) if asked.json else coverage.plain(found, by)


def _rendered(found: Report, asked: argparse.Namespace) -> Iterable[str]:
    if asked.json:
        return formats.as_json(found)
    if asked.csv:
        from acp_proxy.report import spreadsheet

        return spreadsheet.as_csv(found)
    if width := options.width():
        return tables.coloured(found, width, os.environ)
    return tables.plain(found)
