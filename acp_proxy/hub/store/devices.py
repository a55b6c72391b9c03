"""Device authorizations (RFC 8628): a machine waits until somebody lets it in with a browser, anywhere."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.hub.store.families import Families, Granted, Machine
from acp_proxy.hub.store.people import holder
from acp_proxy.hub.store.secrets import digest, secret, user_code
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

LIFETIME = 600  # seconds
PAUSE = 5  # seconds between two questions of the machine
_SLOWER = 5  # seconds that are added for who does not keep to it: RFC 8628, 3.5

Answer = Literal["authorization_pending", "slow_down", "access_denied", "expired_token"]


class Waiting(Struct, frozen=True):
    """A machine that waits for who has its code; names are what it says of itself."""

    code: str
    machine: str | None
    machine_name: str | None
    address: str
    made_at: int
    expires_at: int


class Devices:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)
        self._families = Families(tables, organisation)

    def begin(self, machine: Machine, address: str, now: int) -> tuple[str, str]:
        """The device's code and the user's."""
        sql = """
            INSERT INTO hub_device VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, 'waiting', NULL, NULL)
            ON CONFLICT DO NOTHING RETURNING 1
        """
        while True:  # until the code is nobody else's
            device, code = secret(""), user_code()
            values = (self._organisation, digest(device), code, *machine, address, now, now + LIFETIME, PAUSE)
            if self._tables.write(lambda run, values=values: run(sql, values)):  # type: ignore[misc]
                return device, code

    def waiting(self, code: str, now: int) -> Waiting | None:
        sql = """
            SELECT code, machine, machine_name, address, made_at, expires_at FROM hub_device
            WHERE org_id = ? AND code = ? AND state = 'waiting' AND expires_at > ?
        """
        found = self._tables.rows(sql, self._organisation, code, now)
        return Waiting(*found[0]) if found else None

    def decide(self, code: str, user: str, parent: str | None, now: int, *, allow: bool) -> bool:
        """Whether it was still to be decided. `parent` is the token by which the user has signed in, if by one."""
        state = "allowed" if allow else "denied"
        sql = """
            UPDATE hub_device SET state = ?, user_id = ?, parent = ?
            WHERE org_id = ? AND code = ? AND state = 'waiting' AND expires_at > ? RETURNING machine_name, address
        """

        def work(run: Run) -> bool:
            self._audit.lock(run)
            found = run(sql, (state, user, parent, self._organisation, code, now))
            for machine_name, address in found:
                after = {"machine_name": machine_name, "address": address}
                self._audit.note(run, Change(user, f"device.{state}", code, None, after), now)
            return bool(found)

        return self._tables.write(work)

    def ask(self, device: str, now: int) -> Granted | Answer:
        """What the machine gets when it was let in, once; else what it is to do."""
        return self._tables.write(lambda run: self._ask(run, digest(device), now))

    def _ask(self, run: Run, device: str, now: int) -> Granted | Answer:
        which, key = "org_id = ? AND digest = ?", (self._organisation, device)
        sql = f"SELECT state, expires_at, asked_at, pause FROM hub_device WHERE {which}"
        found = run(sql, key)
        if not found or now >= found[0][1]:
            return "expired_token"  # or it was never there: who guesses learns nothing
        state, _, asked_at, pause = found[0]
        if state == "waiting":
            early = asked_at is not None and now - asked_at < pause
            pause += _SLOWER if early else 0
            run(f"UPDATE hub_device SET asked_at = ?, pause = ? WHERE {which}", (now, pause, *key))
            return "slow_down" if early else "authorization_pending"
        return "access_denied" if state == "denied" else self._let_in(run, device, now)

    def _let_in(self, run: Run, device: str, now: int) -> Granted | Answer:
        self._audit.lock(run)
        sql = "DELETE FROM hub_device WHERE org_id = ? AND digest = ? RETURNING user_id, parent, machine, machine_name"
        for user, parent, *machine in run(sql, (self._organisation, device)):
            held = holder(run, self._organisation, user, parent, now)
            if held is None:
                return "access_denied"
            return self._families.begin(run, held, parent, (machine[0], machine[1]), now)
        return "expired_token"

    def tidy(self, now: int) -> None:
        sql = "DELETE FROM hub_device WHERE org_id = ? AND expires_at < ?"
        self._tables.write(lambda run: run(sql, (self._organisation, now - LIFETIME)))
