"""Where a hub keeps what it acknowledges, and what a proxy says that sends it once more. As `wire` says."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True, omit_defaults=True):
    """In which ledger and organisation, and whose by the token. A ledger that was set back is the same `ledger`; only
    where `incarnation` is one that was seen before, it has not been set back since. A failover sets back a ledger that
    `fails_over`, anything else only one that was restored from a backup.
    """

    ledger: str
    organisation: str
    user: str
    incarnation: str
    fails_over: bool = False


class Again(Struct, frozen=True):
    """These rows were acknowledged before, and the ledger has them no more. All calls of one process about that have
    one `id`. What was acknowledged up to `lost_until` (Unix ns) is kept nowhere, if anything.
    """

    id: str
    lost_until: int | None = None


class Missing(Struct, frozen=True):
    """Those ids that nobody has a row of. `sure`: what was acknowledged before is where any failover keeps it."""

    ids: list[str]
    place: Place | None = None
    sure: bool = False


class Corrected(Struct, frozen=True, omit_defaults=True):
    """Whether the row was as it is said to have been, and is another one now."""

    done: bool
    place: Place | None = None


class Since(Struct, frozen=True):
    """From when on (Unix ns)."""

    since: int = 0


class SetBack(Struct, frozen=True):
    """What was sent again to a ledger that was set back: by how many processes, machines, and how many rows; how many
    of the processes had not kept all; and when that was last (Unix ns). To most it tells what they sent themselves.
    """

    processes: int
    machines: int
    rows: int
    incomplete: int
    last: int | None
