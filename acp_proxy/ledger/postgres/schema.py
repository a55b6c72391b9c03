"""The ledger's schema on PostgreSQL: the numbered list of `migrations.py` in its dialect, and how it is brought up.

No sequences, no LISTEN, and no lock that outlasts its transaction: all others read `acp_proxy_schema`, and wait there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.accounts import pending_rows
from acp_proxy.ledger.dialects import POSTGRES
from acp_proxy.ledger.migrations import MIGRATIONS, Step, refuse_newer
from acp_proxy.ledger.postgres import keeping
from acp_proxy.ledger.postgres.early_commit import PLAIN, POSSIBLE
from acp_proxy.ledger.postgres.errors import NO_LOCK, NO_RIGHT
from acp_proxy.ledger.statements import Read, Run, Statement

# Together with `BEGIN` one journey. The division fails once a newer version has changed the tables that we know.
# Reading the version locks it against who migrates until the transaction ends; who comes during a migration waits, and
# reads what is there then: by READ COMMITTED a statement's snapshot is made when it has its locks.
CHECK = f"SELECT 1 / (version <= {len(MIGRATIONS)})::int FROM acp_proxy_schema"
# One migrates, and the others wait for it together, where none holds anything yet. Of each schema of a database.
_NAME = "hashtextextended('acp-proxy ' || current_schema(), 0)"
_TURN = f"SELECT 1 WHERE pg_try_advisory_xact_lock({_NAME})"
_WAIT = f"SELECT pg_advisory_xact_lock_shared({_NAME})"
# Changes nothing, and locks as LOCK TABLE does, which not all that speak PostgreSQL's protocol know.
ALONE = "ALTER TABLE acp_proxy_schema ALTER COLUMN version SET NOT NULL"
# A step takes the time that it takes, whatever a server allows. Not every version has all three.
_UNLIMITED = """
SELECT set_config(name, '0', true) FROM pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')
"""

# What is to be done about it.
_MENDED_BY = {NO_RIGHT: "let their owner open it first", NO_LOCK: "others use them: try again later"}

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
_OWN: dict[int, Step] = {2: (_ACCOUNT,), 11: pending_rows.TABLES, 12: (_TOTAL_BY_BUCKET,), 20: keeping.TABLES}


def migrate(transact: Transact[int], patiently: Transact[int]) -> int:
    """Bring the schema up to the last step in one transaction, done `patiently`; the version that it has then.

    Raises LedgerError for a ledger of a newer version, and what the database raises where its tables are another's.
    """
    before = transact(version_of)
    if before == len(MIGRATIONS):
        return before
    try:
        while not (version := patiently(_migrate)):  # who did it failed
            pass
        return version
    except LedgerError as error:
        if mended_by := _MENDED_BY.get(getattr(error.__cause__, "sqlstate", "")):
            expected = f"its tables are of version {before}, expected {len(MIGRATIONS)}"
            raise type(error)(f"{error}: {expected}: {mended_by}") from error.__cause__
        raise


class Situation(NamedTuple):
    """What a role on a server can rely on."""

    hides_rows: bool  # policies decide which rows of those that are added up it sees
    commits_early: bool


def situation(read: Read) -> Situation:
    """With one question. Raises LedgerError where a server does not understand it."""
    summed = ", ".join(f"('{table}')" for table in _SUMMED)
    hidden = f"EXISTS (SELECT 1 FROM (VALUES {summed}) t WHERE row_security_active(t.column1))"
    ((hides_rows, commits_early),) = read(f"SELECT {hidden}, {POSSIBLE}", (PLAIN,))
    return Situation(bool(hides_rows), bool(commits_early))


def version_of(run: Run) -> int:
    """0 where there is no ledger yet."""
    if not run("SELECT 1 FROM pg_tables WHERE tablename = 'acp_proxy_schema' AND schemaname = current_schema()", ()):
        return 0
    found = int((run("SELECT version FROM acp_proxy_schema", ()) or [(0,)])[0][0])
    refuse_newer(found)
    return found


def _migrate(run: Run) -> int:
    """The version then, 0 where somebody else was at it in vain.

    What is locked before it is read must be read as it is then: not on a snapshot of the whole transaction.
    """
    has_turn = bool(run(_TURN, ()))
    if not has_turn:
        run(_WAIT, ())
    if version_of(run) == len(MIGRATIONS):
        return len(MIGRATIONS)
    if not has_turn:
        return 0
    run(_UNLIMITED, ())
    run("CREATE TABLE IF NOT EXISTS acp_proxy_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)", ())
    run(ALONE, ())
    run("INSERT INTO acp_proxy_schema VALUES (1, 0) ON CONFLICT DO NOTHING", ())
    (done,) = run("SELECT version FROM acp_proxy_schema", ())[0]
    together = list[Statement]()  # until one asks something
    for number, statements in enumerate(MIGRATIONS[done:], done + 1):
        for statement in (*statements, *_OWN.get(number, ())):
            if isinstance(statement, str):
                together.append((POSTGRES.definition(statement), ()))
                continue
            run.each(together)
            together.clear()
            statement(run)
    run.each([*together, ("UPDATE acp_proxy_schema SET version = ?", (len(MIGRATIONS),))])
    return len(MIGRATIONS)
