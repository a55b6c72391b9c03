"""`acp-proxy export`: spend in the columns of FinOps FOCUS."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial

from acp_proxy.cli import arguments, options
from acp_proxy.focus.columns import FIRST, VERSIONS
from acp_proxy.ledger import Query, open_reader

EXAMPLE = "export --focus --since 2026-10 --until 2026-11"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    says = f"in the columns of FinOps FOCUS: {', '.join(VERSIONS)}; {FIRST} where none is named"
    command.add_argument(
        "--focus", metavar="VERSION", nargs="?", const=FIRST, choices=VERSIONS, required=True, help=says
    )
    arguments.add_interval(command)
    command.add_argument("--json", action="store_true", help="as JSON instead of CSV")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.config.applied import public_catalog_of, seat_of
    from acp_proxy.focus.costs import list_price
    from acp_proxy.focus.formats import as_csv, as_json
    from acp_proxy.focus.rows import Market, rows
    from acp_proxy.policy.prices import catalog_here

    config, zone, now = options.config(asked), options.zone(asked.tz), time.time_ns()
    wanted, version = Query(*options.interval(asked, zone, now)), asked.focus
    catalog = catalog_here(config, os.environ)
    market = Market(catalog.lab, list_price(catalog, public_catalog_of(config)), partial(seat_of, config))
    ledger = open_reader(config.ledger.url, tell=options.tell(asked))
    try:
        found = rows(ledger, wanted, config.identity.organisation, zone, market, version)
        sys.stdout.writelines(as_json(found, version) if asked.json else as_csv(found, version))
    finally:
        ledger.close()
    return 0
