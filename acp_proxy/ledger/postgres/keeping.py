"""Has a ledger on PostgreSQL get back what it has acknowledged and lost: by a failover, or as a backup was restored.

What this process writes is kept in a file (`journal/kept.py`), and numbered. Each transaction notes its number in the
ledger: where that has a lower one than the file, all later writes are made again. Rows have ids, and are there once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname

from acp_proxy.ledger import LedgerError, LedgerForbiddenError, Row, Warn
from acp_proxy.ledger.budgets import BudgetLedger, Grant
from acp_proxy.ledger.journal.kept import LONGEST, Kept, Write, Writer, left, take
from acp_proxy.ledger.journal.recovery import append_all
from acp_proxy.ledger.restored import note
from acp_proxy.ledger.statements import Read, Run, Statement
from acp_proxy.ledger.statements import Write as Transact


def _identify(run: Run) -> None:
    run("UPDATE acp_proxy_schema SET identity = coalesce(identity, ?)", (os.urandom(16).hex(),))


# The identity tells a ledger that was set back from another one at the same address: a copy of it has the same.
TABLES = (
    "ALTER TABLE acp_proxy_schema ADD COLUMN IF NOT EXISTS identity TEXT",
    _identify,
    """
    CREATE TABLE writer (
        org_id TEXT NOT NULL,
        id TEXT NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (org_id, id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE restored (
        org_id TEXT NOT NULL,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        host TEXT NOT NULL,
        user_id TEXT NOT NULL,
        row_count INTEGER NOT NULL,
        lost_until INTEGER,
        PRIMARY KEY (org_id, id)
    ) STRICT, WITHOUT ROWID
    """,
)
# The root fails where the ledger does not have that write: with BEGIN it is one journey.
_LOOK = "SELECT sqrt((count(*) > 0)::int - 1) FROM writer WHERE org_id = ? AND id = ? AND number >= ?"
_MARK = "INSERT INTO writer VALUES (?, ?, ?) ON CONFLICT (org_id, id) DO UPDATE SET number = excluded.number"
_NUMBER = "SELECT number FROM writer WHERE org_id = ? AND id = ?"
_FORGET = "DELETE FROM writer WHERE number < ?"  # whose files are of no use any more
_STANDBYS = """
SELECT CAST(pg_current_wal_insert_lsn() AS TEXT), count(*), count(flush_lsn),
    bool_and(flush_lsn >= coalesce(CAST(? AS pg_lsn), pg_current_wal_insert_lsn()))
FROM pg_stat_replication
"""


def _nothing(_: Run) -> None:
    """What is to be done is what each transaction does."""


class Keeping:
    """Of one ledger, and of its thread. `read` and `transact` are the ledger's own."""

    def __init__(
        self, ledger: BudgetLedger, read: Read, transact: Transact, journals: Sequence[Path], warn: Warn
    ) -> None:
        self._ledger = ledger
        self._read = read
        self._transact = transact
        self._journals = journals
        self._warn = warn
        self._kept: Kept | None = None
        self._mark: list[Statement] = []  # of the write that is being made
        self._restoring = False
        self._told = False
        self._sure = 0  # the number of the last write that a failover keeps
        self._position: tuple[str, int] | None = None  # one of the server's log, and the last write before it

    def beside(self, fresh: bool) -> list[Statement]:
        """Statements that go with each BEGIN; on a `fresh` connection the server may be another one."""
        kept = self._kept
        if kept is None or self._restoring:
            return []
        return [(_LOOK, (*kept.writer.key, kept.last))] * (fresh and kept.last > 0) + self._mark

    @contextmanager
    def writing(
        self,
        organisation: str,
        rows: Sequence[Row] = (),
        *,
        released: tuple[str, str] | None = None,
        grant: Grant | None = None,
        corrected: tuple[Row, Row] | None = None,
    ) -> Iterator[None]:
        """Keep what is written meanwhile, once it is acknowledged."""
        kept = None if self._restoring or not organisation else self._taken(organisation)
        if kept is None:
            yield
            return
        number = kept.number()
        self._mark = [(_MARK, (*kept.writer.key, number))]
        try:
            yield
        finally:
            self._mark = []
        writes = [Write(number, row=row) for row in rows]
        if not rows:
            writes.append(Write(number, released=released, grant=grant, corrected=corrected))
        try:
            kept.add(number, writes)
        except OSError as error:
            self._tell(str(error))

    def restore(self) -> None:
        """Write again what the ledger lacks of what this process has written."""
        if self._kept is not None:
            self._restore(self._kept)

    def restore_left(self) -> None:
        """The same of processes that are gone."""
        with left(self._journals, self._ledger.url) as files:
            if not files:
                return
            which = " OR ".join(["(org_id = ? AND id = ?)"] * len(files))
            keys = [each for kept in files for each in kept.writer.key]
            found = self._read(f"SELECT org_id, id, number FROM writer WHERE {which}", keys)
            numbers = {tuple(key): number for *key, number in found}
            for kept in files:
                if numbers.get(kept.writer.key, 0) < kept.last:
                    self._restore(kept)

    def is_sure(self) -> bool:
        """Whether all that was written here is where a failover keeps it; where that cannot be told, it is not.

        A standby may be promoted that is not the fastest, so all that stream must have it.
        """
        kept = self._kept
        if kept is None or kept.last <= self._sure:
            return True
        self._transact(_nothing)  # which finds that the server is another one
        last = kept.last
        position, before = self._position or (None, last)
        ((here, standbys, known, flushed),) = self._read(_STANDBYS, (position,))
        if not standbys or (known and flushed):
            self._sure, self._position = before, None
        elif self._position is None:
            self._position = (here, last)
        return self._sure >= kept.last

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _taken(self, organisation: str) -> Kept | None:
        if self._kept is None and self._journals and not self._told:
            try:
                identity = self._identity()
            except LedgerError:  # a role that may not read it; or the write finds the same trouble
                return None
            for directory in self._journals:
                with suppress(OSError):
                    self._kept = take(directory, self._writer(organisation, identity))
                    break
            if self._kept is None:
                self._tell("no local, writable directory")
            elif self._kept.last:  # its process has ended since this one looked for what others left
                self._restore(self._kept)
        return self._kept

    def _writer(self, organisation: str, identity: str) -> Writer:
        return Writer(self._ledger.url, identity, organisation, os.urandom(8).hex())

    def _identity(self) -> str:
        return str(self._read("SELECT identity FROM acp_proxy_schema", ())[0][0])

    def _restore(self, kept: Kept) -> None:
        """All in transactions of their own, and the number last: if one fails, all of it is done again."""
        if kept.writer.identity != (identity := self._identity()):
            kept.begin_anew(self._writer(kept.writer.organisation, identity))
            return
        found = self._read(_NUMBER, kept.writer.key)
        number = found[0][0] if found else 0
        if number >= kept.last:
            return
        self._restoring = True
        try:
            writes = kept.since(number)
            new = append_all(self._ledger, [each.row for each in writes if each.row], self._warn, in_order=True)
            for each in writes:
                if each.released:
                    self._ledger.release(*each.released)
                if each.grant:
                    with suppress(LedgerForbiddenError):  # of another role, which will find it
                        self._ledger.grant(each.grant)
                if each.corrected:
                    new += self._ledger.correct(*each.corrected, each.number)
            lost_until = kept.given_up if kept.given_up > number else None
            self._transact(lambda run: self._note(run, kept, writes, new, lost_until))
        finally:
            self._restoring = False
        if new or lost_until:
            missing = {"not_kept_until": lost_until} if lost_until else {}
            self._warn("ledger.went_back", ledger=self._ledger.url, restored_rows=new, **missing)

    def _note(self, run: Run, kept: Kept, writes: Sequence[Write], new: int, lost_until: int | None) -> None:
        run(_MARK, (*kept.writer.key, kept.last))
        run(_FORGET, (time.time_ns() - 4 * LONGEST,))
        if rows := [row for each in writes for row in (each.row, *(each.corrected or ())) if row]:
            origin = rows[0].origin
            values = (origin.organisation, os.urandom(8).hex(), time.time_ns(), gethostname(), origin.user)
            if new or lost_until:
                note(run, *values, new, lost_until)

    def _tell(self, error: str) -> None:
        if not self._told:
            self._told = True
            self._warn("ledger.not_kept", error=error, effect="a failover may lose rows")
