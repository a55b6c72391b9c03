"""The short key by which users and reports name a session; stored with an index, so that its beginning is enough.

Written once per session, with its first row. Can be recomputed from sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acp_proxy.core.digest import digest
from acp_proxy.core.entry import Origin
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import SESSION_KEY
from acp_proxy.ledger.statements import Run, insert

KEY_LENGTH = 16  # characters
_CHUNK = 5000
_AFTER_ALL = "g"  # the digits of keys are hexadecimal


def session_key(origin: Origin, session: str) -> str:
    """Unique and stable: agents reuse their ids, and so do two users or machines."""
    return key_of(origin.organisation, origin.user, origin.host, origin.agent, booked(session))


def note_sessions(run: Run, first: Iterable[Row]) -> None:
    """`first` are rows, each the first one of its session."""
    _insert(run, [(row.origin.organisation, *_rest(row)) for row in first])


def note_all(run: Run) -> None:
    """All sessions of a ledger whose keys are not there."""
    following = f"""
        SELECT {SESSION_KEY} FROM session WHERE ({SESSION_KEY}) > (?, ?, ?, ?, ?) ORDER BY {SESSION_KEY} LIMIT {_CHUNK}
    """
    last: Sequence[Any] = ("", "", "", "", "")
    while found := run(following, last):
        _insert(run, found)
        last = found[-1]


def beginning_with(organisation: str, beginning: str) -> tuple[str, tuple[str, ...]]:
    """SQL for the sessions of an organisation, and its values: user, host, agent and id of each."""
    sql = "SELECT user_id, host, agent, session FROM session_key WHERE org_id = ? AND key >= ? AND key < ? ORDER BY key"
    return sql, (organisation, beginning, beginning + _AFTER_ALL)


def _rest(row: Row) -> tuple[str, str, str, str]:
    return row.origin.user, row.origin.host, row.origin.agent, booked(row.entry.session)


def _insert(run: Run, sessions: Sequence[Sequence[str]]) -> None:
    """Each as organisation, user, host, agent and id."""
    values = sorted((session[0], key_of(*session), *session[1:]) for session in sessions)
    insert(run, "session_key", values, " ON CONFLICT DO NOTHING")


def key_of(*parts: str) -> str:
    """Of organisation, user, host, agent and id as the ledger has them."""
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"), KEY_LENGTH // 2)


TABLES = (
    """
    CREATE TABLE session_key (
        org_id TEXT NOT NULL,
        key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        host TEXT NOT NULL,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        PRIMARY KEY (org_id, key, user_id, host, agent, session)
    ) STRICT, WITHOUT ROWID
    """,
    note_all,
)
