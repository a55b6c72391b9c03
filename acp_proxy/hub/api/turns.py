"""Answers about turns: whether they may begin, what they hold while they run, and the rows that end them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import PREFIX
from acp_proxy.hub.api import central, restoring
from acp_proxy.hub.api.desk import ADMINISTRATOR, Batching, Desk, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.policy import tag_for
from acp_proxy.ledger import Row, RowRefusedError
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.budgets import EXPIRY, Held
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.wire import Admission, Admitted, Appended, Done, Expiring, Figures, Nothing, RefusedRow
from acp_proxy.ledger.sql_ledger import SqlLedger

_MOST_WANTS = 100  # accounts of a turn
_LONGEST_HOLD = 10 * EXPIRY
_FEW = 100  # rows of one call that go together with those of others


def admit(desk: Desk, asked: Admission) -> Admitted:
    (answer,) = admit_together([(desk, asked)])
    if isinstance(answer, Exception):
        raise answer
    return answer


def admit_together(asked: Sequence[tuple[Desk, Admission]]) -> list[Admitted | Exception]:
    """As one transaction, as far as they go together. Of one ledger; a refusal is of that one alone."""
    prompts: dict[int, _Prompt] = {}
    found: dict[int, Admitted | Exception] = {}
    users = _users([(desk, [each.turn.id], each.turn.origin.organisation) for desk, each in asked])
    for number, (desk, each) in enumerate(asked):
        try:
            prompts[number] = _prompt(desk, each, users[number])
        except (RefusedError, RowRefusedError, ValueError) as error:
            found[number] = error
    held = asked[0][0].ledger.hold_together([each.prompt for each in prompts.values()]) if prompts else []
    for (number, prompt), one in zip(prompts.items(), held, strict=True):
        try:
            found[number] = one if isinstance(one, Exception) else _admitted(*asked[number], prompt, one)
        except RefusedError as error:
            found[number] = error
    return [found[number] for number in range(len(asked))]


class _Prompt(Struct, frozen=True):
    prompt: Prompt
    ours: list[tuple[Account, HoldSize]]  # of its wants, those that are the policy's, at their end


def _prompt(desk: Desk, asked: Admission, users: Mapping[str, str]) -> _Prompt:
    """Raises RefusedError."""
    if len(asked.wants) > _MOST_WANTS:
        raise RefusedError(400, f"expected at most {_MOST_WANTS} budgets for a turn")
    turn = replace(asked.turn, origin=desk.claims.origin(asked.turn.origin))
    _no_lease([turn.id])
    _check_own(desk, [turn.id], users)
    now = desk.claims.now(asked.now, desk.now)
    theirs = [want for want in asked.wants if want.account.budget.layer != central.LAYER]
    ours = central.wants_of(desk, turn, asked.wants, now)
    wants = [*((desk.claims.account(want.account), want.size) for want in theirs), *ours]
    return _Prompt(Prompt(turn, wants, now, now + _lasting(asked.now, asked.until), asked.unpriced), ours)


def _admitted(desk: Desk, asked: Admission, prompt: _Prompt, held: Held) -> Admitted:
    """Raises RefusedError."""
    wants, ours = prompt.prompt.wants, [account for account, _ in prompt.ours]
    found = answered([account for account, _ in wants], held)
    if not asked.knows_policy:
        return _without_ours(found, ours, len(wants) - len(ours))
    kept = desk.policies.of(desk.ledger, desk.who.organisation).kept
    return replace(found, accounts=ours, policy=tag_for(desk.who, kept), place=desk.place())


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
    desk.ledger.release(organisation, asked.turn, asked_elsewhere=True)  # prompts have a connection for themselves
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
    if asked.again:
        restoring.check(desk, asked.again)
    (answer,) = append_together([(desk, asked)])
    if isinstance(answer, Exception):
        raise answer
    if asked.again:
        restoring.note(desk, asked.again, asked.rows, answer.new)
    return answer


def append_together(asked: Sequence[tuple[Desk, wire.Rows]]) -> list[Appended | Exception]:
    """As one transaction, unless one of the rows is refused by the ledger. Of one ledger."""
    found: dict[int, Appended | Exception] = {}
    good: dict[int, tuple[list[Row], list[RefusedRow]]] = {}
    users = _users([(desk, [row.entry.id for row in each.rows], _organisation_of(each)) for desk, each in asked])
    for number, (desk, each) in enumerate(asked):
        if len(each.rows) > wire.MOST_ROWS:
            found[number] = RefusedError(413, f"expected at most {wire.MOST_ROWS} rows")
            continue
        rows, refused = _sorted_out(desk, each.rows, users[number])
        found[number] = Appended(0, refused)
        if rows and not (refused and each.whole):
            good[number] = (rows, refused)
    for in_order in (False, True):
        of_one = {number: rows for number, rows in good.items() if asked[number][1].in_order is in_order}
        if of_one:
            found |= _appended_together(asked, of_one, in_order=in_order)
    return [found[number] for number in range(len(asked))]


def _appended_together(
    asked: Sequence[tuple[Desk, wire.Rows]],
    good: Mapping[int, tuple[list[Row], list[RefusedRow]]],
    *,
    in_order: bool,
) -> dict[int, Appended]:
    desk = asked[next(iter(good))][0]
    desk.ledger.charge_leases([row for rows, _ in good.values() for row in rows], desk.now + EXPIRY)
    try:
        new = desk.ledger.append_together([rows for rows, _ in good.values()], in_order=in_order)
    except RowRefusedError:  # of one: which, is found out one by one
        return {n: _one_by_one(*asked[n], rows, refused) for n, (rows, refused) in good.items()}
    return {
        number: Appended(count, refused, asked[number][0].place())
        for (number, (_, refused)), count in zip(good.items(), new, strict=True)
    }


def _one_by_one(desk: Desk, asked: wire.Rows, rows: list[Row], refused: list[RefusedRow]) -> Appended:
    return replace(_appended(desk.ledger, rows, asked, refused), place=desk.place())


def is_short(asked: wire.Rows) -> bool:
    return len(asked.rows) <= _FEW and asked.again is None and all(row.lease is None for row in asked.rows)


def _organisation_of(asked: wire.Rows) -> str:
    return asked.rows[0].origin.organisation if asked.rows else ""


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


def _sorted_out(desk: Desk, claimed: Sequence[Row], users: Mapping[str, str]) -> tuple[list[Row], list[RefusedRow]]:
    rows: list[Row] = []
    refused: list[RefusedRow] = []
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


def _users(asked: Sequence[tuple[Desk, Sequence[str], str]]) -> list[Mapping[str, str]]:
    """Whose turns these are, for each who asks; an organisation's with one question."""
    named = [(desk.claims.organisation(organisation), turns) for desk, turns, organisation in asked]
    ids: dict[str, dict[str, None]] = {}
    for organisation, turns in named:
        ids.setdefault(organisation, {}).update(dict.fromkeys(turns))
    ledger = asked[0][0].ledger
    found = {organisation: ledger.users_of(organisation, list(turns)) for organisation, turns in ids.items()}
    return [found[organisation] for organisation, _ in named]


def _no_lease(turns: Sequence[str]) -> None:
    """Raises RefusedError for an id that only leases have."""
    if any(turn.startswith(PREFIX) for turn in turns):
        raise RefusedError(400, f"expected a turn, whose id does not begin with {PREFIX}")


def _own(desk: Desk, turns: Sequence[str], organisation: str) -> None:
    """Raises RefusedError for turns that others have."""
    _check_own(desk, turns, desk.ledger.users_of(organisation, turns))


def _check_own(desk: Desk, turns: Sequence[str], users: Mapping[str, str]) -> None:
    for turn in turns:
        user = users.get(turn)
        if user is not None and not desk.claims.is_own(user):
            raise RefusedError(409, f"turn {turn}: its id is another user's")


def _lasting(now: int, until: int) -> int:
    return max(0, min(until - now, _LONGEST_HOLD))


ANSWERS = [
    replace(writes(wire.ADMIT, admit), batching=Batching(admit_together, lambda _: True)),
    replace(writes(wire.APPEND, append), batching=Batching(append_together, is_short)),
    writes(wire.MOVE, move, ADMINISTRATOR),
    writes(wire.RELEASE, release),
    writes(wire.BEAT, beat),
    writes(wire.BOOK_LOST, book_lost),
    writes(wire.OWNED, owned),
]
