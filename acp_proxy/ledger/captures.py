"""How much of a provider's bill the ledger had when both were laid beside each other last: one row a provider."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.money import NANO
from acp_proxy.ledger.statements import Read, Run

TABLES = (
    """
    CREATE TABLE capture (
        org_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        since_at INTEGER NOT NULL,
        until_at INTEGER NOT NULL,
        noted_at INTEGER NOT NULL,
        billed_tokens INTEGER NOT NULL,
        seen_tokens INTEGER NOT NULL,
        currency TEXT NOT NULL,
        billed INTEGER NOT NULL,
        seen INTEGER NOT NULL,
        PRIMARY KEY (org_id, provider)
    ) STRICT, WITHOUT ROWID
    """,
)
_NOTE = """
INSERT INTO capture VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (org_id, provider) DO UPDATE SET
    since_at = excluded.since_at, until_at = excluded.until_at, noted_at = excluded.noted_at,
    billed_tokens = excluded.billed_tokens, seen_tokens = excluded.seen_tokens,
    currency = excluded.currency, billed = excluded.billed, seen = excluded.seen
WHERE excluded.noted_at >= capture.noted_at
"""
_LATEST = """
SELECT provider, since_at, until_at, noted_at, billed_tokens, seen_tokens, currency, billed, seen
FROM capture WHERE org_id = ? ORDER BY provider
"""


class Capture(Struct, frozen=True):
    """Times in Unix ns, amounts in nano-units of the currency in which most was billed. 0 is what a bill lacks."""

    provider: str
    since: int
    until: int
    noted_at: int
    billed_tokens: int
    seen_tokens: int
    currency: str
    billed: int
    seen: int

    @property
    def of_tokens(self) -> int | None:
        """The ledger's part of what was billed, in billionths; None where nothing was."""
        return _ratio(self.seen_tokens, self.billed_tokens)

    @property
    def of_cost(self) -> int | None:
        return _ratio(self.seen, self.billed)


def note(run: Run, organisation: str, capture: Capture) -> None:
    """In place of an earlier one of that provider."""
    of = capture
    figures = (of.billed_tokens, of.seen_tokens, of.currency, of.billed, of.seen)
    run(_NOTE, (organisation, of.provider, of.since, of.until, of.noted_at, *figures))


def latest(read: Read, organisation: str) -> list[Capture]:
    """By provider."""
    return [Capture(*found) for found in read(_LATEST, (organisation,))]


def _ratio(seen: int, billed: int) -> int | None:
    return max(0, seen) * NANO // billed if billed > 0 else None
