"""Budgets to measure admission with, and the accounts that a prompt of somebody's is held against."""

from __future__ import annotations

import time
from datetime import UTC

from acp_proxy.core.budget import Account, Budget, Limit, accounts_for
from acp_proxy.core.entry import Origin
from acp_proxy.core.money import NANO
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import Window

ORIGIN = Origin("default", "alice", "core", "web", "host", "agent", None, None)
HOLD = NANO // 10  # of each prompt, in nano-units


def budgets(cap: int) -> list[Budget]:
    """A cap of so many holds, and another budget that is never in the way, so that two are locked."""
    return [
        Budget("cap", "user", Window.parse("total"), Limit(cap * HOLD, "USD")),
        Budget("roomy", "user", Window.parse("day"), Limit(cap * HOLD * 10, "USD"), per="user"),
    ]


def accounts(cap: int) -> tuple[Account, ...]:
    subject = Subject("default", "alice", "core", "web", "host", "agent")
    return accounts_for(budgets(cap), subject, time.time_ns(), lambda _: UTC, "")
