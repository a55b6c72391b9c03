"""The ledger in a PostgreSQL database that all machines of a team write to. Right at every level of isolation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerUnavailableError,
    NoLedgerError,
    OpenTurn,
    Row,
    RowRefusedError,
    Warn,
    log_warning,
)
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.accounts.holding import Insert
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.budgets import Grant, Held
from acp_proxy.ledger.dialects import POSTGRES
from acp_proxy.ledger.durability import Replication, Restored
from acp_proxy.ledger.journal.recovery import is_owed
from acp_proxy.ledger.postgres.errors import CONFLICTS, FIRST_TABLE
from acp_proxy.ledger.postgres.keeping import Keeping
from acp_proxy.ledger.postgres.replication import is_flushed, replication
from acp_proxy.ledger.postgres.schema import ALONE, CHECK, migrate, situation, version_of
from acp_proxy.ledger.postgres.transactions import SetBackError, Transactions
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.restored import NOTHING
from acp_proxy.ledger.sql_ledger import SqlLedger, sized
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.sums.tallies import is_new_report

T = TypeVar("T")

_LONGEST_STEP = 1800.0  # seconds that a statement of a migration may take: an index of all rows, say
_SUMS = "sums"  # beside the keys of accounts, which are JSON
_POOLED = 10.0  # seconds in which a connection through a pooler is believed to lead to the same server
# A standby was started at another moment, as was a server with a backup; or it is another database, or another table.
_INCARNATION = """
SELECT md5(concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), oid, CAST('turn' AS regclass)::oid))
FROM pg_database WHERE datname = current_database()
"""


class PostgresLedger(SqlLedger):
    """A `BudgetLedger`; `patience` bounds in seconds each statement, and how long conflicts are repeated."""

    dialect = POSTGRES
    fails_over = True

    def __init__(
        self,
        url: str,
        clock: Callable[[], int] = time.time_ns,
        *,
        patience: float = 5.0,
        warn: Warn = log_warning,
        journals: Sequence[Path] = (),
        must_exist: bool = False,
    ) -> None:
        super().__init__(warn, journals)
        self._incarnation, self._asked = "", 0.0  # of this connection, and when that was asked
        self.dialect = replace(POSTGRES, clock=clock)
        address = Address.of(url)
        self.url = address.url
        # The server of a new connection may have been restored, or be one that lagged behind.
        self._transactions = Transactions(address, patience, self._reconnected)
        self._unsure: dict[str, str] = {}  # what may have been counted, and as which report
        self._keeping = Keeping(self, self._read, self._write, journals, warn)
        try:
            anew = partial(self._transactions.run, repeat=(*CONFLICTS, *FIRST_TABLE))
            if must_exist and not anew(version_of) and not is_owed(journals, self.url):
                reason = "there is no ledger in this database: expected one that `acp-proxy run` has made"
                raise NoLedgerError(f"ledger {self.url}: {reason}")
            self._version = migrate(anew, partial(anew, longest=_LONGEST_STEP))
            self._transactions.check = CHECK
            self._transactions.beside = self._keeping.beside
            with suppress(LedgerError):  # what speaks PostgreSQL's protocol alone may not know the question
                hides_rows, self._transactions.commits_early = situation(self._read)
                if hides_rows:
                    warn("ledger.rows_hidden", error=f"ledger {self.url}: row-level security applies to this role")
        except BaseException:
            self.close()
            raise

    def check(self) -> str:
        self._write(lambda run: run("UPDATE acp_proxy_schema SET version = version WHERE id < 0", ()))  # none
        ((rows, size, version),) = self._read(
            "SELECT (SELECT count(*) FROM turn), pg_database_size(current_database()), "
            "current_setting('server_version')",
            (),
        )
        return f"{self.url}: {sized(rows, size)}, schema {self._version}, PostgreSQL {version}"

    def _appended(self, rows: Sequence[Row], *, in_order: bool) -> Sequence[Row]:
        with self._keeping.writing(rows[0].origin.organisation if rows else "", rows):
            return super()._appended(rows, in_order=in_order)

    def hold(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int, until: int, *, unpriced: bool = False
    ) -> Held:
        with self._noticing_lost([(turn, wants)]):
            return super().hold(turn, wants, now, until, unpriced=unpriced)

    def hold_together(self, prompts: Sequence[Prompt]) -> list[Held | RowRefusedError]:
        with self._noticing_lost([(prompt.turn, prompt.wants) for prompt in prompts]):
            return super().hold_together(prompts)

    @contextmanager
    def _noticing_lost(self, asked: Sequence[tuple[OpenTurn, Sequence[tuple[Account, HoldSize]]]]) -> Iterator[None]:
        """A server may read what came on a connection although its other end is gone, and do it then."""
        lost = self._transactions.lost
        try:
            yield
        finally:
            if self._transactions.lost > lost:
                for turn, wants in asked:
                    self._known.not_answered(turn.id, [account for account, _ in wants])

    def release(self, organisation: str, turn: str, *, asked_elsewhere: bool = False) -> None:
        with self._keeping.writing(organisation, released=(organisation, turn)):
            super().release(organisation, turn, asked_elsewhere=asked_elsewhere)

    def grant(self, grant: Grant) -> None:
        with self._keeping.writing(grant.organisation, grant=grant):
            super().grant(grant)

    def correct(self, before: Row, after: Row, now: int) -> bool:
        with self._keeping.writing(after.origin.organisation, corrected=(before, after)):
            return super().correct(before, after, now)

    def _count(self, inserts: Sequence[Insert]) -> None:
        """Once, although an answer may be lost: who asks the same again then has the same report."""
        rows = [row for _, some, _ in inserts for row in some]
        if not rows:
            return
        organisation, key = str(rows[0][0]), repr(rows)
        report = self._unsure.pop(key, None) or os.urandom(8).hex()

        def work(run: Run) -> None:
            if is_new_report(run, organisation, report, 1, time.time_ns()):
                self._insert(run, inserts)

        try:
            self._write(work)
        except LedgerUnavailableError:
            self._unsure[key] = report
            raise

    def settle_dead(self, now: int) -> int:
        self._keeping.restore_left()
        return super().settle_dead(now)

    def is_sure(self) -> bool:
        with suppress(LedgerForbiddenError):
            return self._keeping.is_sure()
        return False

    def restored(self, organisation: str, since: int = 0) -> Restored:
        with suppress(LedgerForbiddenError):  # a table that its owner has not granted yet
            return super().restored(organisation, since)
        return NOTHING

    def replication(self) -> Replication | None:
        try:
            return replace(replication(self._read), pooled=self._transactions.pooled)
        except LedgerUnavailableError:
            raise
        except LedgerError:  # what speaks PostgreSQL's protocol alone may know no standbys
            return None

    def is_everywhere(self) -> bool:
        try:
            return is_flushed(self._read)
        except LedgerUnavailableError:
            raise
        except LedgerError:  # what speaks PostgreSQL's protocol alone may know no standbys
            return False

    def incarnation(self) -> str:
        """The same for all who have connections to the same server and database."""
        if not self._incarnation or (self._transactions.pooled and time.monotonic() > self._asked + _POOLED):
            try:
                ((found,),) = self._read(_INCARNATION, ())
            except LedgerUnavailableError:
                raise
            except LedgerError:  # what speaks PostgreSQL's protocol alone may not know the question
                found = os.urandom(8).hex()
            self._incarnation, self._asked = str(found), time.monotonic()
        return self._incarnation

    def _reconnected(self) -> None:
        self._known.clear()
        self._incarnation = ""

    def rest(self) -> None:
        self._transactions.close()

    def close(self) -> None:
        self._keeping.close()
        self._transactions.close()

    def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._transactions.run(lambda run: run(sql, values), begin=False)

    def _write(self, work: Callable[[Run], T], *, early: bool = False) -> T:
        while True:
            try:
                return self._transactions.run(work, early=early)
            except SetBackError:
                self._keeping.restore()

    def _lock(self, run: Run, accounts: Sequence[Account]) -> None:
        """Rows that every hold changes. The next statement then sees what others did that was waited for.

        Under READ COMMITTED because it has a snapshot of its own; otherwise by 40001, for the row was changed. That is
        why it is not in one statement with what is read, and why FOR UPDATE would not do. In the order of keys, so
        that two holds never wait for each other. A budget of one turn has nobody to wait for.
        """
        keys = sorted({account.key for account in accounts if account.budget.window.name != "turn"})
        if keys:
            _change(run, organisation_of(accounts[0]), keys)

    def _lock_sums(self, run: Run, organisation: str) -> None:
        """The last lock of each transaction that wants it, so that nobody waits crosswise."""
        _change(run, organisation, [_SUMS])

    def _take_pending(self, run: Run, organisation: str) -> list[str]:
        locked = f"SELECT 1 FROM account WHERE org_id = ? AND key = '{_SUMS}' FOR UPDATE SKIP LOCKED"
        taken = f"DELETE FROM unsummed WHERE org_id = ? AND EXISTS ({locked}) RETURNING turn"
        run("INSERT INTO account VALUES (?, ?, 0) ON CONFLICT DO NOTHING", (organisation, _SUMS))
        turns = [turn for (turn,) in run(taken, (organisation, organisation))]
        if turns:
            self._lock_sums(run, organisation)  # it is locked; for who has an older snapshot it is changed as well
        return turns

    def _lock_totals(self, run: Run) -> None:
        """All who write read the version first; who only reads does not."""
        run(ALONE, ())


def _change(run: Run, organisation: str, keys: Sequence[str]) -> None:
    rows = ", ".join(["(?, ?, 1)"] * len(keys))
    sql = f"INSERT INTO account VALUES {rows} ON CONFLICT (org_id, key) DO UPDATE SET holds = account.holds + 1"
    run(sql, [value for key in keys for value in (organisation, key)])
