"""What is known of a ledger's other servers, and of times at which it went back. Values only."""

from __future__ import annotations

from msgspec import Struct


class Restored(Struct, frozen=True):
    """What processes wrote again, because the ledger had been set back by a failover or from a backup."""

    processes: int
    machines: int
    rows: int  # that the ledger had acknowledged, and did not have
    incomplete: int  # processes that had not kept all of what the ledger lacked
    last: int | None  # Unix ns, when it was done


class Replication(Struct, frozen=True):
    """How a server stands to the others of its cluster. None is unknown."""

    standby: bool  # it is one itself
    standbys: int  # that stream from it now
    behind: float | None  # seconds: for a standby, the age of what it shows; else by how much the slowest one is behind


def in_words(found: Replication) -> str:
    """For people: `standby, 12 s behind its primary`."""
    if found.standby:
        age = "of unknown age" if found.behind is None else f"{found.behind:,.0f} s behind its primary"
        return f"a standby, {age}"
    if not found.standbys:
        return "no standby streams from it"
    behind = "how far behind is not shown to this role" if found.behind is None else f"{found.behind:,.1f} s behind"
    return (
        f"{found.standbys} standby streams from it, {behind}"
        if found.standbys == 1
        else (f"{found.standbys} standbys stream from it, the slowest {behind}")
    )
