"""Asks a server how it stands to others of its cluster; what a role may not see, or a server does not know, is None."""

from __future__ import annotations

from acp_proxy.ledger.durability import Replication
from acp_proxy.ledger.statements import Read

_SEEN = "SELECT pg_is_in_recovery(), (SELECT count(*) FROM pg_stat_replication)"
# What a standby has got and not yet shows is at least as old as what it showed last. Where it has shown all that it got
# it is up to date, if it still gets something: a primary says something every few seconds.
_AGE = """
SELECT CASE
    WHEN pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn() OR NOT EXISTS (
        SELECT 1 FROM pg_stat_wal_receiver
        WHERE pid IS NOT NULL AND coalesce(last_msg_receipt_time, now()) > now() - interval '30 seconds'
    ) THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
    ELSE 0 END::float
"""
# A standby that says nothing any more has the lag that it had then.
_LAG = """
SELECT count(state), max(greatest(extract(epoch FROM flush_lag), 0, CASE
    WHEN flush_lsn < pg_current_wal_flush_lsn() THEN extract(epoch FROM clock_timestamp() - reply_time) END))::float
FROM pg_stat_replication
"""
# A standby may be promoted that is not the fastest.
_FLUSHED = """
SELECT count(*), count(flush_lsn), bool_and(flush_lsn >= pg_current_wal_insert_lsn()) FROM pg_stat_replication
"""


def is_flushed(read: Read) -> bool:
    """Whether all standbys that stream have what was written by now, or none does. Raises LedgerError."""
    ((standbys, shown, flushed),) = read(_FLUSHED, ())
    return not standbys or bool(shown and flushed)


def replication(read: Read) -> Replication:
    """Raises LedgerError, also where the server knows no such thing."""
    ((standby, standbys),) = read(_SEEN, ())
    if standby:
        ((age,),) = read(_AGE, ())
        return Replication(True, standbys, None if age is None else max(0.0, float(age)))
    ((shown, lag),) = read(_LAG, ())
    return Replication(False, standbys, lag if shown else None)
