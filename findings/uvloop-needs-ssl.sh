#!/usr/bin/env bash
# uvloop 0.23.0: it cannot be imported where Python has no `ssl` module, although asyncio can.
# Guess: a drop-in replacement of asyncio's loop runs wherever asyncio runs; asyncio takes a missing `ssl` as "no TLS".
# Seen: ImportError. A process that only relays pipes therefore keeps OpenSSL in memory, 4.6 MB, for the sake of uvloop.
source "$(dirname "$0")/common.sh"
install uvloop==0.23.0
cat >ask.py <<'END'
import sys

sys.modules["ssl"] = None  # as in a Python that was built without OpenSSL
import asyncio

print(asyncio.run(asyncio.sleep(0, "runs")), end=", ")
try:
    import uvloop
except ImportError:
    print("ImportError")
END
expect 'asyncio, uvloop' 'runs, ImportError' "$(python ask.py)"
