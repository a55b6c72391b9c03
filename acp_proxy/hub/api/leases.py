"""Answers about leases: a part of what is left of each budget, lent to a machine for when it cannot ask."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.budget.lease import PREFIX
from acp_proxy.hub.api import central
from acp_proxy.hub.api.desk import Desk, reads, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger.accounts.lending import borrower, lent
from acp_proxy.ledger.hub.leases import GIVE_BACK, LEND, LOANS, Lending, Lent, Loan
from acp_proxy.ledger.hub.wire import Nothing, Turn

_MOST_WANTS = 100
_LONGEST = 64


def lend(desk: Desk, asked: Lending) -> Lent:
    """Of the asker's own budgets, and of those of the policy that count what they do."""
    lease = asked.turn.id
    if not (lease.startswith(PREFIX) and lease.isascii() and len(lease) <= _LONGEST):
        raise RefusedError(400, f"expected an id that begins with {PREFIX}")
    if len(asked.wants) > _MOST_WANTS:
        raise RefusedError(400, f"expected at most {_MOST_WANTS} budgets")
    turn = replace(asked.turn, origin=desk.claims.origin(asked.turn.origin), owner=borrower(desk.who.token))
    organisation = turn.origin.organisation
    for user in desk.ledger.users_of(organisation, [lease]).values():
        if not desk.claims.is_own(user):
            raise RefusedError(409, "the id of another user's lease")
    now = desk.claims.now(asked.now, desk.now)
    theirs = [want for want in asked.wants if want.account.budget.layer != central.LAYER]
    wants = [*((desk.claims.account(want.account), want.size) for want in theirs)]
    wants += central.wants_of(desk, turn, asked.wants, now)
    wants = [(account, size) for account, size in wants if account.budget.window.name != "turn"]
    terms = desk.lease
    amounts = desk.ledger.lend(turn, wants, terms, now, asked.returned) if wants else {}
    number = {account.key: place for place, (account, _) in enumerate(wants)}
    numbered = [(number[key], amount) for key, amount in amounts.items() if key in number]
    return Lent([account for account, _ in wants], numbered, terms.usable)


def give_back(desk: Desk, asked: Turn) -> Nothing:
    origin = desk.claims.organisation(asked.organisation)
    desk.ledger.give_back(origin, desk.claims.writer(""), [asked.turn])
    return Nothing()


def loans(desk: Desk, _: Nothing) -> list[Loan]:
    """Those of the people whose rows the asker sees."""
    found = lent(desk.ledger.tables.read, desk.who.organisation, desk.now, desk.ledger.dialect)
    return [
        Loan(lease.id, lease.origin.user, lease.origin.team, lease.origin.host, lease.started_at, until, amounts)
        for lease, until, amounts in found
        if desk.claims.sees(lease.origin)
    ]


ANSWERS = [reads(LOANS, loans), writes(LEND, lend), writes(GIVE_BACK, give_back)]
