"""The tables of a hub as a numbered list; a released step is never edited, a new one is added after it."""

from __future__ import annotations

from acp_proxy.hub.store.secrets import new_id
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables, define

_STEPS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE hub_person (
            org_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            subject TEXT,
            name TEXT,
            email TEXT,
            active INTEGER NOT NULL,
            team TEXT,
            role TEXT NOT NULL,
            leads TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            seen_at INTEGER,
            PRIMARY KEY (org_id, user_id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE hub_token (
            org_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            user_id TEXT NOT NULL,
            team TEXT,
            role TEXT,
            leads TEXT NOT NULL,
            scopes TEXT NOT NULL,
            parent TEXT,
            created_at INTEGER NOT NULL,
            created_by TEXT NOT NULL,
            expires_at INTEGER,
            revoked_at INTEGER,
            PRIMARY KEY (org_id, digest)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE UNIQUE INDEX hub_token_by_id ON hub_token (org_id, id)",
        """
        CREATE TABLE hub_family (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            parent TEXT,
            machine TEXT,
            machine_name TEXT,
            created_at INTEGER NOT NULL,
            refreshed_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            revoked_at INTEGER,
            asked INTEGER NOT NULL,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hub_family_by_user ON hub_family (org_id, user_id)",
        "CREATE INDEX hub_family_revoked ON hub_family (org_id, revoked_at) WHERE revoked_at IS NOT NULL",
        """
        CREATE TABLE hub_refresh (
            org_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            family TEXT NOT NULL,
            parent TEXT,
            made_at INTEGER NOT NULL,
            used_at INTEGER,
            PRIMARY KEY (org_id, digest)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hub_refresh_by_family ON hub_refresh (org_id, family, parent)",
        """
        CREATE TABLE hub_device (
            org_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            code TEXT NOT NULL,
            machine TEXT,
            machine_name TEXT,
            address TEXT NOT NULL,
            made_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            asked_at INTEGER,
            pause INTEGER NOT NULL,
            state TEXT NOT NULL,
            user_id TEXT,
            parent TEXT,
            PRIMARY KEY (org_id, digest)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE UNIQUE INDEX hub_device_by_code ON hub_device (org_id, code)",
        """
        CREATE TABLE hub_key (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            secret TEXT NOT NULL,
            made_at INTEGER NOT NULL,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE hub_attempt (
            org_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            address TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (org_id, kind, address)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE hub_audit (
            org_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            at INTEGER NOT NULL,
            actor TEXT NOT NULL,
            action TEXT NOT NULL,
            subject TEXT NOT NULL,
            before TEXT,
            after TEXT,
            previous TEXT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (org_id, number)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE hub_audit_end (
            org_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (org_id)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE hub_directory (
            org_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            name TEXT NOT NULL,
            document TEXT NOT NULL,
            PRIMARY KEY (org_id, kind, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hub_directory_by_name ON hub_directory (org_id, kind, name)",
        """
        CREATE TABLE hub_member (
            org_id TEXT NOT NULL,
            group_id TEXT NOT NULL,
            member TEXT NOT NULL,
            PRIMARY KEY (org_id, group_id, member)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hub_member_by_member ON hub_member (org_id, member)",
    ),
    (
        """
        CREATE TABLE hub_policy (
            org_id TEXT NOT NULL,
            version INTEGER NOT NULL,
            at INTEGER NOT NULL,
            actor TEXT NOT NULL,
            document TEXT NOT NULL,
            PRIMARY KEY (org_id, version)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE hub_request (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            team_id TEXT,
            state TEXT NOT NULL,
            at INTEGER NOT NULL,
            content TEXT NOT NULL,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hub_request_by_state ON hub_request (org_id, state, at)",
        "CREATE INDEX hub_request_by_user ON hub_request (org_id, user_id, at)",
    ),
    (
        """
        CREATE TABLE hub_daily (
            org_id TEXT NOT NULL,
            task TEXT NOT NULL,
            ran_at INTEGER NOT NULL,
            PRIMARY KEY (org_id, task)
        ) STRICT, WITHOUT ROWID
        """,
    ),
)

_SCHEMA = """
CREATE TABLE hub_schema (
    id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    installation TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID
"""
_THERE = {
    True: "SELECT 1 FROM sqlite_master WHERE name = 'hub_schema'",
    False: "SELECT 1 FROM pg_tables WHERE tablename = 'hub_schema' AND schemaname = current_schema()",
}
# Of several hubs that start on an empty database one makes the tables, and the others wait for it.
_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('acp-proxy hub ' || current_schema(), 0))"


def prepare(tables: Tables) -> str:
    """Bring the schema up to the last step; the name of this installation, which its tokens are for.

    Raises LedgerError also for a schema that a newer version has made.
    """
    found = tables.rows("SELECT version, installation FROM hub_schema") if is_there(tables) else []
    if not found or found[0][0] < len(_STEPS):
        found = tables.write(lambda run: _migrate(run, tables))
    ((version, installation),) = found
    if version > len(_STEPS):
        raise LedgerError(f"the hub's tables are of a newer acp-proxy (version {version}, known up to {len(_STEPS)})")
    return str(installation)


def is_there(tables: Tables) -> bool:
    """Whether a hub has made its tables."""
    return bool(tables.rows(_THERE[tables.dialect.serial]))


def _migrate(run: Run, tables: Tables) -> list[tuple[int, str]]:
    if not tables.dialect.serial:
        run(_TURN, ())
    if not run(_THERE[tables.dialect.serial], ()):
        define(run, tables.dialect, [_SCHEMA])
        run("INSERT INTO hub_schema VALUES (1, 0, ?)", (new_id(),))
    ((done, installation),) = run("SELECT version, installation FROM hub_schema", ())
    for step in _STEPS[done:]:
        define(run, tables.dialect, step)
    version = max(done, len(_STEPS))
    run("UPDATE hub_schema SET version = ?", (version,))
    return [(version, installation)]
