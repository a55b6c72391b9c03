"""`acp-proxy reconcile`: a provider's bill beside the ledger."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from acp_proxy.bills import BY as COMPARED
from acp_proxy.bills import PROVIDERS
from acp_proxy.cli import arguments, options
from acp_proxy.ledger import open_reader
from acp_proxy.text.times import UTC_ZONE

EXAMPLE = "reconcile anthropic usage.json cost.json --by model"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("provider", metavar="PROVIDER", choices=PROVIDERS, help=f"one of {', '.join(PROVIDERS)}")
    files = "downloaded pages of the bill, in any order: JSON, or CSV"
    command.add_argument("files", metavar="FILE", nargs="+", type=arguments.text, help=files)
    command.add_argument("--api", action=_InPlaceOf, of="files", help="ask the provider's API, in place of files")
    days = "with --api: days of UTC, such as 2026-11-01; without --until those that are over"
    command.add_argument("--since", metavar="DAY", help=days)
    command.add_argument("--until", metavar="DAY", help="the first day that is no longer of the bill")
    key = "with --api: ${NAME} of the environment or ${file:PATH}; by default ANTHROPIC_ADMIN_KEY and the like"
    command.add_argument("--key", metavar="WHERE", type=arguments.text, help=key)
    command.add_argument("--url", metavar="URL", type=arguments.text, help="with --api: where it is, as of LiteLLM")
    command.add_argument("--by", metavar="KEY", choices=COMPARED, default="day", help=f"{', '.join(COMPARED)}")
    people = "the ledger's USER of a user or key on the bill; may be repeated"
    command.add_argument("--map", metavar="ID=USER", action="append", type=arguments.text, help=people)
    column = "of csv: which column has the day, model, user, key, input, prompt, cached_read, output, amount …"
    command.add_argument("--column", metavar="FIELD=NAME", action="append", type=arguments.text, help=column)
    kept = "keep how much of the bill the ledger has, for metrics and alerts"
    command.add_argument("--keep", action="store_true", help=kept)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="exact figures, for programs")
    form.add_argument("--csv", action="store_true", help="the same for spreadsheets")


class _InPlaceOf(argparse.Action):
    """A flag that lets a word be missing. Were that optional, argparse would not find it behind other options."""

    def __init__(self, option_strings: Sequence[str], dest: str, of: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=False, help=help)
        self._of = of

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        setattr(namespace, self.dest, True)
        for action in parser._actions:
            if action.dest == self._of:
                action.required = False


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.policy.prices import catalog_here
    from acp_proxy.reconcile import command, reconcile
    from acp_proxy.reconcile import formats as rendered

    config, now = options.config(asked), time.time_ns()
    bill = command.bill_of(asked, options.interval(asked, UTC_ZONE, now), now, os.environ)
    people = command.pairs(asked.map, "--map", "ID=USER, such as apikey_01Rj=alice")
    ours = config.identity.organisation
    ledger = open_reader(config.ledger.url, tell=options.tell(asked))
    try:
        found = reconcile(bill, ledger, catalog_here(config, os.environ), ours, asked.by, people)
    finally:
        ledger.close()
    if asked.keep:
        command.keep(found, config.ledger.url, ours, now)
    if asked.json:
        sys.stdout.write(rendered.as_json(found))
    elif asked.csv:
        sys.stdout.writelines(rendered.as_csv(found))
    else:
        sys.stdout.write(rendered.as_text(found, options.width(), os.environ))
    return 0
