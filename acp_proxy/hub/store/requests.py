"""Requests for more than a budget allows. A request, its notice and its line in the log are one transaction; so are a
decision, the grant that it gives, and its line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from acp_proxy.core.budget.requests import Decision, MoreRequest, RequestState
from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import SECOND
from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.ledger import notices
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.statements import Read, Run
from acp_proxy.ledger.tables import Tables
from acp_proxy.system.decoding import json_decoder

MOST_PENDING = 20  # of one user
_MOST = 1000  # in a list

Give = Callable[[Run, Grant], None]
"""Adds a grant, within a transaction."""


class NotToDecideError(Exception):
    """There is no such request, or it is decided already."""


class TooManyError(Exception):
    """Of this user too many wait."""


class Requests:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def ask(self, asked: MoreRequest, notice: Notice) -> MoreRequest | None:
        """As it is kept; None where the id is that of another user's. Raises TooManyError."""

        def work(run: Run) -> MoreRequest | int | None:
            self._audit.lock(run)
            if (known := self._find(run, asked.wish.id)) is not None:
                return known if known.user == asked.user else None
            sql = "SELECT count(*) FROM hub_request WHERE org_id = ? AND user_id = ? AND state = 'pending'"
            ((waiting,),) = run(sql, (self._organisation, asked.user))
            if waiting >= MOST_PENDING:
                return int(waiting)
            run("INSERT INTO hub_request VALUES (?, ?, ?, ?, ?, ?, ?)", self._values(asked))
            notices.note(run, [notice])
            change = Change(asked.user, "request.made", asked.wish.id, None, msgspec.to_builtins(asked))
            self._audit.note(run, change, asked.at // SECOND)
            return asked

        found = self._tables.write(work)
        if isinstance(found, int):
            raise TooManyError(f"{found} requests of yours wait for a decision: no more are taken")
        return found

    def find(self, id: str) -> MoreRequest | None:
        return self._find(self._tables.read, id)

    def all(
        self, *, state: RequestState | None = None, user: str | None = None, teams: Sequence[str] | None = None
    ) -> list[MoreRequest]:
        """The latest first. With `user` and `teams` those of either."""
        where, values = ["org_id = ?"], [self._organisation]
        if state is not None:
            where, values = [*where, "state = ?"], [*values, state]
        if user is not None:
            of_teams = f" OR team_id IN ({', '.join('?' * len(teams))})" if teams else ""
            where, values = [*where, f"(user_id = ?{of_teams})"], [*values, user, *(teams or ())]
        sql = f"SELECT content FROM hub_request WHERE {' AND '.join(where)} ORDER BY at DESC, id LIMIT {_MOST}"
        return [_request(content) for (content,) in self._tables.rows(sql, *values)]

    def decide(self, decision: Decision, actor: str, now: int, give: Give) -> MoreRequest:
        """`now` is Unix ns. Raises NotToDecideError. Who decides the same once more changes nothing."""

        def work(run: Run) -> MoreRequest | None:
            self._audit.lock(run)
            before = self._find(run, decision.id)
            if before is None:
                return None
            after = _decided(before, decision, actor, now)
            if before.state != "pending":
                return before if _same(before, after) else None
            sql = "UPDATE hub_request SET state = ?, content = ? WHERE org_id = ? AND id = ?"
            run(sql, (after.state, _content(after), self._organisation, decision.id))
            if decision.approve:
                give(run, _grant(after, self._organisation, actor, now))
            became = (msgspec.to_builtins(before), msgspec.to_builtins(after))
            self._audit.note(run, Change(actor, f"request.{after.state}", decision.id, *became), now // SECOND)
            return after

        found = self._tables.write(work)
        if found is None:
            raise NotToDecideError(f"no request {decision.id!r} that waits for a decision")
        return found

    def _find(self, run: Read, id: str) -> MoreRequest | None:
        found = run("SELECT content FROM hub_request WHERE org_id = ? AND id = ?", (self._organisation, id))
        return _request(found[0][0]) if found else None

    def _values(self, asked: MoreRequest) -> tuple[object, ...]:
        key = (self._organisation, asked.wish.id, asked.user, asked.team)
        return (*key, asked.state, asked.at, _content(asked))


def _decided(before: MoreRequest, decision: Decision, actor: str, now: int) -> MoreRequest:
    if not decision.approve:
        return replace(before, state="denied", decided_at=now, decided_by=actor, note=decision.note)
    return replace(
        before,
        state="approved",
        decided_at=now,
        decided_by=actor,
        note=decision.note,
        amount=before.wish.amount if decision.amount is None else decision.amount,
        until=decision.until,
    )


def _same(before: MoreRequest, after: MoreRequest) -> bool:
    return before == replace(after, decided_at=before.decided_at)


def _grant(decided: MoreRequest, organisation: str, actor: str, now: int) -> Grant:
    wish = decided.wish
    amount, until = decided.amount or wish.amount, decided.until or now
    of_budget = (organisation, wish.layer, wish.budget, wish.value)
    return Grant(f"request-{wish.id}", *of_budget, amount, wish.unit, now, until, actor, decided.note or wish.why)


def _content(request: MoreRequest) -> str:
    return msgspec.json.encode(request).decode()


def _request(content: str) -> MoreRequest:
    return json_decoder(MoreRequest).decode(content)
