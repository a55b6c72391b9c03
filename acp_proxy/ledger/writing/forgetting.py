"""An alias in place of a user's name and of their machines' names, wherever a ledger has them; no sum is another.

In one transaction of the caller. What the ledger keeps for that user alone (titles, windows of plans, notices about
them, turns of killed proxies) goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from acp_proxy.ledger import LedgerError, session_keys
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.sums import totals

_AT_ONCE = 400  # keys of one statement
_NUMBER = re.compile(r"#\d+$")  # of a rolling window, behind the account that something was announced of
_RENAMED = ("turn", "session", "series", "open_turn", "settings", "plan_window", "plan_change")


class AliasTakenError(LedgerError):
    """Somebody has the alias: two people would become one."""


def forget(run: Run, organisation: str, name: str, alias: str, dialect: Dialect) -> int:
    """How many rows of turns are under the alias then. Raises AliasTakenError, and changes nothing."""
    if is_known(run, organisation, alias):
        raise AliasTakenError(f"{alias!r} is somebody's name already: expected an alias that nobody has")
    of_user = (organisation, name)
    run("UPDATE label SET value = ? WHERE org_id = ? AND dimension = 'user' AND value = ?", (alias, *of_user))
    _rename_machines(run, organisation, name, alias)
    totals.rename_user(run, organisation, name, alias)
    for table in ("turn", "session"):
        run(f"UPDATE {table} SET user_id = ? WHERE org_id = ? AND user_id = ?", (alias, *of_user))
    # Of no use to anybody else; the keys of sessions are made of the name.
    for table in ("session_key", "settings", "plan_window", "plan_change"):
        run(f"DELETE FROM {table} WHERE org_id = ? AND user_id = ?", of_user)
    _in_budgets(run, organisation, name, alias, dialect)
    # Turns of killed proxies, which would be booked under the name days later; and what was lent.
    open_turns = "SELECT turn FROM open_turn WHERE org_id = ? AND user_id = ?"
    run(f"DELETE FROM hold WHERE org_id = ? AND turn IN ({open_turns})", (organisation, *of_user))
    run("DELETE FROM open_turn WHERE org_id = ? AND user_id = ?", of_user)
    run("UPDATE restored SET user_id = ?, host = ? WHERE org_id = ? AND user_id = ?", (alias, alias, *of_user))
    _forget_notices(run, organisation, name)
    session_keys.note_all(run)
    ((rows,),) = run("SELECT count(*) FROM turn WHERE org_id = ? AND user_id = ?", (organisation, alias))
    return int(rows)


def is_known(run: Run, organisation: str, name: str) -> bool:
    """Whether a user of this name has anything in the ledger."""
    marks = [f"SELECT 1 FROM {table} WHERE org_id = ? AND user_id = ?" for table in _RENAMED]
    sql = f"SELECT 1 FROM label WHERE org_id = ? AND dimension = 'user' AND value = ? UNION {' UNION '.join(marks)}"
    return bool(run(sql, (organisation, name) * (len(marks) + 1)))


def _rename_machines(run: Run, organisation: str, name: str, alias: str) -> None:
    sql = "SELECT DISTINCT host FROM session WHERE org_id = ? AND user_id = ? ORDER BY host"
    titles = {"session": ", title = NULL, title_folded = NULL"}
    for number, (host,) in enumerate(run(sql, (organisation, name)), 1):
        for table in ("turn", "session"):
            change = f"UPDATE {table} SET host = ?{titles.get(table, '')} WHERE org_id = ? AND user_id = ? AND host = ?"
            run(change, (f"{alias}-{number}", organisation, name, host))


def _in_budgets(run: Run, organisation: str, name: str, alias: str, dialect: Dialect) -> None:
    """How often something was decided, and what was granted, stays; what is kept of windows of this user goes."""
    for table, column in (("decision", "value"), ("overshoot", "value"), ("granted", "value"), ("granted", "who")):
        if table == "granted":
            why = f"UPDATE granted SET why = '' WHERE org_id = ? AND {column} = ?"
            run(why, (organisation, name))
        sql = f"UPDATE {table} SET {column} = ? WHERE org_id = ? AND {column} = ?"
        run(sql, (alias, organisation, name))
    _drop(run, organisation, "kept_sum", "whose", _whose, name)
    _drop(run, organisation, "announced", "notice", lambda text: _account(_NUMBER.sub("", text)), name)
    _drop(run, organisation, "surcharge", "account", _account, name)
    if not dialect.serial:
        _drop(run, organisation, "account", "key", _account, name)


def _drop(run: Run, organisation: str, table: str, column: str, user_of: Any, name: str) -> None:
    """Rows whose key names the user, which is JSON: not of every letter the text is the same."""
    found = run(f"SELECT DISTINCT {column} FROM {table} WHERE org_id = ?", (organisation,))
    theirs = [text for (text,) in found if user_of(text) == name]
    for some in _parts(theirs):
        marks = ", ".join("?" * len(some))
        run(f"DELETE FROM {table} WHERE org_id = ? AND {column} IN ({marks})", (organisation, *some))


def _account(key: str) -> Any:
    """Whose an account is, by its key."""
    found = _read(key)
    return found[5].get("user") if isinstance(found, list) and len(found) > 5 and isinstance(found[5], dict) else None


def _whose(text: str) -> Any:
    found = _read(text)
    return found.get("user") if isinstance(found, dict) else None


def _forget_notices(run: Run, organisation: str, name: str) -> None:
    """What people elsewhere were told of them."""
    told = list[str]()
    for notice, content in run("SELECT id, content FROM notice WHERE org_id = ?", (organisation,)):
        found = _read(content)
        if isinstance(found, dict) and name in (found.get("user"), found.get("value")):
            told.append(notice)
    for some in _parts(told):
        marks = ", ".join("?" * len(some))
        run(f"DELETE FROM delivery WHERE org_id = ? AND notice IN ({marks})", (organisation, *some))
        run(f"DELETE FROM notice WHERE org_id = ? AND id IN ({marks})", (organisation, *some))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _parts(keys: list[str]) -> Iterable[list[str]]:
    return (keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE))
