"""Answers about turns: whether they may begin, what they hold while they run, and the rows that end them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict, replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.lease import PREFIX
from acp_proxy.hub.api import central
from acp_proxy.hub.api.desk import ADMINISTRATOR, Desk, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.policy import tag_for
from acp_proxy.ledger import Row, RowRefusedError
from acp_proxy.ledger.budgets import EXPIRY, Held
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.wire import Admission, Admitted, Appended, Done, Expiring, Figures, Nothing, RefusedRow
from acp_proxy.ledger.sql_ledger import SqlLedger

_MOST_WANTS = 100  # accounts of a turn
_LONGEST_HOLD = 10 * EXPIRY


def admit(desk: Desk, asked: Admission) -> Admitted:
    if len(asked.wants) > _MOST_WANTS:
        raise RefusedError(400, f"expected at most {_MOST_WANTS} budgets for a turn")
    turn = replace(asked.turn, origin=desk.claims.origin(asked.turn.origin))
    _no_lease([turn.id])
    _own(desk, [turn.id], turn.origin.organisation)
    now = desk.claims.now(asked.now, desk.now)
    theirs = [want for want in asked.wants if want.account.budget.layer != central.LAYER]
    ours = central.wants_of(desk, turn, asked.wants, now)
    wants = [*((desk.claims.account(want.account), want.size) for want in theirs), *ours]
    held = desk.ledger.hold(turn, wants, now, now + _lasting(asked.now, asked.until), unpriced=asked.unpriced)
    found = answered([account for account, _ in wants], held)
    if not asked.knows_policy:
        return _without_ours(found, [account for account, _ in ours], len(theirs))
    kept = desk.policies.of(desk.ledger, desk.who.organisation).kept
    return replace(found, accounts=[account for account, _ in ours], policy=tag_for(desk.who, kept))


def _without_ours(found: Admitted, ours: Sequence[Account], theirs: int) -> Admitted:
    """For a proxy that knows no policy. Raises RefusedError where one of the hub's budgets refuses."""
    if found.binding is not None and found.binding >= theirs:
        name = ours[found.binding - theirs].budget.name
        raise RefusedError(403, f"budget {name!r} is used up; a newer acp-proxy says more")
    return Admitted(
        found.figures[:theirs],
        found.binding,
        [(number, amount) for number, amount in found.holds if number < theirs],
        [(number, decision) for number, decision in found.decisions if number < theirs],
    )


def answered(accounts: Sequence[Account], held: Held) -> Admitted:
    number = {account.key: place for place, account in enumerate(accounts)}
    verdict = held.verdict
    return Admitted(
        figures(held.standings),
        None if verdict.binding is None else number[verdict.binding.account.key],
        [(number[account.key], amount) for account, amount in verdict.holds],
        [(number[account.key], decision) for account, decision in verdict.decisions],
    )


def figures(standings: Iterable[Standing]) -> list[Figures]:
    found = []
    for standing in standings:
        values = asdict(standing)
        del values["account"]
        found.append(Figures(**values))
    return found


def release(desk: Desk, asked: wire.Turn) -> Nothing:
    organisation = desk.claims.organisation(asked.organisation)
    _no_lease([asked.turn])
    _own(desk, [asked.turn], organisation)
    desk.ledger.release(organisation, asked.turn)
    return Nothing()


def beat(desk: Desk, asked: wire.Heartbeat) -> Nothing:
    organisation = desk.claims.organisation(asked.organisation)
    if len(asked.turns) > wire.MOST_ROWS:
        raise RefusedError(413, f"expected at most {wire.MOST_ROWS} turns")
    _no_lease(asked.turns)
    _own(desk, asked.turns, organisation)
    now = desk.claims.now(asked.now, desk.now)
    desk.ledger.beat(organisation, asked.turns, now + _lasting(asked.now, asked.until))
    return Nothing()


def book_lost(desk: Desk, asked: wire.Lost) -> Done:
    organisation = desk.claims.organisation(asked.organisation)
    _no_lease([asked.turn])
    _own(desk, [asked.turn], organisation)
    now = desk.claims.now(asked.now, desk.now)
    return Done(desk.ledger.book_held(organisation, asked.turn, now, from_zero=asked.from_zero))


def owned(desk: Desk, asked: wire.OwnersTurns) -> list[Expiring]:
    found = desk.ledger.turns_of(asked.hosts, asked.abandoned)
    return [Expiring(turn, expires_at) for turn, expires_at in found if desk.claims.is_own(turn.origin.user)]


def append(desk: Desk, asked: wire.Rows) -> Appended:
    """Rows that are refused keep no other out, unless all are to come in or none."""
    if len(asked.rows) > wire.MOST_ROWS:
        raise RefusedError(413, f"expected at most {wire.MOST_ROWS} rows")
    rows, refused = _sorted_out(desk, asked.rows)
    if rows and not (refused and asked.whole):
        desk.ledger.charge_leases(rows, desk.now + EXPIRY)
        return _appended(desk.ledger, rows, asked, refused)
    return Appended(0, refused)


def move(desk: Desk, asked: wire.Rows) -> Appended:
    """Rows of other users than the administrator who sends them: what came before the hub."""
    if desk.who.scopes:
        raise RefusedError(403, "a token with a scope moves no ledger")
    if len(asked.rows) > wire.MOST_ROWS:
        raise RefusedError(413, f"expected at most {wire.MOST_ROWS} rows")
    rows: list[Row] = []
    refused: list[RefusedRow] = []
    for row in asked.rows:
        try:
            rows.append(desk.claims.moved(row, desk.now))
        except RowRefusedError as error:
            refused.append(RefusedRow(row.entry.id, str(error)))
    if rows and not (refused and asked.whole):
        return _appended(desk.ledger, rows, asked, refused)
    return Appended(0, refused)


def _sorted_out(desk: Desk, claimed: Sequence[Row]) -> tuple[list[Row], list[RefusedRow]]:
    rows: list[Row] = []
    refused: list[RefusedRow] = []
    ids = [row.entry.id for row in claimed]
    users = desk.ledger.users_of(desk.claims.organisation(claimed[0].origin.organisation), ids) if claimed else {}
    for row in claimed:
        user = users.get(row.entry.id)
        try:
            if user is not None and not desk.claims.is_own(user):
                raise RowRefusedError("its id is that of another user's row")
            rows.append(desk.claims.row(row, desk.now))
        except RowRefusedError as error:
            refused.append(RefusedRow(row.entry.id, str(error)))
    return rows, refused


def _appended(ledger: SqlLedger, rows: list[Row], asked: wire.Rows, refused: list[RefusedRow]) -> Appended:
    try:
        return Appended(ledger.append(rows, in_order=asked.in_order), refused)
    except RowRefusedError as error:
        if len(rows) == 1 or asked.whole:
            return Appended(0, [*refused, RefusedRow(rows[0].entry.id, str(error))])
    each = [_appended(ledger, [row], asked, []) for row in rows]
    return Appended(sum(one.new for one in each), [*refused, *(bad for one in each for bad in one.refused)])


def _no_lease(turns: Sequence[str]) -> None:
    """Raises RefusedError for an id that only leases have."""
    if any(turn.startswith(PREFIX) for turn in turns):
        raise RefusedError(400, f"expected a turn, whose id does not begin with {PREFIX}")


def _own(desk: Desk, turns: Sequence[str], organisation: str) -> None:
    """Raises RefusedError for turns that others have."""
    for turn, user in desk.ledger.users_of(organisation, turns).items():
        if not desk.claims.is_own(user):
            raise RefusedError(409, f"turn {turn}: its id is another user's")


def _lasting(now: int, until: int) -> int:
    return max(0, min(until - now, _LONGEST_HOLD))


ANSWERS = [
    writes(wire.ADMIT, admit),
    writes(wire.APPEND, append),
    writes(wire.MOVE, move, ADMINISTRATOR),
    writes(wire.RELEASE, release),
    writes(wire.BEAT, beat),
    writes(wire.BOOK_LOST, book_lost),
    writes(wire.OWNED, owned),
]
