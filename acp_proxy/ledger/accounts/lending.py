"""What is lent to machines, in SQL: a lease is held as by a turn that never ends, and so counts in each standing.

A row that was paid from a lease takes its charge out of it into a hold of its own, which the row then settles as any
other: at each moment it is lent, held or spent, and never two of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.charge import charge
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import PREFIX, Terms
from acp_proxy.core.entry import Origin
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.accounts import overshoot
from acp_proxy.ledger.accounts.holding import Insert, InsertAll, admission_of, ends
from acp_proxy.ledger.accounts.overshoot import read_accounts
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.statements import Read, Run, execute

Lock = Callable[[Run, Sequence[Account]], None]
Make = Callable[[list[Account]], None]

_MOST = 16  # leases of one user: so many machines
_IS_LEASE = f"turn LIKE '{PREFIX}%'"


def borrower(sign_in: str) -> Owner:
    """Who has a lease: no process, but what a hub has signed in, by the id of the token or the sign-in."""
    return Owner("", 0, sign_in)


NOBODY = borrower("")


class Lending:
    """One lease to a machine, and the `returned` ones that it gives back in the same transaction."""

    def __init__(
        self,
        lease: OpenTurn,
        wants: Sequence[tuple[Account, HoldSize]],
        terms: Terms,
        now: int,
        dialect: Dialect,
        returned: Sequence[str] = (),
    ) -> None:
        self._lease = lease
        self._sizes = [size for _, size in wants]
        self._terms = terms
        self._now = now
        self._dialect = dialect
        self._returned = [each for each in returned if each.startswith(PREFIX)]
        self.accounts = [account for account, _ in wants]
        self._question = Question(self.accounts, now, dialect, lease.id)

    def write(self, run: Run, lock: Lock, make: Make, insert_all: InsertAll) -> dict[str, int]:
        """By the keys of accounts, what is lent. The same lease again is answered as it was."""
        organisation, user = self._lease.origin.organisation, self._lease.origin.user
        lock(run, self.accounts)
        give_back(run, organisation, user, self._returned)
        self._forget_expired(run, organisation)
        found = self._question.ask(run, make)
        if found.own:
            return found.own
        sql = f"SELECT count(*) FROM open_turn WHERE org_id = ? AND user_id = ? AND {_IS_LEASE}"
        if run(sql, (organisation, user))[0][0] >= _MOST:
            return {}
        standings = zip(found.standings, self._sizes, strict=True)
        portions = [(each.account, self._terms.portion(each.left, size.wanted)) for each, size in standings]
        lent = [(account, amount) for account, amount in portions if amount > 0]
        if lent:
            overshoot.watch(run, organisation, found, lent, self._dialect)
            until = self._now + self._terms.kept + found.ahead
            insert_all(run, admission_of(self._lease, lent, until, overshoot.written(self.accounts)))
        return {account.key: amount for account, amount in lent}

    def _forget_expired(self, run: Run, organisation: str) -> None:
        ahead, clock = self._dialect.ahead()
        sql = f"SELECT turn FROM open_turn WHERE org_id = ? AND {_IS_LEASE} AND expires_at - {ahead} <= ?"
        if expired := [turn for (turn,) in run(sql, (organisation, *clock, self._now))]:
            execute(run, ends(organisation, expired))


def give_back(run: Run, organisation: str, user: str, leases: Sequence[str]) -> None:
    """Those of this user; others stay."""
    if not leases:
        return
    some = ", ".join("?" * len(leases))
    sql = f"SELECT turn FROM open_turn WHERE org_id = ? AND user_id = ? AND {_IS_LEASE} AND turn IN ({some})"
    if own := [turn for (turn,) in run(sql, (organisation, user, *leases))]:
        execute(run, ends(organisation, own))


def end_leases(run: Run, organisation: str, user: str, sign_ins: Sequence[str] | None = None) -> None:
    """Those of this user, where `sign_ins` are given only of these: what was not spent is free again."""
    if sign_ins is not None and not sign_ins:
        return
    sql = f"SELECT turn FROM open_turn WHERE org_id = ? AND user_id = ? AND {_IS_LEASE}"
    if sign_ins is not None:
        sql += f" AND owner_started IN ({', '.join('?' * len(sign_ins))})"
    if own := [turn for (turn,) in run(sql, (organisation, user, *(sign_ins or ())))]:
        execute(run, ends(organisation, own))


def lent(read: Read, organisation: str, now: int, dialect: Dialect) -> list[tuple[OpenTurn, int, dict[str, int]]]:
    """Leases that hold, each with when it expires (Unix ns) and by the keys of accounts what is left of it."""
    ahead, clock = dialect.ahead()
    sql = f"""
        SELECT * FROM (
            SELECT o.turn, o.user_id, o.team, o.host, o.started_at, o.expires_at - {ahead} AS expires_at,
                h.account, h.amount
            FROM open_turn o JOIN hold h ON h.org_id = o.org_id AND h.turn = o.turn
            WHERE o.org_id = ? AND o.{_IS_LEASE} AND h.amount > 0
        ) found WHERE expires_at > ? ORDER BY started_at, turn, account
    """
    found: dict[str, tuple[OpenTurn, int, dict[str, int]]] = {}
    for turn, user, team, host, at, until, account, amount in read(sql, (*clock, organisation, now)):
        origin = Origin(organisation, user, team, None, host, "", None, None)
        lease = OpenTurn(turn, origin, "", at, NOBODY)
        found.setdefault(turn, (lease, int(until), {}))[2][account] = int(amount)
    return list(found.values())


class Charging:
    """New rows of one lease, each taking its charge out of it; for those that run or are there nothing is taken."""

    def __init__(self, lease: str, rows: Sequence[Row], until: int, dialect: Dialect) -> None:
        self._lease = lease
        self._rows = {row.entry.id: row for row in reversed(rows)}
        self._until = until
        self._dialect = dialect
        self._organisation, self._user = rows[0].origin.organisation, rows[0].origin.user

    def write(self, run: Run, lock: Lock, insert_all: InsertAll) -> None:
        sql = "SELECT accounts FROM open_turn WHERE org_id = ? AND turn = ? AND user_id = ?"
        found = run(sql, (self._organisation, self._lease, self._user))
        accounts = read_accounts(found[0][0]) if found else ()
        if not accounts:
            return  # given back or expired: the rows are booked all the same
        lock(run, accounts)
        ahead, clock = self._dialect.ahead()
        ((ahead_now,),) = run(f"SELECT {ahead}", clock)
        left = self._left(run)
        inserts: list[Insert] = []
        for row in self._new(run):
            taken = []
            for account in accounts:
                amount = min(charge(account, row.origin, row.entry, process=row.process), left.get(account.key, 0))
                if amount > 0:
                    left[account.key] -= amount
                    taken.append((account, amount))
            if taken:
                turn = OpenTurn(row.entry.id, row.origin, row.entry.session, row.entry.started_at, NOBODY)
                inserts += admission_of(turn, taken, self._until + int(ahead_now), overshoot.written(accounts))
        for key, amount in left.items():
            run(
                "UPDATE hold SET amount = ? WHERE org_id = ? AND account = ? AND turn = ? AND amount <> ?",
                (amount, self._organisation, key, self._lease, amount),
            )
        for insert in inserts:
            insert_all(run, [insert])

    def _left(self, run: Run) -> dict[str, int]:
        sql = "SELECT account, amount FROM hold WHERE org_id = ? AND turn = ?"
        return {account: int(amount) for account, amount in run(sql, (self._organisation, self._lease))}

    def _new(self, run: Run) -> list[Row]:
        marks = ", ".join("?" * len(self._rows))
        values: list[Any] = [self._organisation, *self._rows, self._organisation, *self._rows]
        sql = f"""
            SELECT id FROM turn WHERE org_id = ? AND id IN ({marks})
            UNION ALL SELECT turn FROM open_turn WHERE org_id = ? AND turn IN ({marks})
        """
        known = {turn for (turn,) in run(sql, values)}
        return [row for turn, row in self._rows.items() if turn not in known]


def by_lease(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows that were paid from leases, by these."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.lease is not None and row.lease.startswith(PREFIX):
            found.setdefault(row.lease, []).append(replace(row, lease=None))
    return found
