"""What the steps of the schema have made, for tests that take some of them back."""

from __future__ import annotations

import re

from acp_proxy.ledger.accounts import pending_rows
from acp_proxy.ledger.migrations import MIGRATIONS


def tables_since(version: int) -> list[str]:
    """The tables that both databases have only after this version's steps."""
    statements = [each for step in MIGRATIONS[version:] for each in step if isinstance(each, str)]
    return [name for each in statements for name in re.findall(r"CREATE TABLE (\w+)", each)]


def gone_since(version: int) -> str:
    """SQL that drops them on PostgreSQL, with what only that has."""
    names = tables_since(version)
    if version <= MIGRATIONS.index(()):
        names += re.findall(r"CREATE TABLE (\w+)", " ".join(map(str, pending_rows.TABLES)))
    return f"DROP TABLE {', '.join(names)}" if names else "SELECT 1"
