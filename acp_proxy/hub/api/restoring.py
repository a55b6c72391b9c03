"""Answers to proxies that keep what was acknowledged: whether the ledger has it yet, and what it was given back."""

from __future__ import annotations

from msgspec.structs import asdict

from acp_proxy.hub.api.claims import AHEAD
from acp_proxy.hub.api.desk import SEES_ALL, Desk, reads, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger import Row, restored
from acp_proxy.ledger.hub import questions
from acp_proxy.ledger.hub.place import Again, Missing, SetBack, Since
from acp_proxy.ledger.hub.wire import MOST_ROWS

_LONGEST_ID = 64


def missing(desk: Desk, asked: questions.Ids) -> Missing:
    """What has a row of anybody is not missing: turns of who was forgotten are another's, and stay so."""
    if len(asked.ids) > MOST_ROWS:
        raise RefusedError(413, f"expected at most {MOST_ROWS} ids")
    sure = desk.ledger.is_everywhere()  # first: of another server it says nothing of what is there
    there = desk.ledger.existing(desk.claims.organisation(asked.organisation), asked.ids)
    return Missing([each for each in asked.ids if each not in there], desk.place(), sure)


def check(desk: Desk, again: Again) -> None:
    """Raises RefusedError."""
    if again.lost_until is not None and not 0 < again.lost_until <= desk.now + AHEAD:
        raise RefusedError(400, "expected a time that has been")
    if not (again.id.isascii() and 0 < len(again.id) <= _LONGEST_ID):
        raise RefusedError(400, f"expected an id of 1 to {_LONGEST_ID} ASCII characters")


def note(desk: Desk, again: Again, rows: list[Row], new: int) -> None:
    if new:
        desk.ledger.note_restored(desk.claims.origin(rows[0].origin), again.id, desk.now, new, again.lost_until)


def set_back(desk: Desk, asked: Since) -> SetBack:
    user = None if desk.who.role in SEES_ALL else desk.who.user
    found = restored.read(desk.ledger.tables.read, desk.who.organisation, asked.since, user)
    return SetBack(**asdict(found))


# On the connection of writers: the server that takes what is sent again is the one that is asked.
ANSWERS = [writes(questions.MISSING, missing), reads(questions.SET_BACK, set_back)]
