"""A person who is to be forgotten: an alias in place of their name in all that a hub and its ledger keep.

What they signed in with ends; names, addresses, machines and reasons go. The line that this writes into the log of
changes has the alias and who did it, and not the name. Lines of the log stay, but for the name and what was personal:
the log still shows that nobody else has changed it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from acp_proxy.core.budget.requests import MoreRequest
from acp_proxy.hub.store.audit import FORGOTTEN, Audit, Change
from acp_proxy.hub.store.people import end_all
from acp_proxy.hub.store.schema import is_there
from acp_proxy.hub.store.secrets import new_id
from acp_proxy.ledger.hub.people import Forgotten
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables
from acp_proxy.ledger.writing import forgetting
from acp_proxy.system.decoding import json_decoder

PERSONAL = ("subject", "name", "email", "machine", "machine_name", "address")
_OWN = ("device.", "machine.", "session.", "request.", "refresh.")  # actions that are about who does them


def forget_at(tables: Tables, organisation: str, name: str, alias: str | None, actor: str, now: int) -> Forgotten:
    """In a ledger of any kind, whether a hub has tables in it or not. As `Forgetting.forget`."""
    if is_there(tables):
        return Forgetting(tables, organisation).forget(name, alias, actor, now)
    chosen = alias or made_alias()

    def work(run: Run) -> Forgotten | None:
        if not forgetting.is_known(run, organisation, name):
            return None
        return Forgotten(chosen, forgetting.forget(run, organisation, name, chosen, tables.dialect))

    found = tables.write(work)
    if found is None:
        raise NotKnownError(f"no user {name!r}")
    return found


def made_alias() -> str:
    return f"former-{new_id()[:8]}"


class NotKnownError(Exception):
    """Nobody of that name is or was there."""


class Forgetting:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def forget(self, name: str, alias: str | None, actor: str, now: int) -> Forgotten:
        """`now` is Unix s. Without an alias one is made. Raises NotKnownError, and AliasTakenError."""
        chosen = alias or made_alias()

        def work(run: Run) -> Forgotten | None:
            self._audit.lock(run)
            if not (forgetting.is_known(run, self._organisation, name) or self._is_known(run, name)):
                return None
            if self._is_known(run, chosen):
                raise forgetting.AliasTakenError(f"{chosen!r} is somebody's name already")
            end_all(run, self._organisation, name, now)
            rows = forgetting.forget(run, self._organisation, name, chosen, self._tables.dialect)
            self._in_people(run, name, chosen)
            self._in_requests(run, name, chosen)
            self._in_policies(run, name, chosen)
            changed = self._audit.redact(run, lambda line: redacted(line, name, chosen))
            after = {"rows": rows, "lines": changed}
            self._audit.note(run, Change(chosen if actor == name else actor, FORGOTTEN, chosen, None, after), now)
            return Forgotten(chosen, rows, len(changed))

        found = self._tables.write(work)
        if found is None:
            raise NotKnownError(f"no user {name!r}")
        return found

    def _is_known(self, run: Run, name: str) -> bool:
        tables = ("hub_person", "hub_token", "hub_family", "hub_request")
        sql = " UNION ".join(f"SELECT 1 FROM {table} WHERE org_id = ? AND user_id = ?" for table in tables)
        return bool(run(sql, (self._organisation, name) * len(tables)))

    def _in_people(self, run: Run, name: str, alias: str) -> None:
        """Sign-ins and tokens have ended, and stay until access tokens of theirs have; nobody sees whose they were."""
        of_user = (self._organisation, name)
        run("DELETE FROM hub_person WHERE org_id = ? AND user_id = ?", of_user)
        named = "UPDATE hub_token SET user_id = ?, name = '' WHERE org_id = ? AND user_id = ?"
        run(named, (alias, *of_user))
        run("UPDATE hub_token SET created_by = ? WHERE org_id = ? AND created_by = ?", (alias, *of_user))
        sql = "UPDATE hub_family SET user_id = ?, machine = NULL, machine_name = NULL WHERE org_id = ? AND user_id = ?"
        run(sql, (alias, *of_user))
        known = "SELECT id FROM hub_directory WHERE org_id = ? AND kind = 'User' AND name = ?"
        run(f"DELETE FROM hub_member WHERE org_id = ? AND member IN ({known})", (self._organisation, *of_user))
        run("DELETE FROM hub_directory WHERE org_id = ? AND kind = 'User' AND name = ?", of_user)

    def _in_requests(self, run: Run, name: str, alias: str) -> None:
        for id_, content in run("SELECT id, content FROM hub_request WHERE org_id = ?", (self._organisation,)):
            asked = json_decoder(MoreRequest).decode(content)
            if name not in (asked.user, asked.decided_by, asked.wish.value):
                continue
            if asked.user == name:
                asked = replace(asked, user=alias, note="", wish=replace(asked.wish, why=""))
            if asked.wish.value == name:
                asked = replace(asked, wish=replace(asked.wish, value=alias))
            if asked.decided_by == name:
                asked = replace(asked, decided_by=alias)
            sql = "UPDATE hub_request SET user_id = ?, content = ? WHERE org_id = ? AND id = ?"
            run(sql, (asked.user, msgspec.json.encode(asked).decode(), self._organisation, id_))

    def _in_policies(self, run: Run, name: str, alias: str) -> None:
        """Budgets that are this user's alone are the alias's, in all versions."""
        found = run("SELECT version, actor, document FROM hub_policy WHERE org_id = ?", (self._organisation,))
        for version, actor, document in found:
            changed = orjson.dumps(_renamed(orjson.loads(document), name, alias)).decode()
            by = alias if actor == name else actor
            if (by, orjson.loads(changed)) != (actor, orjson.loads(document)):
                sql = "UPDATE hub_policy SET actor = ?, document = ? WHERE org_id = ? AND version = ?"
                run(sql, (by, changed, self._organisation, version))


def redacted(line: dict[str, Any], name: str, alias: str) -> dict[str, Any]:
    """A line of the log without the name; `before` and `after` are texts of JSON. The same where it has nothing."""
    new = dict(line)
    is_own = line["actor"] == name and line["action"].startswith(_OWN)
    is_theirs = is_own or line["subject"] == name
    for part in ("before", "after"):
        value = orjson.loads(line[part]) if line[part] else None
        if isinstance(value, dict) and (is_theirs or value.get("user") == name):
            gone = {key: None for key in PERSONAL if value.get(key) is not None}
            value = {**value, **gone}
            if isinstance(value.get("wish"), dict):
                value = {**value, "note": "", "wish": {**value["wish"], "why": ""}}
        value = _renamed(value, name, alias)
        if line[part]:
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
            new[part] = line[part] if orjson.loads(line[part]) == value else text
    for part in ("actor", "subject"):
        new[part] = alias if line[part] == name else line[part]
    return new


def _renamed(value: Any, name: str, alias: str) -> Any:
    """The same with the alias wherever the name stands as a whole."""
    match value:
        case dict():
            return {key: _renamed(each, name, alias) for key, each in value.items()}
        case list():
            return [_renamed(each, name, alias) for each in value]
    return alias if value == name else value
