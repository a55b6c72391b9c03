"""Tokens that somebody made: of a person without a provider, of a program such as CI, of a browser that signed in.

Only a digest is kept, so that nobody who reads the database can use one.
"""

from __future__ import annotations

from typing import Any, Literal

import orjson
from msgspec import Struct

from acp_proxy.hub.identity import Role
from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.hub.store.people import Holder, holder
from acp_proxy.hub.store.secrets import SESSION, TOKEN, digest, new_id, secret
from acp_proxy.ledger.accounts.lending import end_leases
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

Kind = Literal["token", "session"]
_COLUMNS = "id, kind, name, user_id, role, team, leads, scopes, parent, created_at, created_by, expires_at, revoked_at"
_KEPT = 86400  # seconds that a session is kept after its end


class Token(Struct, frozen=True):
    """`role` is None for a session: it has that of its person, or of the token `parent` that it was begun with.

    `scopes` limit what it is good for; an empty tuple does not.
    """

    id: str
    kind: Kind
    name: str
    user: str
    role: Role | None
    team: str | None
    leads: tuple[str, ...]
    scopes: tuple[str, ...]
    parent: str | None
    created_at: int
    created_by: str
    expires_at: int | None = None
    revoked_at: int | None = None

    def holds(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Asked(Struct, frozen=True):
    """A token that is to be made."""

    name: str
    user: str
    role: Role = "developer"
    team: str | None = None
    leads: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    expires_at: int | None = None


class Tokens:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def make(self, asked: Asked, actor: str, now: int) -> tuple[str, Token]:
        """The secret, which is not kept, and what is."""
        made, token = secret(TOKEN), _made(asked, actor, now)
        self._tables.write(lambda run: self._insert(run, made, token, "token.made", now))
        return made, token

    def first(self, now: int) -> str | None:
        """An administrator's token, where nobody can administer yet."""
        made, token = secret(TOKEN), _made(Asked("first", "administrator", "administrator"), "hub", now)
        sql = "SELECT 1 FROM hub_token WHERE org_id = ? AND role = 'administrator' LIMIT 1"

        def work(run: Run) -> str | None:
            self._audit.lock(run)
            if run(sql, (self._organisation,)):
                return None
            self._insert(run, made, token, "token.made", now)
            return made

        return self._tables.write(work)

    def begin_session(self, user: str, parent: str | None, now: int, until: int) -> tuple[str, Token]:
        """Of a browser, whose user has signed in."""
        made = secret(SESSION)
        token = Token(new_id(), "session", "browser", user, None, None, (), (), parent, now, user, until)
        self._tables.write(lambda run: self._insert(run, made, token, "session.begun", now))
        return made, token

    def find(self, shown: str, now: int) -> tuple[Token, Holder | None] | None:
        """The token whose secret is shown, and what its holder may do; None: there is none."""
        sql = f"SELECT {_COLUMNS} FROM hub_token WHERE org_id = ? AND digest = ?"
        found = self._tables.rows(sql, self._organisation, digest(shown))
        if not found:
            return None
        token = _token(found[0])
        source = token.parent if token.kind == "session" else token.id
        return token, holder(self._tables.read, self._organisation, token.user, source, now)

    def all(self) -> list[Token]:
        """Those that somebody made, in the order in which they were."""
        sql = f"SELECT {_COLUMNS} FROM hub_token WHERE org_id = ? AND kind = 'token' ORDER BY created_at, id"
        return [_token(found) for found in self._tables.rows(sql, self._organisation)]

    def revoke(self, id: str, actor: str, now: int, *, leases_end: bool = True) -> Token | None:
        """The token as it was, or None where there is none that holds. With it end leases to what it has signed in."""
        sql = f"""
            UPDATE hub_token SET revoked_at = ? WHERE org_id = ? AND id = ? AND revoked_at IS NULL RETURNING {_COLUMNS}
        """

        def work(run: Run) -> Token | None:
            self._audit.lock(run)
            found = run(sql, (now, self._organisation, id))
            if not found:
                return None
            token = _token(found[0])
            action = "session.ended" if token.kind == "session" else "token.revoked"
            if leases_end:
                sql_of = "SELECT id FROM hub_family WHERE org_id = ? AND parent = ?"
                signed_in = [family for (family,) in run(sql_of, (self._organisation, token.id))]
                end_leases(run, self._organisation, token.user, [token.id, *signed_in])
            self._audit.note(run, Change(actor, action, token.id, _shown(token)), now)
            return token

        return self._tables.write(work)

    def tidy(self, now: int) -> None:
        """Sessions only: what was made by somebody stays listed."""
        sql = "DELETE FROM hub_token WHERE org_id = ? AND kind = 'session' AND expires_at < ?"
        self._tables.write(lambda run: run(sql, (self._organisation, now - _KEPT)))

    def _insert(self, run: Run, made: str, token: Token, action: str, now: int) -> None:
        texts = [orjson.dumps(each).decode() for each in (token.leads, token.scopes)]
        of_user = (token.kind, token.name, token.user, token.team, token.role, *texts, token.parent)
        times = (token.created_at, token.created_by, token.expires_at, token.revoked_at)
        values = (self._organisation, digest(made), token.id, *of_user, *times)
        run(f"INSERT INTO hub_token VALUES ({', '.join('?' * len(values))})", values)
        self._audit.note(run, Change(token.created_by, action, token.id, None, _shown(token)), now)


def _made(asked: Asked, actor: str, now: int) -> Token:
    rights = (asked.role, asked.team, asked.leads, asked.scopes)
    return Token(new_id(), "token", asked.name, asked.user, *rights, None, now, actor, asked.expires_at)


def _token(found: tuple[Any, ...]) -> Token:
    token, kind, name, user, role, team, leads, scopes, *rest = found
    return Token(token, kind, name, user, role, team, tuple(orjson.loads(leads)), tuple(orjson.loads(scopes)), *rest)


def _shown(token: Token) -> dict[str, Any]:
    names = ("name", "user", "role", "team", "leads", "scopes", "expires_at")
    return {name: value for name in names if (value := getattr(token, name)) not in (None, ())}
