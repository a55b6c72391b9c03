"""How much of a provider's bill the ledger had when both were laid beside each other last: one row a provider, and
beside it its days and why they differ.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from acp_proxy.core.money import NANO
from acp_proxy.ledger.statements import Read, Run
from acp_proxy.system.decoding import json_decoder

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
DETAILS = (
    """
    CREATE TABLE capture_detail (
        org_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        noted_at INTEGER NOT NULL,
        detail TEXT NOT NULL,
        PRIMARY KEY (org_id, provider)
    ) STRICT, WITHOUT ROWID
    """,
)
# Of one provider in two ledgers, and in one.
LATER = """
(org_id, provider) DO UPDATE SET
    since_at = excluded.since_at, until_at = excluded.until_at, noted_at = excluded.noted_at,
    billed_tokens = excluded.billed_tokens, seen_tokens = excluded.seen_tokens,
    currency = excluded.currency, billed = excluded.billed, seen = excluded.seen
WHERE excluded.noted_at >= capture.noted_at
"""
_NOTE = f"INSERT INTO capture VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT {LATER}"
LATER_DETAIL = """
(org_id, provider) DO UPDATE SET noted_at = excluded.noted_at, detail = excluded.detail
WHERE excluded.noted_at >= capture_detail.noted_at
"""
_NOTE_DETAIL = f"INSERT INTO capture_detail VALUES (?, ?, ?, ?) ON CONFLICT {LATER_DETAIL}"
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


class Day(Struct, array_like=True, frozen=True):
    """A day since 1970, with the figures of a `Capture`."""

    day: int
    billed_tokens: int
    seen_tokens: int
    billed: int
    seen: int


class Cause(Struct, frozen=True):
    """Why they differ: a kind, one line for people, and how much it is about (nano-units), 0 if not known."""

    kind: str
    says: str
    tokens: int = 0
    cost: int = 0


class Detail(Struct, frozen=True):
    """Beside a `Capture`, whose currency it has."""

    days: tuple[Day, ...] = ()
    causes: tuple[Cause, ...] = ()


def note(run: Run, organisation: str, capture: Capture, detail: Detail = Detail()) -> None:  # noqa: B008  it is frozen
    """In place of an earlier one of that provider."""
    of = capture
    figures = (of.billed_tokens, of.seen_tokens, of.currency, of.billed, of.seen)
    run(_NOTE, (organisation, of.provider, of.since, of.until, of.noted_at, *figures))
    run(_NOTE_DETAIL, (organisation, of.provider, of.noted_at, msgspec.json.encode(detail).decode()))


def latest(read: Read, organisation: str) -> list[Capture]:
    """By provider."""
    return [Capture(*found) for found in read(_LATEST, (organisation,))]


def details(read: Read, organisation: str) -> Mapping[str, Detail]:
    """By provider; none of what an earlier version kept, or another one wrote otherwise."""
    found: dict[str, Detail] = {}
    for provider, text in read("SELECT provider, detail FROM capture_detail WHERE org_id = ?", (organisation,)):
        try:
            found[provider] = json_decoder(Detail).decode(text)
        except msgspec.MsgspecError:
            continue
    return found


def _ratio(seen: int, billed: int) -> int | None:
    return max(0, seen) * NANO // billed if billed > 0 else None
