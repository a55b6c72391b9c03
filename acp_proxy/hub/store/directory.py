"""Users and groups as an identity provider has told them by SCIM: its documents, and who is a member of what."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from acp_proxy.ledger.statements import Read

Kind = Literal["User", "Group"]


class Directory:
    """Of one organisation, in one transaction: `run`. All methods raise LedgerError."""

    def __init__(self, run: Read, organisation: str) -> None:
        self._run = run
        self._organisation = organisation

    def documents(self, kind: Kind, *, id: str | None = None, name: str | None = None) -> list[str]:
        """JSON, by id. With `id` or `name` those that have one of both."""
        sql = "SELECT document FROM hub_directory WHERE org_id = ? AND kind = ?"
        values: list[object] = [self._organisation, kind]
        if id is not None or name is not None:
            sql += " AND (id = ? OR name = ?)"
            values += [id or "", name or ""]
        return [document for (document,) in self._run(f"{sql} ORDER BY id", values)]

    def put(self, kind: Kind, id: str, name: str, document: str) -> None:
        sql = """
            INSERT INTO hub_directory VALUES (?, ?, ?, ?, ?) ON CONFLICT (org_id, kind, id)
            DO UPDATE SET name = excluded.name, document = excluded.document
        """
        self._run(sql, (self._organisation, kind, id, name, document))

    def drop(self, kind: Kind, id: str) -> None:
        self._run("DELETE FROM hub_directory WHERE org_id = ? AND kind = ? AND id = ?", (self._organisation, kind, id))

    def put_members(self, group: str, members: Collection[str]) -> set[str]:
        """In place of those that it has; who comes or leaves. All are ids."""
        sql = "SELECT member FROM hub_member WHERE org_id = ? AND group_id = ?"
        before = {member for (member,) in self._run(sql, (self._organisation, group))}
        gone, new = before - set(members), set(members) - before
        for member in gone:
            sql = "DELETE FROM hub_member WHERE org_id = ? AND group_id = ? AND member = ?"
            self._run(sql, (self._organisation, group, member))
        for member in new:
            self._run("INSERT INTO hub_member VALUES (?, ?, ?)", (self._organisation, group, member))
        return gone | new

    def leave_all(self, member: str) -> None:
        self._run("DELETE FROM hub_member WHERE org_id = ? AND member = ?", (self._organisation, member))

    def groups_of(self, member: str) -> list[str]:
        """Names, as they are told."""
        sql = """
            SELECT g.name FROM hub_member m
            JOIN hub_directory g ON g.org_id = m.org_id AND g.kind = 'Group' AND g.id = m.group_id
            WHERE m.org_id = ? AND m.member = ? ORDER BY 1
        """
        return [name for (name,) in self._run(sql, (self._organisation, member))]

    def groups_of_user(self, name: str) -> list[str]:
        """Of a user by name."""
        sql = "SELECT id FROM hub_directory WHERE org_id = ? AND kind = 'User' AND name = ?"
        return [group for (user,) in self._run(sql, (self._organisation, name)) for group in self.groups_of(user)]
