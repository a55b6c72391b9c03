"""Who may sign in, with team and role as the provider's groups gave them at the last sign-in.

Who leaves keeps a row: what they spent stays theirs. Their sessions, tokens and refreshes end in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from msgspec import Struct, structs

from acp_proxy.hub.identity import Role
from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.hub.store.directory import Directory
from acp_proxy.ledger.accounts.lending import end_leases
from acp_proxy.ledger.statements import Read, Run
from acp_proxy.ledger.tables import Tables

T = TypeVar("T")

_COLUMNS = "user_id, role, team, leads, subject, name, email, active, created_at, seen_at"


class Person(Struct, frozen=True):
    """`subject` is the provider's issuer and its name for the account, with a space between them."""

    user: str
    role: Role = "developer"
    team: str | None = None
    leads: tuple[str, ...] = ()
    subject: str | None = None
    name: str | None = None
    email: str | None = None
    active: bool = True
    created_at: int = 0
    seen_at: int | None = None


class Holder(Struct, frozen=True):
    """What the holder of a secret may do now."""

    user: str
    role: Role
    team: str | None
    leads: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class People:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def write(self, work: Callable[[Run], T]) -> T:
        """What others change together with people, in one transaction."""
        return self._tables.write(work)

    def find(self, user: str) -> Person | None:
        return self.find_in(self._tables.read, user)

    def find_in(self, run: Read, user: str) -> Person | None:
        sql = f"SELECT {_COLUMNS} FROM hub_person WHERE org_id = ? AND user_id = ?"
        found = run(sql, (self._organisation, user))
        return _person(found[0]) if found else None

    def groups_of(self, user: str) -> list[str]:
        """As the directory has told, if there is one."""
        return Directory(self._tables.read, self._organisation).groups_of_user(user)

    def all(self) -> list[Person]:
        sql = f"SELECT {_COLUMNS} FROM hub_person WHERE org_id = ? ORDER BY user_id"
        return [_person(found) for found in self._tables.rows(sql, self._organisation)]

    def arrive(self, person: Person, actor: str, now: int) -> Person:
        """Note who has just signed in at the provider; as they are kept. Whether they are active is not changed."""
        return self._tables.write(lambda run: self._keep(run, person, actor, now, seen=True))

    def keep(self, person: Person, actor: str, now: int) -> Person:
        """The same of who is only told of. Who is not active any more loses all that lets them in."""
        return self._tables.write(lambda run: self.keep_in(run, person, actor, now))

    def keep_in(self, run: Run, person: Person, actor: str, now: int) -> Person:
        """The same within a transaction."""
        return self._keep(run, person, actor, now, seen=False)

    def _keep(self, run: Run, person: Person, actor: str, now: int, *, seen: bool) -> Person:
        self._audit.lock(run)
        before = self.find_in(run, person.user)
        kept = structs.replace(
            person,
            active=before.active if before and seen else person.active,
            created_at=before.created_at if before else now,
            seen_at=now if seen else before and before.seen_at,
        )
        run("DELETE FROM hub_person WHERE org_id = ? AND user_id = ?", (self._organisation, person.user))
        run(f"INSERT INTO hub_person VALUES ({', '.join('?' * 11)})", self._values(kept))
        if not kept.active and (before is None or before.active):
            end_all(run, self._organisation, kept.user, now)
        shown_before = before and _shown(before)
        if shown_before != _shown(kept):
            action = "person.changed" if before else "person.added"
            self._audit.note(run, Change(actor, action, kept.user, shown_before, _shown(kept)), now)
        return kept

    def _values(self, person: Person) -> tuple[object, ...]:
        of_provider = (person.subject, person.name, person.email)
        rights = (int(person.active), person.team, person.role, orjson.dumps(person.leads).decode())
        return (self._organisation, person.user, *of_provider, *rights, person.created_at, person.seen_at)


def end_all(run: Run, organisation: str, user: str, now: int) -> None:
    """Everything that lets a user in, and what was lent to their machines: their rows come no more."""
    for table in ("hub_token", "hub_family"):
        sql = f"UPDATE {table} SET revoked_at = ? WHERE org_id = ? AND user_id = ? AND revoked_at IS NULL"
        run(sql, (now, organisation, user))
    sql = "DELETE FROM hub_device WHERE org_id = ? AND user_id = ?"
    run(sql, (organisation, user))
    end_leases(run, organisation, user)


def holder(run: Read, organisation: str, user: str, parent: str | None, now: int) -> Holder | None:
    """What is allowed to who signed in by the token `parent`, or by the provider; None: nothing any more."""
    people = run(
        "SELECT active, role, team, leads FROM hub_person WHERE org_id = ? AND user_id = ?", (organisation, user)
    )
    if people and not people[0][0]:
        return None
    if parent is None:
        return Holder(user, people[0][1], people[0][2], _names(people[0][3])) if people else None
    sql = "SELECT role, team, leads, scopes, expires_at, revoked_at FROM hub_token WHERE org_id = ? AND id = ?"
    for role, team, leads, scopes, expires_at, revoked_at in run(sql, (organisation, parent)):
        if revoked_at is None and (expires_at is None or now < expires_at):
            return Holder(user, role, team, _names(leads), _names(scopes))
    return None


def _person(found: tuple[Any, ...]) -> Person:
    user, role, team, leads, subject, name, email, active, created_at, seen_at = found
    return Person(user, role, team, _names(leads), subject, name, email, bool(active), created_at, seen_at)


def _names(text: str) -> tuple[str, ...]:
    return tuple(orjson.loads(text))


def _shown(person: Person) -> dict[str, Any]:
    """What of a person is worth a line in the log."""
    found = structs.asdict(person)
    return {name: found[name] for name in ("role", "team", "leads", "subject", "name", "email", "active")}
