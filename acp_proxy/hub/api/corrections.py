"""Rows that are put in the place of others: any by an administrator, and by others only turns of their own which are
completed, for these were told in part.
"""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.hub.api.desk import ADMINISTRATOR, Desk, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger import Row, RowRefusedError
from acp_proxy.ledger.hub import questions
from acp_proxy.ledger.hub.place import Corrected


def correct(desk: Desk, asked: questions.Correction) -> Corrected:
    organisation = desk.claims.organisation(asked.after.origin.organisation)
    before, after = (
        replace(row, origin=replace(row.origin, organisation=organisation)) for row in (asked.before, asked.after)
    )
    if desk.who.role not in ADMINISTRATOR:
        found = desk.ledger.recent.some(organisation, [before.entry.id])
        if not found:
            return Corrected(False)
        before, after = replace(found[0], entry=before.entry), _completed(desk, found[0], after)
    done = desk.ledger.correct(before, after, desk.claims.now(asked.now, desk.now))
    return Corrected(done, desk.place() if done else None)


def _completed(desk: Desk, row: Row, claimed: Row) -> Row:
    """The row with what is now known of its usage, and nothing else of what is claimed. Raises RefusedError."""
    if not desk.claims.is_own(row.origin.user):
        raise RefusedError(409, f"row {row.entry.id}: its id is another user's")
    told = row.entry.usage_source
    if told == "agent":
        raise RefusedError(403, f"row {row.entry.id} tells all that its agent told: an administrator corrects it")
    try:
        known = desk.claims.row(replace(claimed, entry=replace(claimed.entry, id=row.entry.id)), desk.now).entry
    except RowRefusedError as error:
        raise RefusedError(400, f"row {row.entry.id}: {error}") from error
    if known.usage.total < (row.entry.usage.total if told == "partial" else 1):
        raise RefusedError(403, f"row {row.entry.id}: expected at least the tokens that its agent told")
    parts = {name: getattr(known, name) for name in ("lines", "usage_source", "cost_source", "detail")}
    return replace(row, entry=replace(row.entry, **parts))


ANSWERS = [writes(questions.CORRECT, correct)]
