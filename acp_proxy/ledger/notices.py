"""Notices and who was sent them: an outbox that proxies write to, and that any number of senders empty together.

A sender claims a notice for a while before it sends it. Should it die, the claim runs out and another takes over, so
that each notice is sent at least once, and only then more than once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Struct

from acp_proxy.core.notice import Notice, NoticeKind, unpriced
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Row, exports
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Read, Run, Statement, Write, insert
from acp_proxy.system.decoding import json_decoder

Result = Literal["sent", "retried", "failed"]
RESULTS: tuple[Result, ...] = ("sent", "retried", "failed")

KEPT_FOR = DAY  # what could not be sent by then is no news
_MOST_UNPRICED = 20  # models a day: agents make names up

TABLES = (
    """
    CREATE TABLE notice (
        org_id TEXT NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        budget TEXT,
        at INTEGER NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (org_id, id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX notice_by_time ON notice (org_id, at)",
    "CREATE INDEX notice_of_models ON notice (org_id, at) WHERE kind = 'unpriced'",  # each turn without a price asks
    """
    CREATE TABLE delivery (
        org_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        notice TEXT NOT NULL,
        tries INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        claim TEXT NOT NULL,
        result TEXT,
        error TEXT,
        PRIMARY KEY (org_id, channel, notice)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE delivery_count (
        org_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        result TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (org_id, channel, result)
    ) STRICT, WITHOUT ROWID
    """,
)
_UNLESS_THERE = " ON CONFLICT DO NOTHING"
_FEW = f"""
(SELECT count(*) FROM notice WHERE org_id = ? AND kind = 'unpriced' AND at >= ? AND at < ?) < {_MOST_UNPRICED}
    AND NOT EXISTS (SELECT 1 FROM notice WHERE org_id = ? AND id = ?)
"""
_UNPRICED = f"INSERT INTO notice SELECT ?, ?, ?, ?, ?, ? WHERE {_FEW}{_UNLESS_THERE}"
_CLAIM = """
INSERT INTO delivery VALUES (?, ?, ?, 1, ?, ?, NULL, NULL)
ON CONFLICT (org_id, channel, notice) DO UPDATE SET
    tries = delivery.tries + 1, due_at = excluded.due_at, claim = excluded.claim
WHERE delivery.result IS NULL AND delivery.due_at <= ?
RETURNING tries
"""
_SETTLE = """
UPDATE delivery SET result = ?, error = ?, due_at = ? WHERE org_id = ? AND channel = ? AND notice = ? AND claim = ?
"""
_SETTLED = "SELECT result, error, due_at FROM delivery WHERE org_id = ? AND channel = ? AND notice = ? AND claim = ?"
_COUNT = " ON CONFLICT (org_id, channel, result) DO UPDATE SET count = delivery_count.count + excluded.count"
_COUNTS = "SELECT channel, result, count FROM delivery_count WHERE org_id = ? ORDER BY 1, 2"


class Subscription(Struct, frozen=True):
    """Which notices a channel wants. `channel` tells it from all others, also from one of its name elsewhere."""

    organisation: str
    channel: str
    kinds: tuple[NoticeKind, ...]
    budgets: tuple[str, ...] = ()  # names, or patterns with *; () is any. What is about no budget is not concerned.


class Claimed(Struct, frozen=True):
    """A notice that is the caller's to send; `tries` counts this one."""

    notice: Notice
    tries: int
    claim: str


class DeliveryCount(Struct, frozen=True):
    """How often sending through a channel of that name ended so: each attempt has one result."""

    channel: str
    result: Result
    count: int


class Undelivered(Struct, frozen=True):
    """What of a channel's notices of the last day is not sent; of those that were tried the errors, the latest last."""

    waiting: int = 0  # not tried yet
    retried: tuple[str, ...] = ()  # to be tried again
    failed: tuple[str, ...] = ()  # given up


class Outbox:
    """The outbox of one ledger. Times are Unix ns; all methods raise LedgerError."""

    def __init__(self, read: Read, write: Write, dialect: Dialect) -> None:
        self._read = read
        self._write = write
        self._dialect = dialect

    def note(self, notices: Iterable[Notice]) -> None:
        """Keep notices; those whose id is there are skipped."""
        kept = list(notices)
        self._write(lambda run: note(run, kept))

    def noted(self, organisation: str, ids: Sequence[str]) -> list[Notice]:
        """Those with these ids that this version knows, in no order."""
        sql = f"SELECT content FROM notice WHERE org_id = ? AND id IN ({', '.join('?' * len(ids))})"
        found = map(_notice, (content for (content,) in self._read(sql, (organisation, *ids)))) if ids else ()
        return [notice for notice in found if notice is not None]

    def claim(self, wanted: Subscription, now: int, until: int) -> Claimed | None:
        """The notice that is due first, for this caller alone until then; None when there is none.

        Due is what was never claimed, whose claim ran out, or whose time for another try has come.
        """
        for content in self._read(*self._due(wanted, now)):
            notice = _notice(*content)
            if notice is None:
                continue
            claim = os.urandom(8).hex()
            values = (wanted.organisation, wanted.channel, notice.id, until, claim, now)
            found = self._write(partial(_claim, values=values))
            if found:  # else somebody was faster
                return Claimed(notice, found[0][0], claim)
        return None

    def settle(
        self, wanted: Subscription, name: str, claimed: Claimed, result: Result, at: int, error: str | None = None
    ) -> None:
        """Record the result of an attempt, counted by channel; `at` is the time of the next try, or of the end.

        Who took so long that another has claimed it changes nothing, and is counted. Who says it again, having lost the
        answer, is not.
        """
        theirs = (wanted.organisation, wanted.channel, claimed.notice.id, claimed.claim)
        as_settled = (None if result == "retried" else result, error, at)

        def work(run: Run) -> None:
            if run(_SETTLED, theirs) != [as_settled]:
                run(_SETTLE, (*as_settled, *theirs))
                count(run, wanted.organisation, name, result)

        self._write(work)

    def count(self, organisation: str, name: str, result: Result, number: int = 1) -> None:
        """Count attempts to send what never was in the outbox."""
        self._write(lambda run: count(run, organisation, name, result, number))

    def counts(self, organisation: str) -> list[DeliveryCount]:
        return [DeliveryCount(*found) for found in self._read(_COUNTS, (organisation,))]

    def undelivered(self, wanted: Subscription, now: int, waiting_since: int) -> Undelivered:
        """How a channel stands: what waits was never tried, though it was there before `waiting_since`."""
        sql, values = self._wanted(wanted, now)
        found = self._read(f"SELECT n.at, d.tries, d.result, d.error {sql} ORDER BY n.at", values)
        waiting = [at for at, tries, _, _ in found if tries is None and at < waiting_since]
        retried = tuple(error for _, _, result, error in found if result is None and error)
        failed = tuple(error for _, _, result, error in found if result == "failed")
        return Undelivered(len(waiting), retried, failed)

    def _due(self, wanted: Subscription, now: int) -> tuple[str, list[Any]]:
        sql, values = self._wanted(wanted, now)
        due = "AND d.result IS NULL AND coalesce(d.due_at, 0) <= ? ORDER BY coalesce(d.due_at, n.at), n.id LIMIT 20"
        return f"SELECT n.content {sql} {due}", [*values, now]

    def _wanted(self, wanted: Subscription, now: int) -> tuple[str, list[Any]]:
        """The notices of the last day that a channel wants, with its deliveries."""
        kinds = ", ".join("?" * len(wanted.kinds))
        sql = f"""
            FROM notice n LEFT JOIN delivery d ON d.org_id = n.org_id AND d.channel = ? AND d.notice = n.id
            WHERE n.org_id = ? AND n.at > ? AND n.kind IN ({kinds})
        """
        values: list[Any] = [wanted.channel, wanted.organisation, now - KEPT_FOR, *wanted.kinds]
        if wanted.budgets:
            alternatives = " OR ".join([f"n.budget {self._dialect.glob} ?"] * len(wanted.budgets))
            sql += f" AND (n.budget IS NULL OR {alternatives})"
            values += map(self._dialect.pattern, wanted.budgets)
        return sql, values


def _notice(content: str) -> Notice | None:
    """None for what another version of acp-proxy wrote, and this one does not know: it is left to those that do."""
    try:
        return json_decoder(Notice).decode(content)
    except msgspec.MsgspecError:
        return None


def _claim(run: Run, values: Sequence[object]) -> list[tuple[Any, ...]]:
    return run(_CLAIM, values)


def note(run: Run, notices: Iterable[Notice]) -> None:
    """Within the transaction in which it becomes true."""
    for each in notices:
        if insert(run, "notice", [values_of(each)], f"{_UNLESS_THERE} RETURNING 1"):
            exports.note(run, each.organisation, "notice", [each.id], each.at)


def of_unpriced(rows: Iterable[Row]) -> Iterator[Statement]:
    """Notes models of new rows whose price is unknown, up to so many of a day."""
    for row in rows:
        for notice in unpriced(row.origin, row.entry):
            day = max(notice.at - notice.at % DAY, -(2**63))
            end = min(day + DAY, 2**63 - 1)  # both within what a column holds
            few = (notice.organisation, day, end, notice.organisation, notice.id)
            yield from exports.noting(notice.organisation, "notice", [notice.id], notice.at, (f"AND {_FEW}", few))
            yield _UNPRICED, (*values_of(notice), *few)


def values_of(notice: Notice) -> tuple[object, ...]:
    """The values of all columns of the table `notice`."""
    content = msgspec.json.encode(notice).decode()
    return notice.organisation, notice.id, notice.kind, notice.budget, notice.at, content


def count(run: Run, organisation: str, name: str, result: Result, number: int = 1) -> None:
    """Add attempts to send through a channel of this name, by what became of them."""
    insert(run, "delivery_count", [(organisation, name, result, number)], _COUNT)
