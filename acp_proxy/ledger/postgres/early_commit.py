"""Commits whose locks nobody waits for while a disk, or a standby, takes what was written.

Such a transaction is first committed without that wait, and gives its locks up. A second one in the same journey waits
until the server's log is kept up to its own end, and so all before it, as the session's settings say; only then does
the first one count as done. Who has seen it earlier ends at a later place of that log, and waits for that.
"""

from __future__ import annotations

from acp_proxy.ledger.statements import Statement

# Until the transaction ends: the second one has the session's own setting again.
EARLY: Statement = ("SET LOCAL synchronous_commit = off", ())
# It must write something: the end of a transaction that did not is waited for by nobody, even if it has an id (as by
# `pg_current_xact_id`). Who decodes the log gets messages only where he asks for them.
CONFIRMING: Statement = ("SELECT pg_logical_emit_message(true, 'acp-proxy', '')", ())
# PostgreSQL itself, as it or a system names it: of others nobody here knows whether they have one log.
PLAIN = "^PostgreSQL [0-9.]+((devel|beta|rc)[0-9]*)?( [(](Debian|Ubuntu|Homebrew)[^)]*[)])? on "
# Whether the server is such a one (by `PLAIN`), keeps these tables itself, and lets this role write a message.
POSSIBLE = """(
    SELECT version() ~ CAST(? AS TEXT)
        AND NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
        AND (SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
            WHERE proname = 'pg_logical_emit_message')
    FROM pg_class t JOIN pg_am a ON a.oid = t.relam
    WHERE t.oid = CAST('account' AS regclass) AND t.relkind = 'r' AND t.relpersistence = 'p' AND a.amname = 'heap'
)"""
