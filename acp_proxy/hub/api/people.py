"""Answers about people: an administrator has somebody forgotten who left."""

from __future__ import annotations

from acp_proxy.hub.api.desk import ADMINISTRATOR, Desk, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.forgetting import NotKnownError
from acp_proxy.ledger.hub.people import FORGET, Forgetting, Forgotten
from acp_proxy.ledger.writing.forgetting import AliasTakenError

_LONGEST = 200  # characters of a name


def forget(desk: Desk, asked: Forgetting) -> Forgotten:
    who = desk.who
    if who.scopes:
        raise RefusedError(403, "a token with a scope forgets nobody")
    alias = asked.alias
    if alias is not None and not (alias.strip() and alias.isprintable() and len(alias) <= _LONGEST):
        raise RefusedError(400, f"expected an alias of up to {_LONGEST} printable characters")
    try:
        store = Store(desk.ledger.tables, who.organisation)
        return store.forgetting.forget(asked.user, alias, who.user, desk.now // 10**9)
    except (NotKnownError, AliasTakenError) as error:
        raise RefusedError(409, str(error)) from error


ANSWERS = [writes(FORGET, forget, ADMINISTRATOR)]
