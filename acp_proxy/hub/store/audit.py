"""The log of changes: who changed what when, before and after, in the transaction of the change itself.

Each line has the digest of the one before it, so that a line that was changed, removed or put in between is found.
Who may write to the database can make the whole chain anew: keep its last digest elsewhere, and `verify` looks for it.

Where somebody was forgotten, or the oldest lines are over, a line says so: it has the digests of what others became, or
of the last that is not there any more. All that follows stands on the digests that they had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec import Struct

from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

BEGINNING = "0" * 64  # what the first line follows
FORGOTTEN = "user.forgotten"  # its `after` has `lines`: by their numbers the digests of lines as they are since then
TRIMMED = "audit.trimmed"  # its `after` has number and digest of the last line that was removed
_AT_ONCE = 1000  # lines that are read
_COLUMNS = "number, at, actor, action, subject, before, after, previous, hash"


class Change(Struct, frozen=True):
    """`before` and `after` are JSON values without secrets; None where there was or is nothing."""

    actor: str  # a user, `hub` itself, or `command` for who has the database
    action: str  # such as `token.made`
    subject: str  # what was changed
    before: Any = None
    after: Any = None


class Wanted(Struct, frozen=True):
    """Which lines: of this actor, with an action and a subject that begin so. Empty texts are all."""

    actor: str = ""
    action: str = ""
    subject: str = ""

    def condition(self) -> tuple[str, list[object]]:
        """SQL that follows a WHERE, and its values."""
        sql, values = "", list[object]()
        if self.actor:
            sql, values = " AND actor = ?", [self.actor]
        for column, text in (("action", self.action), ("subject", self.subject)):
            if text:
                sql += f" AND substr({column}, 1, ?) = ?"
                values += [len(text), text]
        return sql, values


class Verified(Struct, frozen=True):
    """How many lines there are and the digest of the last one; `fault` says where the chain does not hold."""

    lines: int
    last: str
    fault: str | None = None


class Audit:
    """The log of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation

    def lock(self, run: Run) -> None:
        """Wait until no other change is under way, before it is read what this one begins with."""
        run("INSERT INTO hub_audit_end VALUES (?, 0, ?) ON CONFLICT DO NOTHING", (self._organisation, BEGINNING))
        run("UPDATE hub_audit_end SET number = number WHERE org_id = ?", (self._organisation,))

    def note(self, run: Run, change: Change, now: int) -> None:
        """In the transaction of the change, as its last statements: all changes wait for each other here."""
        sql = """
            INSERT INTO hub_audit_end VALUES (?, 1, ?)
            ON CONFLICT (org_id) DO UPDATE SET number = hub_audit_end.number + 1
            RETURNING number, hash
        """
        ((number, previous),) = run(sql, (self._organisation, BEGINNING))
        line = {
            "number": number,
            "at": now,
            "actor": _kept(change.actor),
            "action": change.action,
            "subject": _kept(change.subject),
            "before": _kept(_json(change.before)),
            "after": _kept(_json(change.after)),
            "previous": previous,
        }
        digest = _digest(line)
        values = (self._organisation, *line.values(), digest)
        run(f"INSERT INTO hub_audit VALUES ({', '.join('?' * len(values))})", values)
        run("UPDATE hub_audit_end SET hash = ? WHERE org_id = ?", (digest, self._organisation))

    def lines(self) -> Iterator[dict[str, Any]]:
        """From the first one on; `before` and `after` are texts of JSON."""
        last = 0
        sql = f"SELECT {_COLUMNS} FROM hub_audit WHERE org_id = ? AND number > ? ORDER BY number LIMIT {_AT_ONCE}"
        while found := self._lines(sql, last):
            yield from found
            last = found[-1]["number"]

    def exported(self) -> Iterator[bytes]:
        """As lines of JSON, for other programs."""
        return map(_exported, self.lines())

    def exported_after(self, number: int, wanted: Wanted) -> tuple[int, bytes] | None:
        """Some of them after that of a number, and the number of the last; None: there are no more."""
        condition, values = wanted.condition()
        sql = f"SELECT {_COLUMNS} FROM hub_audit WHERE org_id = ? AND number > ?{condition}"
        found = self._lines(f"{sql} ORDER BY number LIMIT {_AT_ONCE}", number, *values)
        return (found[-1]["number"], b"".join(map(_exported, found))) if found else None

    def last(self, most: int, before: int | None, wanted: Wanted) -> list[dict[str, Any]]:
        """The latest first, of those before that of a number where one is given."""
        condition, values = wanted.condition()
        sql = f"SELECT {_COLUMNS} FROM hub_audit WHERE org_id = ? AND number < ?{condition}"
        return self._lines(f"{sql} ORDER BY number DESC LIMIT {most}", before or 2**62, *values)

    def _lines(self, sql: str, *values: object) -> list[dict[str, Any]]:
        found = self._tables.rows(sql, self._organisation, *values)
        return [dict(zip(_COLUMNS.split(", "), each, strict=True)) for each in found]

    def verify(self, wanted: str | None = None) -> Verified:
        """`wanted` is a digest that was noted earlier: it must be in the chain."""
        end = self._end()
        (count, previous), changed = self._removed(), self._redacted()
        seen = wanted in (None, previous)
        for line in self.lines():
            number, digest = line["number"], line.pop("hash")
            if number != count + 1:
                return Verified(count, previous, f"line {count + 1} is missing")
            if line["previous"] != previous or _digest(line) not in (digest, changed.get(number)):
                return Verified(count, previous, f"line {number} was changed")
            count, previous, seen = number, digest, seen or digest == wanted
        # What was written since `end` was read is behind it; what was removed is not there although it was.
        if count < end[0] or (count == end[0] and previous != end[1]):
            return Verified(count, previous, f"line {count + 1} is missing")
        if not seen:
            return Verified(count, previous, f"no line has the digest {wanted}")
        return Verified(count, previous)

    def redact(self, run: Run, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, str]:
        """Change some of all lines; by their numbers, the digests of what they are now, for the caller to note.

        They keep the digests that they had, so that what follows them still does.
        """
        found = dict[str, str]()
        for values in run(f"SELECT {_COLUMNS} FROM hub_audit WHERE org_id = ?", (self._organisation,)):
            line = dict(zip(_COLUMNS.split(", "), values, strict=True))
            digest = line.pop("hash")
            new = change(line)
            if new != line:
                found[str(line["number"])] = _digest(new)
                now = (new["actor"], new["subject"], new["before"], new["after"])
                sql = "UPDATE hub_audit SET actor = ?, subject = ?, before = ?, after = ? WHERE org_id = ? AND hash = ?"
                run(sql, (*now, self._organisation, digest))
        return found

    def trim(self, run: Run, before: int, actor: str, now: int) -> int:
        """Remove lines of before a time (Unix s), but for the last one; how many."""
        sql = "SELECT max(number) FROM hub_audit WHERE org_id = ? AND at < ?"
        ((last,),) = run(sql, (self._organisation, before))
        if last is None:
            return 0
        ((digest,),) = run("SELECT hash FROM hub_audit WHERE org_id = ? AND number = ?", (self._organisation, last))
        gone = run("DELETE FROM hub_audit WHERE org_id = ? AND number <= ? RETURNING 1", (self._organisation, last))
        self.note(run, Change(actor, TRIMMED, str(last), None, {"number": last, "digest": digest}), now)
        return len(gone)

    def _removed(self) -> tuple[int, str]:
        """Number and digest of the last line that was removed."""
        sql = "SELECT after FROM hub_audit WHERE org_id = ? AND action = ? ORDER BY number DESC LIMIT 1"
        for (after,) in self._tables.rows(sql, self._organisation, TRIMMED):
            found = orjson.loads(after)
            return int(found["number"]), str(found["digest"])
        return 0, BEGINNING

    def _redacted(self) -> dict[int, str]:
        sql = "SELECT after FROM hub_audit WHERE org_id = ? AND action = ? ORDER BY number"
        found = dict[int, str]()
        for (after,) in self._tables.rows(sql, self._organisation, FORGOTTEN):
            found |= {int(number): str(digest) for number, digest in orjson.loads(after)["lines"].items()}
        return found

    def _end(self) -> tuple[int, str]:
        found = self._tables.rows("SELECT number, hash FROM hub_audit_end WHERE org_id = ?", self._organisation)
        return (found[0][0], found[0][1]) if found else (0, BEGINNING)


def _exported(line: dict[str, Any]) -> bytes:
    at = datetime.fromtimestamp(line["at"], UTC).isoformat().replace("+00:00", "Z")
    values = {name: orjson.Fragment(line[name]) if line[name] else None for name in ("before", "after")}
    return orjson.dumps(line | {"at": at} | values) + b"\n"


def _digest(line: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(line, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _kept(text: str | None) -> str | None:
    """As PostgreSQL keeps it, which has no NUL in a text."""
    return text and text.replace("\0", "\ufffd")
