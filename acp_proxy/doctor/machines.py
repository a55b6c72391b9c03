"""The check of `doctor` for machines whose administrator's file differs in what affects budgets. Changes nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime

from acp_proxy.config import Config
from acp_proxy.config.digest import FORM, NOTHING, digest
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.settings import Settings


def machines_that_differ(config: Config, ledger: BudgetLedger, now: int) -> tuple[int, list[str]]:
    """How many others there are that can be compared, and a line on each that differs. `now` is Unix ns."""
    ours = digest(config, "admin")
    others = list(_others(config, ledger, now))
    return len(others), [_in_words(other, ours) for other in others if other.digest != ours]


def _others(config: Config, ledger: BudgetLedger, now: int) -> Iterator[Settings]:
    """As each was seen last, whichever of its users started a proxy."""
    found = ledger.settings(config.identity.organisation, now)
    latest: dict[str, Settings] = {}
    for each in sorted(found, key=lambda each: each.seen_at):
        if each.layer == "admin" and each.form == FORM and each.host != socket.gethostname():
            latest[each.host] = each
    for host in sorted(latest):
        yield latest[host]


def _in_words(other: Settings, ours: str) -> str:
    judges = "has another administrator's file than this machine"
    if other.digest == NOTHING:
        judges = "has no administrator's file, or one that does not affect budgets"
    elif ours == NOTHING:
        judges = "has an administrator's file, and this machine has none"
    seen = datetime.fromtimestamp(other.seen_at // SECOND, UTC)
    return f"{other.host} (user {other.user}) {judges}; seen {seen:%Y-%m-%d %H:%M} UTC"
