"""A ledger's schema as a numbered list; a released step is never edited, a new one is added after it.

`org_id` leads every key, so that the same shape can be spread over many machines. Times are Unix nanoseconds, money
is nano-units, and NULL is unknown. Written for SQLite; PostgreSQL's dialect of it is made in `postgres/schema.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.ledger import (
    LedgerError,
    bill_sources,
    captures,
    corrections,
    exports,
    notices,
    plans,
    restored,
    session_keys,
    settings,
    turn_work,
)
from acp_proxy.ledger.accounts import balances, overshoot
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.sums import tallies
from acp_proxy.ledger.sums.totals import BILLING, rebuild


def _fold_titles(run: Run) -> None:
    for (title,) in run("SELECT DISTINCT title FROM session WHERE title IS NOT NULL", ()):
        run("UPDATE session SET title_folded = ? WHERE title = ?", (title.casefold(), title))


def _total_rows(run: Run) -> None:
    organisations = [organisation for (organisation,) in run("SELECT DISTINCT org_id FROM session", ())]
    rebuild(run, organisations, with_billing=False)


Step = tuple[str | Callable[[Run], None], ...]

# As many as `sqlite/version.py` says.
MIGRATIONS: tuple[Step, ...] = (
    (
        """
        CREATE TABLE turn (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            host TEXT NOT NULL,
            agent TEXT NOT NULL,
            session TEXT NOT NULL,
            kind TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            ended_at INTEGER NOT NULL,
            stop_reason TEXT,
            team TEXT,
            project TEXT,
            agent_version TEXT,
            client TEXT,
            usage_source TEXT NOT NULL,
            cost_source TEXT NOT NULL,
            unpriced INTEGER NOT NULL,
            detail TEXT NOT NULL,
            message_id TEXT,
            context_used INTEGER,
            context_size INTEGER,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX turn_by_start ON turn (org_id, started_at, id)",
        "CREATE INDEX turn_by_session ON turn (org_id, user_id, host, agent, session, id)",
        """
        CREATE TABLE line (
            org_id TEXT NOT NULL,
            turn TEXT NOT NULL,
            position INTEGER NOT NULL,
            model TEXT,
            input INTEGER NOT NULL,
            cached_read INTEGER NOT NULL,
            cached_write INTEGER NOT NULL,
            output INTEGER NOT NULL,
            thought INTEGER NOT NULL,
            cost_nano INTEGER,
            currency TEXT,
            price_row TEXT,
            PRIMARY KEY (org_id, turn, position)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE session (
            org_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            host TEXT NOT NULL,
            agent TEXT NOT NULL,
            session TEXT NOT NULL,
            team TEXT,
            project TEXT,
            agent_version TEXT,
            client TEXT,
            title TEXT,
            titled_at INTEGER NOT NULL,
            model TEXT,
            context_used INTEGER,
            context_size INTEGER,
            context_estimated INTEGER NOT NULL,
            agent_cost_nano INTEGER,
            agent_cost_currency TEXT,
            counters TEXT,
            started_at INTEGER NOT NULL,
            ended_at INTEGER NOT NULL,
            PRIMARY KEY (org_id, user_id, host, agent, session)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE turn ADD COLUMN process TEXT",
        "CREATE INDEX turn_by_process ON turn (org_id, process) WHERE process IS NOT NULL",
        "CREATE INDEX turn_by_agent ON turn (org_id, agent, started_at)",
        "ALTER TABLE session ADD COLUMN title_folded TEXT",
        _fold_titles,
        """
        CREATE TABLE series (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            team TEXT,
            project TEXT,
            agent TEXT NOT NULL,
            model TEXT,
            kind TEXT NOT NULL,
            stop_reason TEXT,
            usage_source TEXT NOT NULL,
            cost_source TEXT NOT NULL,
            currency TEXT,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX series_by_user ON series (org_id, user_id)",
        "CREATE INDEX series_by_team ON series (org_id, team)",
        "CREATE INDEX series_by_project ON series (org_id, project)",
        """
        CREATE TABLE total (
            org_id TEXT NOT NULL,
            level INTEGER NOT NULL,
            series TEXT NOT NULL,
            bucket INTEGER NOT NULL,
            row_count INTEGER NOT NULL,
            line_count INTEGER NOT NULL,
            unpriced_rows INTEGER NOT NULL,
            unpriced_lines INTEGER NOT NULL,
            input INTEGER NOT NULL,
            cached_read INTEGER NOT NULL,
            cached_write INTEGER NOT NULL,
            output INTEGER NOT NULL,
            thought INTEGER NOT NULL,
            units INTEGER NOT NULL,
            nano INTEGER NOT NULL,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            PRIMARY KEY (org_id, level, series, bucket)
        ) STRICT, WITHOUT ROWID
        """,
        _total_rows,
        """
        CREATE TABLE open_turn (
            org_id TEXT NOT NULL,
            turn TEXT NOT NULL,
            user_id TEXT NOT NULL,
            team TEXT,
            project TEXT,
            host TEXT NOT NULL,
            agent TEXT NOT NULL,
            agent_version TEXT,
            client TEXT,
            session TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            model TEXT,
            process TEXT,
            owner_host TEXT NOT NULL,
            owner_pid INTEGER NOT NULL,
            owner_started TEXT NOT NULL,
            expires_at INTEGER NOT NULL,
            PRIMARY KEY (org_id, turn)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE hold (
            org_id TEXT NOT NULL,
            account TEXT NOT NULL,
            turn TEXT NOT NULL,
            amount INTEGER NOT NULL,
            unit TEXT NOT NULL,
            estimate TEXT,
            PRIMARY KEY (org_id, account, turn)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX hold_by_turn ON hold (org_id, turn)",
        """
        CREATE TABLE surcharge (
            org_id TEXT NOT NULL,
            account TEXT NOT NULL,
            turn TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            amount INTEGER NOT NULL,
            PRIMARY KEY (org_id, account, turn)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE granted (
            org_id TEXT NOT NULL,
            id TEXT NOT NULL,
            layer TEXT NOT NULL,
            budget TEXT NOT NULL,
            value TEXT,
            amount INTEGER NOT NULL,
            unit TEXT NOT NULL,
            starts_at INTEGER NOT NULL,
            ends_at INTEGER NOT NULL,
            who TEXT NOT NULL,
            why TEXT NOT NULL,
            PRIMARY KEY (org_id, id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE announced (
            org_id TEXT NOT NULL,
            notice TEXT NOT NULL,
            threshold INTEGER NOT NULL,
            teller TEXT NOT NULL,
            PRIMARY KEY (org_id, notice, threshold)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE decision (
            org_id TEXT NOT NULL,
            layer TEXT NOT NULL,
            budget TEXT NOT NULL,
            value TEXT NOT NULL,
            decision TEXT NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (org_id, layer, budget, value, decision)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    settings.TABLES,
    overshoot.TABLES,
    notices.TABLES,
    tallies.TABLES,
    overshoot.WATCHED,
    balances.TABLES,
    session_keys.TABLES,
    balances.ANEW,
    (),  # PostgreSQL's alone: `pending_rows.TABLES`
    (),  # PostgreSQL's alone: an index of totals
    plans.TABLES,
    corrections.TABLES,
    exports.TABLES,
    turn_work.TABLES,
    captures.TABLES,
    (),  # PostgreSQL's alone: tallies in shards, which earlier versions would show each by itself
    (*BILLING, *balances.ANEW),
    (),  # PostgreSQL's alone: `postgres/keeping.TABLES`
    captures.DETAILS,
    bill_sources.TABLES,
    restored.TABLES,
)


def refuse_newer(version: int) -> None:
    """Raises LedgerError for a ledger that has steps which are not known here."""
    if version > len(MIGRATIONS):
        raise LedgerError(f"written by a newer acp-proxy (version {version}, known up to {len(MIGRATIONS)}): update it")
