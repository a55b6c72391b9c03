"""Backups of a database, for tests of what a ledger does that is set back."""

from __future__ import annotations

from harness.postgres import Server, name_of


class Backups:
    """Of one database; to restore one ends all connections to it."""

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._name = name_of(url)

    def _run(self, *statements: str) -> None:
        for sql in statements:
            self._server.execute("postgres", sql)

    def make(self) -> None:
        self._run(f"DROP DATABASE IF EXISTS {self._name}_backup WITH (FORCE)")
        self._server.cut(self._name)
        self._run(f"CREATE DATABASE {self._name}_backup TEMPLATE {self._name}")

    def restore(self) -> None:
        self._run(f"DROP DATABASE {self._name} WITH (FORCE)")
        self._run(f"CREATE DATABASE {self._name} TEMPLATE {self._name}_backup")
