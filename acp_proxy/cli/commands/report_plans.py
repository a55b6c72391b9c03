"""`acp-proxy report --plans`: from what was typed to the text that answers it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from contextlib import closing

from acp_proxy.cli import options
from acp_proxy.ledger import open_reader
from acp_proxy.report import plans
from acp_proxy.system.errors import UsageError

_NOT_OF_A_PLAN = ("key", "by", "model", "team", "project", "title", "coverage")


def answer(arguments: argparse.Namespace) -> Iterable[str]:
    """Raises UsageError, ConfigError and LedgerError."""
    for name in _NOT_OF_A_PLAN:
        if getattr(arguments, name):
            given = repr(arguments.key) if name == "key" else f"--{name}"
            raise UsageError(f"report --plans: expected --agent, --user, --since or --until, not {given}")
    zone, now = options.zone(arguments.tz), time.time_ns()
    config, interval = options.config(arguments), options.interval(arguments, zone, now)
    whose = arguments.user, arguments.agent
    with closing(open_reader(config.ledger.url, tell=options.tell(arguments))) as ledger:
        found = plans.plan_report(ledger, config.identity.organisation, zone, now, interval, *whose)
    if arguments.json:
        return [plans.as_json(found)]
    return plans.as_csv(found) if arguments.csv else [plans.as_text(found, arguments.limit)]
