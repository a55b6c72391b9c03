"""What the log of changes tells of spend limits: who changed them, and when each was made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

from acp_proxy.core.windows import SECOND
from acp_proxy.hub.api.desk import Desk
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending import calls
from acp_proxy.hub.api.spending.caps import Cap, cap_of, cents
from acp_proxy.hub.api.spending.members import actor_of
from acp_proxy.hub.api.spending.paging import size_of
from acp_proxy.hub.store.audit import Audit, Wanted
from acp_proxy.ledger.hub.policy import Document
from acp_proxy.policy import understood
from acp_proxy.text.times import rfc3339

_AT_ONCE = 1000  # lines of the log


def audit(desk: Desk, asked: calls.Trailing) -> calls.Trail:
    size = size_of(asked.limit)
    before = asked.before_id
    if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise RefusedError(400, "before_id: expected the id of a change")
    found = list(islice(_changes(desk, None if before is None else int(before)), size + 1))
    return calls.Trail(found[:size], len(found) > size)


def times_of(desk: Desk) -> dict[str, tuple[int, int]]:
    """When each budget was made and changed last, by name."""
    found: dict[str, tuple[int, int]] = {}
    for line in reversed(list(_lines(desk, None))):
        name, at = line["subject"], line["at"]
        if line["after"] is None:
            found.pop(name, None)
        else:
            found[name] = (found.get(name, (at, at))[0], at)
    return found


def _lines(desk: Desk, before: int | None) -> Iterator[dict[str, Any]]:
    """Of the log, about budgets, the latest first."""
    organisation = desk.who.organisation
    desk.policies.store(desk.ledger, organisation)  # makes the tables
    log = Audit(desk.ledger.tables, organisation)
    while some := log.last(_AT_ONCE, before, Wanted(action="budget.")):
        yield from some
        before = some[-1]["number"]


def _changes(desk: Desk, before: int | None) -> Iterator[calls.ChangeOfLimit]:
    for line in _lines(desk, before):
        old, new = (_limited(line[side]) for side in ("before", "after"))
        cap = new or old
        if cap is not None:
            yield calls.ChangeOfLimit(
                id=str(line["number"]),
                created_at=time_text(line["at"]) or "",
                actor=actor_of(desk, line["actor"]),
                action="removed" if new is None else "set",
                spend_limit_id=cap.id,
                before=_told(old),
                after=_told(new),
            )


def _limited(text: str | None) -> Cap | None:
    if text is None:
        return None
    budgets = understood(Document([orjson.loads(text)])).budgets
    return cap_of(budgets[0]) if budgets else None


def _told(cap: Cap | None) -> calls.Limited | None:
    return None if cap is None else calls.Limited(cap.scope, cents(cap.budget.limit.amount), cap.period)


def time_text(at: int | None) -> str | None:
    return None if at is None else rfc3339(at * SECOND)
