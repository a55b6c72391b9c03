"""Windows of plans: of each the latest that any proxy was told, and how it came to that.

A plan belongs to a user of an agent, on whatever machine. What was seen earlier never replaces what was seen later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acp_proxy.core.plans import PlanChange, PlanState, PlanWindow, followed, is_news
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.statements import Read, Run, insert

KEPT = 60 * DAY  # after which a window that was not seen again is forgotten, and what was before
MOST_WINDOWS = 50  # of one user's agent: agents make names up
MOST_CHANGES = 1000  # of one window

TABLES = (
    """
    CREATE TABLE plan_window (
        org_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        name TEXT NOT NULL,
        used INTEGER,
        status TEXT,
        resets_at INTEGER,
        overage TEXT,
        seen_at INTEGER NOT NULL,
        first_at INTEGER NOT NULL,
        first_used INTEGER,
        PRIMARY KEY (org_id, user_id, agent, name)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE plan_change (
        org_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        name TEXT NOT NULL,
        seen_at INTEGER NOT NULL,
        used INTEGER,
        status TEXT,
        resets_at INTEGER,
        overage TEXT,
        PRIMARY KEY (org_id, user_id, agent, name, seen_at)
    ) STRICT, WITHOUT ROWID
    """,
)
# Of one window in two ledgers.
LATER = """
(org_id, user_id, agent, name) DO UPDATE SET
    used = excluded.used, status = excluded.status, resets_at = excluded.resets_at, overage = excluded.overage,
    seen_at = excluded.seen_at, first_at = excluded.first_at, first_used = excluded.first_used
WHERE excluded.seen_at > plan_window.seen_at
"""
_OF_AGENT = "org_id = ? AND user_id = ? AND agent = ?"
_OF_WINDOW = f"{_OF_AGENT} AND name = ?"
_TOLD = "used, status, resets_at, overage, seen_at"
_NOT_SEEN = 0
# What a window is at, none of it changed, and nobody else's to change until the transaction ends.
_LOCK = f"""
INSERT INTO plan_window VALUES (?, ?, ?, ?, NULL, NULL, NULL, NULL, {_NOT_SEEN}, 0, NULL)
ON CONFLICT (org_id, user_id, agent, name) DO UPDATE SET seen_at = plan_window.seen_at
RETURNING {_TOLD}, first_at, first_used
"""
_UPDATE = f"""
UPDATE plan_window SET used = ?, status = ?, resets_at = ?, overage = ?, seen_at = ?, first_at = ?, first_used = ?
WHERE {_OF_WINDOW}
"""
_LAST_CHANGE = f"SELECT {_TOLD} FROM plan_change WHERE {_OF_WINDOW} ORDER BY seen_at DESC LIMIT 1"
_FORGET_CHANGES = f"""
DELETE FROM plan_change WHERE {_OF_WINDOW} AND (seen_at < ? OR seen_at <= (
    SELECT seen_at FROM plan_change WHERE {_OF_WINDOW} ORDER BY seen_at DESC LIMIT 1 OFFSET {MOST_CHANGES}
))
"""
_BY_AGE = f"SELECT name, seen_at FROM plan_window WHERE {_OF_AGENT} ORDER BY seen_at DESC, name"


def note(run: Run, organisation: str, user: str, agent: str, windows: Iterable[PlanWindow]) -> list[PlanState]:
    """Keep what one message told; how these windows stand then. Others are waited for in the order of names."""
    plan, states = (organisation, user, agent), list[PlanState]()
    for told in sorted(windows, key=lambda window: window.window):
        key = (*plan, told.window)
        before = _state(user, agent, told.window, run(_LOCK, key)[0])
        state = followed(before, user, agent, told)
        states.append(state)
        if state != before:
            now = state.told
            values = (now.used, now.status, now.resets_at, now.overage, now.seen_at, state.first_at, state.first_used)
            run(_UPDATE, (*values, *key))
            _note_change(run, key, now)
        if before is None:
            _forget(run, plan, told.seen_at)
    return states


def _note_change(run: Run, key: Sequence[str], now: PlanWindow) -> None:
    last = next((PlanWindow(now.window, *found) for found in run(_LAST_CHANGE, key)), None)
    if is_news(now, last):
        insert(run, "plan_change", [(*key, now.seen_at, now.used, now.status, now.resets_at, now.overage)])
        run(_FORGET_CHANGES, (*key, now.seen_at - KEPT, *key))
        from acp_proxy.ledger import exports  # not for a status, which only reads

        exports.note(run, key[0], "plan", [_change_key(key, now)], now.seen_at)


def _change_key(key: Sequence[str], now: PlanWindow) -> str:
    """User, agent, name and time of a change, as `change_of` takes them."""
    import json

    return json.dumps([*key[1:], now.seen_at])


def _forget(run: Run, plan: Sequence[str], now: int) -> None:
    """What nobody tells any more, and what is too many."""
    for position, (name, seen_at) in enumerate(run(_BY_AGE, plan)):
        if position >= MOST_WINDOWS or seen_at < now - KEPT:
            for table in ("plan_window", "plan_change"):
                run(f"DELETE FROM {table} WHERE {_OF_WINDOW}", (*plan, name))


def latest(read: Read, organisation: str, user: str | None = None) -> list[PlanState]:
    """By user, agent and name; of all users where none is given."""
    where, values = _where(organisation, user)
    sql = f"""
        SELECT user_id, agent, name, {_TOLD}, first_at, first_used FROM plan_window WHERE {where}
        ORDER BY user_id, agent, name
    """
    states = (_state(found[0], found[1], found[2], found[3:]) for found in read(sql, values))
    return [state for state in states if state is not None]


def changes(
    read: Read, organisation: str, since: int | None = None, until: int | None = None, user: str | None = None
) -> list[PlanChange]:
    """By user, agent, name and time; those of a half-open interval (Unix ns)."""
    where, values = _where(organisation, user)
    for bound, condition in ((since, " AND seen_at >= ?"), (until, " AND seen_at < ?")):
        if bound is not None:
            where, values = where + condition, [*values, bound]
    sql = f"SELECT user_id, agent, name, {_TOLD} FROM plan_change WHERE {where} ORDER BY 1, 2, 3, seen_at"
    return [PlanChange(found[0], found[1], PlanWindow(*found[2:])) for found in read(sql, values)]


def notice_key(state: PlanState, budget: str | None = None) -> str:
    """What something is announced under once in a window, as of a budget's account: the user is the sixth.

    Of the window itself, or of a budget on it.
    """
    import json  # not for a status, which only reads

    window = state.told.resets_at or state.first_at
    return json.dumps(["plan", state.agent, state.told.window, window, budget, {"user": state.user}])


def _where(organisation: str, user: str | None) -> tuple[str, list[Any]]:
    return ("org_id = ?", [organisation]) if user is None else ("org_id = ? AND user_id = ?", [organisation, user])


def _state(user: str, agent: str, name: str, found: Sequence[Any]) -> PlanState | None:
    *told, first_at, first_used = found
    window = PlanWindow(name, *told)
    return PlanState(user, agent, window, first_at, first_used) if window.seen_at != _NOT_SEEN else None
