"""The ledger's schema on PostgreSQL: the numbered list of `migrations.py` in its dialect, and how it is brought up.

No advisory locks, no sequences, no LISTEN: whoever migrates holds the one row of `acp_proxy_schema`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from acp_proxy.ledger.accounts import unsummed
from acp_proxy.ledger.migrations import MIGRATIONS, Step, refuse_newer
from acp_proxy.ledger.statements import Run

# Together with `BEGIN` one journey. The division fails once a newer version has changed the tables that we know.
CHECK = f"SELECT 1 / (version <= {len(MIGRATIONS)})::int FROM acp_proxy_schema"

T = TypeVar("T")
Transact = Callable[[Callable[[Run], T]], T]

# Rows that are locked, and that each hold increments so that every level of isolation notices.
_ACCOUNT = """
CREATE TABLE account (
    org_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    holds BIGINT NOT NULL,
    PRIMARY KEY (org_id, key)
) WITH (fillfactor = 50)
"""
# In the primary key a range of buckets has to be looked for in each series. SQLite does so; PostgreSQL would rather
# read the whole table, for a report by month 50 times.
_TOTAL_BY_BUCKET = "CREATE INDEX total_by_bucket ON total (org_id, level, bucket)"
_SUMMED = ("turn", "line", "series", "total", "granted", "hold", "kept_sum", "unsummed")
# What only PostgreSQL needs, by step.
_OWN: dict[int, Step] = {2: (_ACCOUNT,), 11: unsummed.TABLES, 12: (_TOTAL_BY_BUCKET,)}


def migrate(transact: Transact[int], patiently: Transact[int]) -> int:
    """Bring the schema up to the last step in one transaction, done `patiently`; the version that it has then.

    Raises LedgerError for a ledger of a newer version, and what the database raises where its tables are another's.
    """
    before = transact(version_of)
    return patiently(_migrate) if before < len(MIGRATIONS) else before


def hides_rows(run: Run) -> bool:
    """Whether policies decide which rows of those that are added up this role sees."""
    summed = ", ".join(f"('{table}')" for table in _SUMMED)
    return bool(run(f"SELECT 1 FROM (VALUES {summed}) t WHERE row_security_active(t.column1) LIMIT 1", ()))


def version_of(run: Run) -> int:
    """0 where there is no ledger yet."""
    if not run("SELECT 1 FROM pg_tables WHERE tablename = 'acp_proxy_schema' AND schemaname = current_schema()", ()):
        return 0
    found = int((run("SELECT version FROM acp_proxy_schema", ()) or [(0,)])[0][0])
    refuse_newer(found)
    return found


def _migrate(run: Run) -> int:
    run("CREATE TABLE IF NOT EXISTS acp_proxy_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)", ())
    run("INSERT INTO acp_proxy_schema VALUES (1, 0) ON CONFLICT DO NOTHING", ())
    (done,) = run("SELECT version FROM acp_proxy_schema FOR UPDATE", ())[0]
    for number, statements in enumerate(MIGRATIONS[done:], done + 1):
        for statement in (*statements, *_OWN.get(number, ())):
            if not isinstance(statement, str):
                statement(run)
            else:
                run(_in_its_dialect(statement), ())
    run("UPDATE acp_proxy_schema SET version = ?", (len(MIGRATIONS),))
    return len(MIGRATIONS)


def _in_its_dialect(statement: str) -> str:
    """Text sorts by its bytes, as everywhere else: rows of several organisations are merged."""
    if "COLLATE" in statement:
        return statement
    statement = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', statement)
    return re.sub(r"\bINTEGER\b", "BIGINT", statement).replace(") STRICT, WITHOUT ROWID", ")")
