"""Budgets to measure admission with, and the accounts that a prompt of somebody's is held against."""

from __future__ import annotations

import time
from datetime import UTC

from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, Limit, accounts_for
from acp_proxy.core.entry import Origin
from acp_proxy.core.money import NANO
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import Window

ORIGIN = Origin("default", "alice", "core", "web", "host", "agent", None, None)
HOLD = NANO // 10  # of each prompt, in nano-units
_SUBJECT = Subject("default", "alice", "core", "web", "host", "agent")


def budgets(cap: int) -> list[Budget]:
    """A cap of so many holds, and another budget that is never in the way, so that two are locked."""
    return [
        Budget("cap", "user", Window.parse("total"), Limit(cap * HOLD, "USD")),
        Budget("roomy", "user", Window.parse("day"), Limit(cap * HOLD * 10, "USD"), per="user"),
    ]


def accounts(cap: int) -> tuple[Account, ...]:
    return _accounts(budgets(cap), _SUBJECT)


def new_accounts(cap: int, name: str) -> tuple[Account, ...]:
    """Of a session and of a run of the proxy that are called so, on which nothing was held before."""
    limit = Limit(cap * HOLD, "USD")
    of_session = Budget("session", "user", Window.parse("session"), limit)
    of_run = Budget("run", "flag", Window.parse("total"), limit)
    return _accounts([of_session, of_run], replace(_SUBJECT, session=name, process=name))


def _accounts(budgets: list[Budget], subject: Subject) -> tuple[Account, ...]:
    return accounts_for(budgets, subject, time.time_ns(), lambda _: UTC, "")
