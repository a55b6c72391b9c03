"""Roles beside the owner of the tables."""

from __future__ import annotations

from harness.postgres import Server, name_of


def role(server: Server, url: str, name: str, options: str) -> str:
    """The URL for a role that may do everything with the tables; roles are the server's, not a database's."""
    server.execute("postgres", f"DROP ROLE IF EXISTS {name}")
    server.execute("postgres", f"CREATE ROLE {name} LOGIN {options}")
    server.execute(name_of(url), f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}")
    return url.replace("owner:secret", name)
