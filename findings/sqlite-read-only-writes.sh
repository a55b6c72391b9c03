#!/usr/bin/env bash
# SQLite 3.51.1 (pysqlite3-binary 0.5.4.post2): a connection with `mode=ro` makes two files, and leaves them behind.
# Guess: a read-only connection to a database in WAL mode writes nothing into the directory; agents such as OpenCode
# and goose keep their sessions in such databases, and a reader must not disturb them.
# Seen: where the last writer has removed them, `-shm` and `-wal` are made for the reader, and stay when it closes.
source "$(dirname "$0")/common.sh"
install pysqlite3-binary==0.5.4.post2
cat >ask.py <<'END'
import os
from pysqlite3 import dbapi2 as sqlite3

os.mkdir("agent")
writer = sqlite3.connect("agent/sessions.db")
writer.execute("PRAGMA journal_mode = WAL")
writer.execute("CREATE TABLE message (tokens INTEGER)")
writer.commit()
writer.close()
before = sorted(os.listdir("agent"))
reader = sqlite3.connect("file:agent/sessions.db?mode=ro", uri=True)
reader.execute("SELECT count(*) FROM message").fetchall()
reader.close()
print(*before, "->", *sorted(os.listdir("agent")))
END
expect 'files before and after a read-only look' \
    'sessions.db -> sessions.db sessions.db-shm sessions.db-wal' "$(python ask.py)"
