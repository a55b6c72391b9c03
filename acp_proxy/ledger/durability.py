"""What is known of a ledger's other servers, and of times at which it went back. Values only."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.windows import DAY, SECOND

RECENT = 30 * DAY  # for which people are told that a ledger was set back


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
    pooled: bool = False  # it is reached through a connection pooler


def in_words(found: Replication) -> str:
    """For people: `standby, 12 s behind its primary`."""
    if found.standby:
        age = "of unknown age" if found.behind is None else f"{found.behind:,.0f} s behind its primary"
        return f"a standby, {age}"
    if not found.standbys:
        return "no standby streams from it"
    from acp_proxy.text.figures import counted  # not for a status, which only reads

    behind = "how far behind is not shown to this role" if found.behind is None else f"{found.behind:,.1f} s behind"
    slowest = "" if found.standbys == 1 else "the slowest "
    streams = "streams" if found.standbys == 1 else "stream"
    return f"{counted(found.standbys, 'standby')} {streams} from it, {slowest}{behind}"


def restored_in_words(found: Restored) -> str | None:
    """`was set back, last seen 2026-11-21 12:00 UTC; 3 rows written again from 2 machines`; None if it never was."""
    if found.last is None:
        return None
    from datetime import UTC, datetime  # not for a status

    from acp_proxy.text.figures import counted

    at = datetime.fromtimestamp(found.last // SECOND, UTC)
    rows, machines = counted(found.rows, "row"), counted(found.machines, "machine")
    text = f"was set back, last seen {at:%Y-%m-%d %H:%M} UTC; {rows} written again from {machines}"
    if found.incomplete:
        text += f"; {found.incomplete} of {found.processes} processes had not kept all: rows may be missing"
    return text
