"""How often an address may try something: exact over all hubs on one database."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Literal

from acp_proxy.ledger.tables import Tables

SECONDS = 600
Kind = Literal["authorization", "verification"]
MOST: dict[Kind, int] = {"authorization": 30, "verification": 10}

_COUNT = """
INSERT INTO hub_attempt VALUES (?, ?, ?, ?, 1)
ON CONFLICT (org_id, kind, address) DO UPDATE SET
    started_at = CASE WHEN hub_attempt.started_at <= ? THEN excluded.started_at ELSE hub_attempt.started_at END,
    count = CASE WHEN hub_attempt.started_at <= ? THEN 1 ELSE hub_attempt.count + 1 END
RETURNING started_at, count
"""


class Limits:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation

    def wait(self, kind: Kind, address: str, now: int) -> int:
        """Count a try; 0 if it may go on, else for how many seconds none may."""
        over = now - SECONDS
        values = (self._organisation, kind, network(address), now, over, over)
        ((started_at, count),) = self._tables.write(lambda run: run(_COUNT, values))
        return 0 if count <= MOST[kind] else max(int(started_at) + SECONDS - now, 1)

    def tidy(self, now: int) -> None:
        sql = "DELETE FROM hub_attempt WHERE org_id = ? AND started_at <= ?"
        self._tables.write(lambda run: run(sql, (self._organisation, now - SECONDS)))


def network(address: str) -> str:
    """What one party has: an address, of IPv6 64 bits of it."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
