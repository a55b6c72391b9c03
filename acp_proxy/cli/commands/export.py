"""`acp-proxy export`: spend in the columns of FinOps FOCUS."""

from __future__ import annotations

import argparse
import sys
import time

from acp_proxy.cli import arguments, options
from acp_proxy.ledger import Query, open_reader

NAME = "export"
SAYS = "spend in the columns of FinOps FOCUS, for chargeback"
EXAMPLE = "export --focus --since 2026-10 --until 2026-11"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("--focus", action="store_true", required=True, help="in the columns of FinOps FOCUS 1.2")
    arguments.add_interval(command)
    command.add_argument("--json", action="store_true", help="as JSON instead of CSV")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy import focus
    from acp_proxy.config.applied import catalog_of

    config, zone, now = options.config(asked), options.zone(asked.tz), time.time_ns()
    wanted = Query(*options.interval(asked, zone, now))
    ledger = open_reader(config.ledger.url, tell=options.tell(asked))
    try:
        found = focus.rows(ledger, wanted, config.identity.organisation, zone, catalog_of(config).lab)
        sys.stdout.writelines(focus.as_json(found) if asked.json else focus.as_csv(found))
    finally:
        ledger.close()
    return 0
