"""Refresh tokens: each is good for one refresh, which gives the next one. All that came of one sign-in are a family.

A token that is shown again after its successor was used has been stolen, by who shows it or from who does: the whole
family ends. As long as its successor was not used, the answer may have been lost on the way, as of a laptop that was
closed: then there is another successor, and the lost one counts as used. Had a thief asked, who has the lost one ends
the family with their next refresh.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.hub.store.people import Holder, holder
from acp_proxy.hub.store.secrets import REFRESH, digest, new_id, secret
from acp_proxy.ledger.accounts.lending import end_leases
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

LIFETIME = 90 * 86400  # seconds from a sign-in to the next
IDLE = 30 * 86400  # seconds after which a machine that did not refresh signs in anew
_COLUMNS = "id, user_id, parent, machine, machine_name, created_at, refreshed_at, expires_at, revoked_at"

Machine = tuple[str | None, str | None]  # its id and its name, as it says


class Family(Struct, frozen=True):
    """What came of one sign-in. `parent` is the token that it was made with, where no provider was asked."""

    id: str
    user: str
    parent: str | None
    machine: str | None
    machine_name: str | None
    created_at: int
    refreshed_at: int
    expires_at: int
    revoked_at: int | None = None


class Granted(Struct, frozen=True):
    family: Family
    holder: Holder
    refresh: str  # the secret


class Refused(Struct, frozen=True):
    reason: str


class Families:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def begin(self, run: Run, holder: Holder, parent: str | None, machine: Machine, now: int) -> Granted:
        """In the transaction in which a sign-in ends. `parent` is the token that the holder has signed in with."""
        family = Family(new_id(), holder.user, parent, *machine, now, now, now + LIFETIME)
        values = (family.id, family.user, parent, *machine, now, now, family.expires_at, None)
        run(f"INSERT INTO hub_family VALUES ({', '.join('?' * 10)}, 0)", (self._organisation, *values))
        made = self._next(run, family.id, None, now)
        after = {"user": family.user, "machine": machine[0], "machine_name": machine[1], "token": parent}
        self._audit.note(run, Change(family.user, "machine.signed_in", family.id, None, after), now)
        return Granted(family, holder, made)

    def refresh(self, shown: str, now: int) -> Granted | Refused:
        return self._tables.write(lambda run: self._refresh(run, digest(shown), now))

    def _refresh(self, run: Run, shown: str, now: int) -> Granted | Refused:
        # Changed before it is read: two that show one token come one after the other.
        which = "SELECT family FROM hub_refresh WHERE org_id = ? AND digest = ?"
        sql = f"UPDATE hub_family SET asked = asked + 1 WHERE org_id = ? AND id = ({which}) RETURNING {_COLUMNS}"
        found = run(sql, (self._organisation, self._organisation, shown))
        if not found:
            return Refused("this refresh token is not known")
        family = Family(*found[0])
        if family.revoked_at is not None:
            return Refused("this sign-in has ended")
        if now >= family.expires_at or now - family.refreshed_at >= IDLE:
            return Refused("this sign-in has expired")
        if (reason := self._use(run, family, shown, now)) is not None:
            return Refused(reason)
        held = holder(run, self._organisation, family.user, family.parent, now)
        if held is None:
            self.end(run, family, "hub", "machine.ended", now)
            return Refused("its user may not sign in any more")
        run("UPDATE hub_family SET refreshed_at = ? WHERE org_id = ? AND id = ?", (now, self._organisation, family.id))
        return Granted(family, held, self._next(run, family.id, shown, now))

    def _use(self, run: Run, family: Family, shown: str, now: int) -> str | None:
        """Why the token cannot be used, if so."""
        sql = "SELECT used_at FROM hub_refresh WHERE org_id = ? AND digest = ?"
        ((used_at,),) = run(sql, (self._organisation, shown))
        mark = "UPDATE hub_refresh SET used_at = ? WHERE org_id = ? AND digest = ?"
        if used_at is None:
            run(mark, (now, self._organisation, shown))
            return None
        later = "SELECT digest FROM hub_refresh WHERE org_id = ? AND family = ? AND parent = ? AND used_at IS NULL"
        unused = run(later, (self._organisation, family.id, shown))
        if unused:
            for (each,) in unused:
                run(mark, (now, self._organisation, each))
            return None
        self.end(run, family, "hub", "refresh.reused", now)
        return "this refresh token was used before: its sign-in has ended"

    def _next(self, run: Run, family: str, parent: str | None, now: int) -> str:
        made = secret(REFRESH)
        sql = "INSERT INTO hub_refresh VALUES (?, ?, ?, ?, ?, NULL)"
        run(sql, (self._organisation, digest(made), family, parent, now))
        return made

    def of(self, shown: str) -> Family | None:
        """The family of a refresh token."""
        which = "SELECT family FROM hub_refresh WHERE org_id = ? AND digest = ?"
        sql = f"SELECT {_COLUMNS} FROM hub_family WHERE org_id = ? AND id = ({which})"
        found = self._tables.rows(sql, self._organisation, self._organisation, digest(shown))
        return Family(*found[0]) if found else None

    def all(self, user: str | None = None) -> list[Family]:
        """Those that have not ended, the latest first; of one user where one is given."""
        of_user, values = ("", ()) if user is None else ("AND user_id = ?", (user,))
        which = f"org_id = ? AND revoked_at IS NULL {of_user}"
        sql = f"SELECT {_COLUMNS} FROM hub_family WHERE {which} ORDER BY created_at DESC, id"
        return [Family(*found) for found in self._tables.rows(sql, self._organisation, *values)]

    def revoke(self, id: str, actor: str, now: int, *, leases_end: bool = True) -> bool:
        """Whether there was one that had not ended. A machine that signs out itself gives back what it was lent, or
        still has rows that are paid with it: then `leases_end` is false.
        """

        def work(run: Run) -> bool:
            self._audit.lock(run)
            found = run(f"SELECT {_COLUMNS} FROM hub_family WHERE org_id = ? AND id = ?", (self._organisation, id))
            if not found or found[0][-1] is not None:
                return False
            self.end(run, Family(*found[0]), actor, "machine.signed_out", now, leases_end=leases_end)
            return True

        return self._tables.write(work)

    def end(self, run: Run, family: Family, actor: str, action: str, now: int, *, leases_end: bool = True) -> None:
        sql = "UPDATE hub_family SET revoked_at = ? WHERE org_id = ? AND id = ? AND revoked_at IS NULL"
        run(sql, (now, self._organisation, family.id))
        before = {"user": family.user, "machine": family.machine, "machine_name": family.machine_name}
        if leases_end:
            end_leases(run, self._organisation, family.user, [family.id])
        self._audit.note(run, Change(actor, action, family.id, before), now)

    def ended_since(self, since: int) -> set[str]:
        """Ids: access tokens of these hold no more, although their time is not over."""
        sql = "SELECT id FROM hub_family WHERE org_id = ? AND revoked_at >= ?"
        return {family for (family,) in self._tables.rows(sql, self._organisation, since)}

    def tidy(self, now: int) -> None:
        """A token that has expired cannot be told from one that never was."""
        old = "SELECT id FROM hub_family WHERE org_id = ? AND expires_at < ?"

        def work(run: Run) -> None:
            values = (self._organisation, self._organisation, now - 86400)
            run(f"DELETE FROM hub_refresh WHERE org_id = ? AND family IN ({old})", values)
            run("DELETE FROM hub_family WHERE org_id = ? AND expires_at < ?", values[1:])

        self._tables.write(work)
