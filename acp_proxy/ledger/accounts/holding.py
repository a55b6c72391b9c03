"""Holds (reservations) in SQL: inserted in the transaction that decides, deleted in the one that appends the row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from acp_proxy.core.budget import Account, Standing, counted
from acp_proxy.core.budget.charge import PRESUMED
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.verdict import Verdict, decide, denies_unpriced
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.notice import refused
from acp_proxy.core.session_ids import booked
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.accounts import headroom, overshoot
from acp_proxy.ledger.accounts.hold_terms import Terms, beyond_row, read_terms, terms_of
from acp_proxy.ledger.accounts.overshoot import EndedTurn, Opened, written
from acp_proxy.ledger.accounts.parts import COLUMNS, columns
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.accounts.standings import RELEASED, Found, Question
from acp_proxy.ledger.budgets import EXPIRY, Decision, Grant, Held
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import values_of
from acp_proxy.ledger.open_turns import open_turn
from acp_proxy.ledger.statements import Journey, Run, Statement, execute, insertions
from acp_proxy.ledger.sums.tallies import is_new_report

Insert = tuple[str, Sequence[tuple[object, ...]], str]  # table, rows of all columns, what to do about conflicts
InsertAll = Callable[[Run, Sequence[Insert]], None]

_UNLESS_THERE = " ON CONFLICT DO NOTHING"
_COUNT = " ON CONFLICT (org_id, layer, budget, value, decision) DO UPDATE SET count = decision.count + excluded.count"

_EXPIRES_AT = 16  # its place in a row of `open_turn`

HOLDS_OF_TURN = "SELECT amount, unit, estimate FROM hold WHERE org_id = ? AND turn = ?"


class HoldRequest:
    """The hold of one prompt. Computes what it can before the transaction, because other writers wait for that."""

    def __init__(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], until: int, *, unpriced: bool
    ) -> None:
        self._turn = turn
        self._wants = wants
        self._sizes = [size for _, size in wants]
        self._unpriced = unpriced
        self._until = until
        self._open_turn = _open_turn_values(turn)
        self._is_new = True
        self._report = ""  # of a refusal, that it is counted once although an answer may be lost
        self.accounts = written([account for account, _ in wants])

    @property
    def is_denied(self) -> bool:
        """Whatever is left."""
        return self._unpriced and any(denies_unpriced(account) for account, _ in self._wants)

    def decide(self, run: Run, found: Found, dialect: Dialect, insert_all: InsertAll) -> Held:
        """Decide on what was found, and keep what was decided."""
        standings = tuple(found.standings)
        if found.own or found.booked:  # asked again: it stays as it was
            own = tuple((account, found.own[account.key]) for account, _ in self._wants if account.key in found.own)
            self._is_new = False
            return Held(Verdict(None, own, ()), standings)
        verdict = decide(standings, self._sizes, unpriced=self._unpriced)
        if verdict.binding and dialect.remote and not self._is_first_refusal(run):
            return Held(verdict, standings)
        inserts = counting(verdict.decisions)
        if verdict.binding:
            inserts.append(_refusal(self._turn, verdict.binding, unpriced=self._unpriced))
        else:
            watched = overshoot.watch(run, self._turn.origin.organisation, found, verdict.holds, dialect)
            inserts += self._admission(verdict.holds, self._until + found.ahead, watched=watched)
        insert_all(run, inserts)
        return Held(verdict, standings)

    def _is_first_refusal(self, run: Run) -> bool:
        self._report = self._report or os.urandom(8).hex()
        return is_new_report(run, self._turn.origin.organisation, self._report, 1, self._turn.started_at)

    def at_once(self, question: Question) -> Statement:
        """Asks, and where it is certain that all amounts fit into what is left, holds them."""
        wanted = [max(size.wanted, size.floor) for size in self._sizes]
        sql, values = headroom.enough(question, wanted)
        holds = [(account, amount) for (account, _), amount in zip(self._wants, wanted, strict=True)]
        ahead, clock = question.dialect.ahead()
        inserts = [
            *counting((account, "allow") for account, _ in holds),
            *self._admission(holds, self._until, watched=True),
        ]
        for table, rows, conflict in inserts:
            for row in rows:
                marks, kept = ["?"] * len(row), f"kept_{sql.count('INSERT')}"
                if table == "open_turn":
                    marks[_EXPIRES_AT] = f"CAST(? AS BIGINT) + {ahead}"
                    row = (*row[: _EXPIRES_AT + 1], *clock, *row[_EXPIRES_AT + 1 :])
                sql += f", {kept} AS (INSERT INTO {table} SELECT {', '.join(marks)} FROM enough WHERE yes{conflict})"
                values = [*values, *row]
        yes = f"SELECT {columns('enough')} FROM enough WHERE yes"
        return f"{sql} SELECT {COLUMNS} FROM asked UNION ALL {yes}", values

    def admitted(self, question: Question, rows: Sequence[tuple[Any, ...]]) -> Held | None:
        """What `at_once` held, if it did."""
        if not any(row[0] == "enough" for row in rows):
            return None
        standings = tuple(question.answered(rows)[0].standings)
        return Held(decide(standings, self._sizes), standings)

    def held_of(self, standings: tuple[Standing, ...]) -> Held:
        """What is held of accounts that have so much left, when a server was certain of it."""
        return Held(decide(standings, self._sizes), standings)

    def admission(self, holds: Sequence[tuple[Account, int]]) -> list[Insert]:
        return self._admission(holds, self._until, watched=True)

    def opened(self, held: Held) -> Opened | None:
        """What is known of the turn from now on, if it was admitted just now."""
        if not (held.admitted and self._is_new):
            return None
        values = _hold_values(self._turn, held.verdict.holds)
        holds = [(key, amount, unit, terms) for _, key, _, amount, unit, terms, _ in values]
        return Opened(self.accounts, holds, held.standings)

    def _admission(self, holds: Sequence[tuple[Account, int]], until: int, *, watched: bool) -> list[Insert]:
        return _admission(self._open_turn, _hold_values(self._turn, holds), until, self.accounts, watched=watched)


def inserted_together(
    requests: Sequence[tuple[HoldRequest, Sequence[tuple[Account, int]]]], dialect: Dialect
) -> Iterator[Statement]:
    """What several turns hold that are admitted at once, as few statements."""
    decided: list[tuple[Account, Decision]] = [(account, "allow") for _, holds in requests for account, _ in holds]
    for table, rows, conflict in counting(decided):
        yield from insertions(table, rows, conflict)
    of_each = [request.admission(holds) for request, holds in requests]
    ahead, clock = dialect.ahead()
    opened = [row for inserts in of_each for table, rows, _ in inserts if table == "open_turn" for row in rows]
    marks = ["?"] * len(opened[0])
    marks[_EXPIRES_AT] = f"CAST(? AS BIGINT) + {ahead}"
    values = ", ".join([f"({', '.join(marks)})"] * len(opened))
    with_clock = [value for row in opened for value in (*row[: _EXPIRES_AT + 1], *clock, *row[_EXPIRES_AT + 1 :])]
    yield f"INSERT INTO open_turn VALUES {values}{_UNLESS_THERE}", with_clock
    held = [row for inserts in of_each for table, rows, _ in inserts if table == "hold" for row in rows]
    yield from insertions("hold", held, _UNLESS_THERE)


def admission_of(turn: OpenTurn, holds: Sequence[tuple[Account, int]], until: int, accounts: str) -> list[Insert]:
    """What a turn holds that was admitted elsewhere; `accounts` are as `overshoot.written` has them."""
    return _admission(_open_turn_values(turn), _hold_values(turn, holds), until, accounts, watched=True)


def _admission(
    turn: tuple[object, ...], holds: Iterable[tuple[Any, ...]], until: int, accounts: str, *, watched: bool
) -> list[Insert]:
    return [
        ("open_turn", [(*turn, until, accounts, int(watched))], _UNLESS_THERE),
        ("hold", list(holds), _UNLESS_THERE),
    ]


def counting(decided: Iterable[tuple[Account, Decision]]) -> list[Insert]:
    return _counting(
        (organisation_of(account), account.budget.layer, account.budget.name, account.value or "", decision)
        for account, decision in decided
    )


def counting_of_plans(organisation: str, standings: Iterable[PlanStanding]) -> list[Insert]:
    return _counting((organisation, each.budget.layer, each.budget.name, "", each.decision) for each in standings)


def _counting(decided: Iterable[tuple[str, ...]]) -> list[Insert]:
    counts: dict[tuple[str, ...], int] = {}
    for key in decided:
        counts[key] = counts.get(key, 0) + 1
    return [("decision", [(*key, counts[key]) for key in sorted(counts)], _COUNT)]


def granting(grant: Grant) -> list[Insert]:
    """Insert a grant, and count it as a decision of the budget."""
    key = (grant.organisation, grant.layer, grant.budget, grant.value or "", "grant")
    return [("decision", [(*key, 1)], _COUNT)]


class Settlement:
    """Gives the holds of turns up whose rows are appended."""

    def __init__(self, journey: Journey, rows: Sequence[Row]) -> None:
        # Of several with one id the first, as is written.
        self._by_turn = {(row.origin.organisation, row.entry.id): row for row in reversed(rows)}
        self._found = []
        for organisation in sorted({organisation for organisation, _ in self._by_turn}):
            turns = sorted(turn for of, turn in self._by_turn if of == organisation)
            self._found.append((organisation, journey.add(ends(organisation, turns))))

    def settle(self, run: Run) -> list[EndedTurn]:
        """The turns that were open until now. What one held beyond what its row charges is kept beside it."""
        ended: list[EndedTurn] = []
        for organisation, found in self._found:
            opened, holds = found()
            held: dict[str, dict[str, int]] = {}
            extra: dict[str, dict[str, int]] = {}
            for turn, account, amount, unit, estimate in holds:
                held.setdefault(turn, {})[account] = amount
                entry = self._by_turn[organisation, turn].entry
                if more := beyond_row(entry, amount, unit, estimate):
                    extra.setdefault(turn, {})[account] = more
            for turn, each in extra.items():
                execute(run, surcharges(self._by_turn[organisation, turn], each))
            ended += [
                EndedTurn(
                    self._by_turn[organisation, turn],
                    accounts,
                    held.get(turn, {}),
                    extra.get(turn, {}),
                    watched=bool(watched),
                )
                for turn, accounts, watched in sorted(opened, key=itemgetter(0))
            ]
        return ended


def beyond(holds: Iterable[tuple[str, int, str, str | None]], row: Row) -> dict[str, int]:
    """By account, what is charged beyond a row. Of each hold account, amount, unit and terms."""
    found = ((account, beyond_row(row.entry, amount, unit, terms)) for account, amount, unit, terms in holds)
    return {account: more for account, more in found if more}


def surcharges(row: Row, extra: Mapping[str, int]) -> list[Statement]:
    organisation, entry = row.origin.organisation, row.entry
    rows = [(organisation, account, entry.id, entry.started_at, more) for account, more in extra.items()]
    return insertions("surcharge", rows, _UNLESS_THERE)


def forbid(run: Run, organisation: str, turn: str, now: int) -> None:
    """Have nothing held for a turn any more, whatever is asked later. Forgotten with reports of that day."""
    execute(run, insertions("relayed", [(organisation, RELEASED.format(turn), 1, now)], _UNLESS_THERE))


def end(run: Run, organisation: str, turns: Sequence[str]) -> None:
    """Give up what turns hold that used nothing."""
    run.each(ends(organisation, turns), last=True)


def ends(organisation: str, turns: Sequence[str]) -> list[Statement]:
    """(turn, accounts, watched) of open turns, (turn, account, amount, unit, estimate) of holds."""
    values = (organisation, *turns)
    return [(sql, values) for sql in _ends(len(turns))]


@lru_cache(maxsize=64)
def _ends(turns: int) -> tuple[str, str]:
    some = f"org_id = ? AND turn IN ({', '.join('?' * turns)})"
    return (
        f"DELETE FROM open_turn WHERE {some} RETURNING turn, accounts, watched",
        f"DELETE FROM hold WHERE {some} RETURNING turn, account, amount, unit, estimate",
    )


def last_known(found: tuple[Any, ...], holds: Iterable[tuple[Any, ...]], now: int) -> Row:
    """The row of a turn whose owner died and left no figure: what it held. `found` is of `open_turns`.

    Each budget held for the same turn, a large one perhaps a hundred times what a small one did. The row counts for
    all of them, so it has the least; what one held beyond that, `settle` charges it alone. Of currencies that one of
    them has rates for it has one, too, or that budget would count the same again: dollars, where they have a rate,
    because in these nearly all agents tell what such a turn cost after all.
    """
    turn, expires_at = open_turn(found)
    least: dict[str, int] = {}  # by unit
    with_rates: list[tuple[str, Terms]] = []
    for amount, unit, text in holds:
        if (terms := read_terms(text)).rates:
            with_rates.append((unit, terms))
        rate = dict(terms.rates).get("USD")
        paid, size = (unit, amount) if rate is None else ("USD", amount * NANO // rate)
        least[paid] = min(least.get(paid, size), size)
    for unit, terms in with_rates:
        worth = {each: counted({each: least[each]}, unit, terms.rates) for each in terms.units(unit) if each in least}
        for each in sorted(worth, key=worth.__getitem__)[1:]:
            del least[each]
    least.pop("turns", None)
    usage = Usage(input=least.pop("tokens", 0))
    costs: list[Money | None] = [Money(nano, currency) for currency, nano in sorted(least.items())]
    costs = costs or [None]
    lines = [UsageLine(turn.model, usage if number == 0 else Usage(), cost) for number, cost in enumerate(costs)]
    entry = Entry(
        id=turn.id,
        session=turn.session,
        kind="turn",
        started_at=turn.started_at,
        ended_at=max(turn.started_at, min(now, expires_at - EXPIRY)),
        stop_reason="crashed",
        lines=tuple(lines),
        usage_source="estimated" if usage.total else "none",
        cost_source="estimated" if costs[0] else "unknown",
        detail=PRESUMED,
    )
    return Row(turn.origin, entry, process=turn.process)


def _refusal(turn: OpenTurn, binding: Standing, *, unpriced: bool) -> Insert:
    because = unpriced and denies_unpriced(binding.account)
    notice = refused(binding, turn.origin, turn.model, turn.started_at, unpriced=because)
    return "notice", [values_of(notice)], _UNLESS_THERE


def _open_turn_values(turn: OpenTurn) -> tuple[object, ...]:
    """The values of all columns before `expires_at`."""
    origin, owner = turn.origin, turn.owner
    who = (origin.user, origin.team, origin.project, origin.host, origin.agent, origin.agent_version, origin.client)
    what = (booked(turn.session), turn.started_at, turn.model, turn.process)
    return (origin.organisation, turn.id, *who, *what, owner.host, owner.pid, owner.started)


def _hold_values(turn: OpenTurn, holds: Sequence[tuple[Account, int]]) -> Iterator[tuple[Any, ...]]:
    for account, amount in holds:
        limit, terms = account.limit, terms_of(account.budget)
        yield turn.origin.organisation, account.key, turn.id, amount, account.unit, terms, limit
