"""Keys that access tokens are signed with: the newest signs, all of them verify.

They are in the database, so that all hubs on it have the same. Who reads them can sign in as anybody, as who writes to
the database can anyhow.
"""

from __future__ import annotations

import secrets

from msgspec import Struct

from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.hub.store.secrets import new_id
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

LIFETIME = 90 * 86400  # seconds that a key signs
_VERIFIES = 2 * 3600  # after it signs no more: longer than any token lasts


class Key(Struct, frozen=True):
    id: str
    secret: str
    made_at: int

    def __repr__(self) -> str:
        return f"Key({self.id!r})"


class Keys:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def all(self) -> list[Key]:
        """The newest first."""
        sql = "SELECT id, secret, made_at FROM hub_key WHERE org_id = ? ORDER BY made_at DESC, id"
        return [Key(*found) for found in self._tables.rows(sql, self._organisation)]

    def current(self, now: int) -> list[Key]:
        """The same, with a new one where there is none or the newest is old."""
        found = self.all()
        if found and now < found[0].made_at + LIFETIME:
            return found
        return self._tables.write(lambda run: self._rotate(run, now, "hub", found))

    def rotate(self, now: int, actor: str, *, forget: bool = False) -> list[Key]:
        """A new key signs from now on. `forget` ends all others at once: nobody's access token holds any more."""
        return self._tables.write(lambda run: self._rotate(run, now, actor, None, forget=forget))

    def _rotate(self, run: Run, now: int, actor: str, seen: list[Key] | None, *, forget: bool = False) -> list[Key]:
        self._audit.lock(run)
        found = [Key(*each) for each in run(_ALL, (self._organisation,))]
        if seen is not None and found != seen:
            return found  # another hub has done it
        key = Key(new_id(), secrets.token_hex(32), max([now, *(each.made_at + 1 for each in found)]))
        end = key.made_at - 1 if forget else now - LIFETIME - _VERIFIES
        run("DELETE FROM hub_key WHERE org_id = ? AND made_at <= ?", (self._organisation, end))
        run("INSERT INTO hub_key VALUES (?, ?, ?, ?)", (self._organisation, key.id, key.secret, key.made_at))
        ended = [each.id for each in found if each.made_at <= end]
        change = Change(actor, "key.made", key.id, {"keys": [each.id for each in found]}, {"ended": ended})
        self._audit.note(run, change, now)
        return [key, *(each for each in found if each.id not in ended)]


_ALL = "SELECT id, secret, made_at FROM hub_key WHERE org_id = ? ORDER BY made_at DESC, id"
