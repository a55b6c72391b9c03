"""Providers whose bills are fetched: which process asks one now, when it is asked next, and what went wrong last.

One row a provider, so that of several processes on a ledger one asks. No key and no address is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger.statements import Read, Run

LEASE = 900 * SECOND  # longer than one page may take, with all tries and pauses
_BEYOND = 2 * DAY  # what is due later than that is due now: a clock was wrong

TABLES = (
    """
    CREATE TABLE bill_source (
        org_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        holder TEXT NOT NULL,
        held_until INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        tried_at INTEGER NOT NULL,
        fetched_at INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        trouble TEXT NOT NULL,
        PRIMARY KEY (org_id, provider)
    ) STRICT, WITHOUT ROWID
    """,
)
_MAKE = "INSERT INTO bill_source VALUES (?, ?, '', 0, 0, 0, 0, 0, '') ON CONFLICT (org_id, provider) DO NOTHING"
_CLAIM = """
UPDATE bill_source SET holder = ?, held_until = ?
WHERE org_id = ? AND provider = ? AND (due_at <= ? OR due_at > ?) AND (held_until <= ? OR held_until > ? OR holder = ?)
RETURNING 1
"""
_HOLD = "UPDATE bill_source SET held_until = ? WHERE org_id = ? AND provider = ? AND holder = ? RETURNING 1"
_SETTLE = """
UPDATE bill_source
SET holder = '', held_until = 0, due_at = ?, tried_at = ?, fetched_at = ?, failures = ?, trouble = ?
WHERE org_id = ? AND provider = ? AND holder = ?
RETURNING 1
"""
_ALL = """
SELECT provider, due_at, tried_at, fetched_at, failures, trouble FROM bill_source WHERE org_id = ? ORDER BY provider
"""


class BillSource(Struct, frozen=True):
    """Times in Unix ns, 0: never. `trouble` is one line about the last try, empty where it went well."""

    provider: str
    due_at: int = 0
    tried_at: int = 0
    fetched_at: int = 0
    failures: int = 0  # in a row
    trouble: str = ""


def claim(run: Run, organisation: str, provider: str, holder: str, now: int) -> bool:
    """Whether the provider is due, and this holder is the one that asks it now."""
    run(_MAKE, (organisation, provider))
    far = (now, now + _BEYOND, now, now + 2 * LEASE)
    return bool(run(_CLAIM, (holder, now + LEASE, organisation, provider, *far, holder)))


def hold(run: Run, organisation: str, provider: str, holder: str, now: int) -> bool:
    """Whether it is still this holder, which then has another lease."""
    return bool(run(_HOLD, (now + LEASE, organisation, provider, holder)))


def settle(run: Run, organisation: str, holder: str, source: BillSource, then: Callable[[Run], Any]) -> bool:
    """Note how it went and do `then`, unless another holder has taken over meanwhile."""
    of = source
    figures = (of.due_at, of.tried_at, of.fetched_at, of.failures, of.trouble)
    if not run(_SETTLE, (*figures, organisation, of.provider, holder)):
        return False
    then(run)
    return True


def release(run: Run, organisation: str, provider: str, holder: str) -> None:
    """Let another process ask, at once."""
    sql = "UPDATE bill_source SET held_until = 0 WHERE org_id = ? AND provider = ? AND holder = ?"
    run(sql, (organisation, provider, holder))


def sources(read: Read, organisation: str) -> list[BillSource]:
    """By provider."""
    return [BillSource(*found) for found in read(_ALL, (organisation,))]
