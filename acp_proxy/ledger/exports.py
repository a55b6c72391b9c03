"""What exporters of telemetry keep in a ledger: who they are, what is still to be sent, and where each of them stands.

What becomes true while there is an exporter is noted for it in the same transaction. It is struck off when the receiver
has it, so that whatever happens meanwhile it is sent at least once. Where there is no exporter nothing is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from acp_proxy.core.entry import Work
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.statements import Read, Run, Statement, Write, execute, insert
from acp_proxy.ledger.sums.buckets import WHOLE
from acp_proxy.ledger.turn_work import read_work

Kind = Literal["turn", "crash", "correction", "notice", "grant", "plan"]

GONE_AFTER = 7 * DAY  # without a sign of an exporter nothing more is noted for it
KEPT_FOR = 7 * DAY  # what no receiver has taken by then is given up

TABLES = (
    """
    CREATE TABLE exporter (
        org_id TEXT NOT NULL,
        name TEXT NOT NULL,
        instance TEXT NOT NULL,
        since INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        holder TEXT NOT NULL,
        held_until INTEGER NOT NULL,
        PRIMARY KEY (org_id, name)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE unexported (
        org_id TEXT NOT NULL,
        exporter TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        noted_at INTEGER NOT NULL,
        PRIMARY KEY (org_id, exporter, kind, key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE exported (
        org_id TEXT NOT NULL,
        exporter TEXT NOT NULL,
        what TEXT NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (org_id, exporter, what)
    ) STRICT, WITHOUT ROWID
    """,
)
_BEGIN = """
INSERT INTO exporter VALUES (?, ?, ?, ?, ?, '', 0)
ON CONFLICT (org_id, name) DO UPDATE SET seen_at = excluded.seen_at
RETURNING instance, since
"""
_HOLD = """
UPDATE exporter SET holder = ?, held_until = ?, seen_at = ?
WHERE org_id = ? AND name = ? AND (holder = ? OR held_until <= ?)
RETURNING 1
"""
_EXPORTERS = """
SELECT e.name, e.seen_at, count(u.key), min(u.noted_at)
FROM exporter e LEFT JOIN unexported u ON u.org_id = e.org_id AND u.exporter = e.name
WHERE e.org_id = ? GROUP BY e.name, e.seen_at ORDER BY e.name
"""
_KEEP = " ON CONFLICT (org_id, exporter, what) DO UPDATE SET state = excluded.state"
_AT_ONCE = 400  # keys in one statement


class Identity(Struct, frozen=True):
    """Of all exporters of an organisation: they send one resource, whichever of them does."""

    instance: str  # a UUID, as long as the ledger is there
    since: int  # Unix ns: since when counters count


class Exporter(Struct, frozen=True):
    """Who sends to one place. Times in Unix ns."""

    name: str
    seen_at: int  # when it looked for something to send
    waiting: int  # what no receiver has taken yet
    since: int | None  # when the oldest of that was noted


class Due(Struct, frozen=True):
    kind: Kind
    key: str


class Exports:
    """Of one ledger. Times are Unix ns; all methods raise LedgerError."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    def begin(self, organisation: str, name: str, now: int) -> Identity:
        """There is an exporter of this name from now on: what becomes true is noted for it."""

        import uuid  # not for a status, which only reads

        def work(run: Run) -> Identity:
            known = run("SELECT instance, since FROM exporter WHERE org_id = ? ORDER BY since LIMIT 1", (organisation,))
            instance, since = known[0] if known else (str(uuid.uuid4()), _first_row(run, organisation, now))
            found = run(_BEGIN, (organisation, name, instance, since, now))
            _forget(run, organisation, now)
            return Identity(*found[0])

        identity: Identity = self._write(work)
        return identity

    def hold(self, organisation: str, name: str, holder: str, now: int, until: int) -> bool:
        """Whether this holder is the one that sends until then: of several with one name one does."""
        values = (holder, until, now, organisation, name, holder, now)
        return bool(self._write(lambda run: run(_HOLD, values)))

    def due(self, organisation: str, name: str, kinds: Sequence[Kind], most: int) -> list[Due]:
        """What is to be sent, by kind and key; ids of turns ascend with time."""
        sql = f"""
            SELECT kind, key FROM unexported
            WHERE org_id = ? AND exporter = ? AND kind IN ({", ".join("?" * len(kinds))})
            ORDER BY kind, key LIMIT {most}
        """
        return [Due(*found) for found in self._read(sql, (organisation, name, *kinds))]

    def exporters(self, organisation: str) -> list[Exporter]:
        """Those of the last days, with what is to be sent."""
        return [Exporter(*found) for found in self._read(_EXPORTERS, (organisation,))]

    def settle(
        self, organisation: str, name: str, done: Iterable[Due], states: Mapping[str, str] | None = None
    ) -> None:
        """A receiver has it: strike it off, and keep where the exporter stands, at once."""
        by_kind: dict[str, list[str]] = {}
        for each in done:
            by_kind.setdefault(each.kind, []).append(each.key)

        def work(run: Run) -> None:
            for kind, keys in by_kind.items():
                for start in range(0, len(keys), _AT_ONCE):
                    some = keys[start : start + _AT_ONCE]
                    marks = ", ".join("?" * len(some))
                    sql = f"DELETE FROM unexported WHERE org_id = ? AND exporter = ? AND kind = ? AND key IN ({marks})"
                    run(sql, (organisation, name, kind, *some))
            insert(run, "exported", [(organisation, name, *state) for state in (states or {}).items()], _KEEP)

        self._write(work)

    def drop(self, organisation: str, name: str, kinds: Sequence[Kind]) -> None:
        """Nobody wants these."""
        if self.due(organisation, name, kinds, 1):
            sql = (
                f"DELETE FROM unexported WHERE org_id = ? AND exporter = ? AND kind IN ({', '.join('?' * len(kinds))})"
            )
            self._write(lambda run: run(sql, (organisation, name, *kinds)))

    def work(self, organisation: str, turns: Sequence[str]) -> dict[str, Work]:
        """What is known of these turns beside their rows, by turn."""
        return read_work(self._read, organisation, turns)

    def state(self, organisation: str, name: str, what: str) -> str | None:
        sql = "SELECT state FROM exported WHERE org_id = ? AND exporter = ? AND what = ?"
        return next((found for (found,) in self._read(sql, (organisation, name, what))), None)


def note(run: Run, organisation: str, kind: Kind, keys: Sequence[str], at: int) -> None:
    """Within the transaction in which it becomes true. `at` is Unix ns, and tells which exporters are there."""
    execute(run, noting(organisation, kind, keys, at))


def noting(
    organisation: str, kind: Kind, keys: Sequence[str], at: int, only: Statement = ("", ())
) -> Iterator[Statement]:
    """The statements of `note`. With `only`, SQL that begins with AND and its values, where that is so."""
    at = max(-(2**62), min(at, 2**62))  # what an agent's clock says
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        yield _noting(kind, len(some), only[0]), (at, *some, organisation, at - GONE_AFTER, *only[1])


@lru_cache(maxsize=64)  # with each append the same
def _noting(kind: Kind, keys: int, only: str) -> str:
    noted = ", ".join(["(?)"] * keys)
    sql = f"""
        INSERT INTO unexported SELECT e.org_id, e.name, '{kind}', v.column1, ?
        FROM exporter e CROSS JOIN (VALUES {noted}) v WHERE e.org_id = ? AND e.seen_at > ? {only}
        ON CONFLICT DO NOTHING
    """
    return sql.strip()


def _first_row(run: Run, organisation: str, now: int) -> int:
    sql = f"SELECT min(first_at) FROM total WHERE org_id = ? AND level = {WHOLE}"
    ((found,),) = run(sql, (organisation,))
    return now if found is None else min(now, max(0, int(found)))


def _forget(run: Run, organisation: str, now: int) -> None:
    """Exporters that are gone, and what nobody takes."""
    gone: tuple[Any, ...] = (organisation, now - GONE_AFTER)
    which = "SELECT name FROM exporter WHERE org_id = ? AND seen_at < ?"
    for table in ("unexported", "exported"):
        run(f"DELETE FROM {table} WHERE org_id = ? AND exporter IN ({which})", (organisation, *gone))
    run("DELETE FROM exporter WHERE org_id = ? AND seen_at < ?", gone)
    run("DELETE FROM unexported WHERE org_id = ? AND noted_at < ?", (organisation, now - KEPT_FOR))
