"""What the steps of the schema have made, for tests that take some of them back."""

from __future__ import annotations

import re

from acp_proxy.ledger.accounts import pending_rows
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.postgres import keeping


def tables_since(version: int) -> list[str]:
    """The tables that both databases have only after this version's steps."""
    statements = [each for step in MIGRATIONS[version:] for each in step if isinstance(each, str)]
    return [name for each in statements for name in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", each)]


def undone_since(version: int) -> list[str]:
    """SQL that takes the tables and columns of this version's steps and all later ones away."""
    tables = tables_since(version)
    statements = [each for step in MIGRATIONS[version:] for each in step if isinstance(each, str)]
    columns = [found for each in statements for found in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", each)]
    drops = [f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in columns if table not in tables]
    return [*(f"DROP TABLE {table}" for table in tables), *drops]


def gone_since(version: int) -> str:
    """The same on PostgreSQL as one statement, with what only that has."""
    statements = undone_since(version)
    if version <= MIGRATIONS.index(()):
        own = re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", " ".join(map(str, pending_rows.TABLES)))
        statements += [f"DROP TABLE {name}" for name in own]
    own = re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", " ".join(map(str, keeping.TABLES)))
    statements += [f"DROP TABLE IF EXISTS {name}" for name in own]
    return f"DO $$ BEGIN {'; '.join(statements)}; END $$"
