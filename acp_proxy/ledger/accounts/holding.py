"""Holds (reservations) in SQL: inserted in the transaction that decides, deleted in the one that appends the row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.core.budget import Account, Budget, Standing, counted
from acp_proxy.core.budget.charge import PRESUMED, is_lost, is_presumed
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.verdict import Verdict, decide, denies_unpriced
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import NANO, Money, summed
from acp_proxy.core.notice import refused
from acp_proxy.core.session_ids import booked
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.accounts import overshoot
from acp_proxy.ledger.accounts.overshoot import EndedTurn, written
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.accounts.standings import Found, charged
from acp_proxy.ledger.budgets import EXPIRY, Decision, Grant, Held
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.notices import values_of
from acp_proxy.ledger.open_turns import open_turn
from acp_proxy.ledger.statements import Run, insert
from acp_proxy.system.decoding import json_decoder

Insert = tuple[str, Sequence[tuple[object, ...]], str]  # table, rows of all columns, what to do about conflicts
Together = Callable[[Run, Sequence[Insert]], None]

_UNLESS_THERE = " ON CONFLICT DO NOTHING"
_COUNT = " ON CONFLICT (org_id, layer, budget, value, decision) DO UPDATE SET count = decision.count + excluded.count"

HOLDS_OF_TURN = "SELECT amount, unit, estimate FROM hold WHERE org_id = ? AND turn = ?"


class _Terms(Struct, frozen=True, omit_defaults=True):
    """The terms of a hold that settling it needs, stored with it: a dead owner's settings are not available."""

    models: tuple[str, ...] | None = None  # whose missing prices it estimates; () is any, None for none
    rates: tuple[tuple[str, int], ...] = ()

    def units(self, own: str) -> Iterable[str]:
        return (*[currency for currency, _ in self.rates], own)


class Taking:
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
        self._accounts = written([account for account, _ in wants])

    def decide(self, run: Run, found: Found, dialect: Dialect, together: Together) -> Held:
        """Decide on what was found, and keep what was decided."""
        standings = tuple(found.standings)
        if found.own or found.booked:  # asked again: it stays as it was
            own = tuple((account, found.own[account.key]) for account, _ in self._wants if account.key in found.own)
            return Held(Verdict(None, own, ()), standings)
        verdict = decide(standings, self._sizes, unpriced=self._unpriced)
        inserts = counting(verdict.decisions)
        if verdict.binding:
            inserts.append(_refusal(self._turn, verdict.binding, unpriced=self._unpriced))
        else:
            watched = overshoot.watch(run, self._turn.origin.organisation, found, verdict.holds, dialect)
            values = (*self._open_turn, self._until + found.ahead, self._accounts, int(watched))
            inserts.append(("open_turn", [values], _UNLESS_THERE))
            inserts.append(("hold", list(_hold_values(self._turn, verdict.holds)), _UNLESS_THERE))
        together(run, inserts)
        return Held(verdict, standings)


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


def settle(run: Run, rows: Sequence[Row]) -> list[EndedTurn]:
    """Delete the holds of turns whose rows were appended. Returns the turns that were open until now."""
    # Of several with one id the first, as is written.
    by_turn = {(row.origin.organisation, row.entry.id): row for row in reversed(rows)}
    ended: list[EndedTurn] = []
    for organisation in sorted({organisation for organisation, _ in by_turn}):
        turns = sorted(turn for of, turn in by_turn if of == organisation)
        opened, holds = end(run, organisation, turns)
        held: dict[str, dict[str, int]] = {}
        for turn, account, amount, unit, estimate in holds:
            held.setdefault(turn, {})[account] = amount
            row = by_turn[organisation, turn]
            if (extra := amount - _counted(row.entry, unit, estimate)) > 0:
                values = (organisation, account, turn, row.entry.started_at, extra)
                insert(run, "surcharge", [values], _UNLESS_THERE)
        ended += [
            EndedTurn(by_turn[organisation, turn], accounts, held.get(turn, {}), watched=bool(watched))
            for turn, accounts, watched in sorted(opened, key=itemgetter(0))
        ]
    return ended


def end(run: Run, organisation: str, turns: Sequence[str]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Give holds up: (turn, accounts, watched) of open turns, (turn, account, amount, unit, estimate) of holds."""
    some = f"org_id = ? AND turn IN ({', '.join('?' * len(turns))})"
    opened = run(f"DELETE FROM open_turn WHERE {some} RETURNING turn, accounts, watched", (organisation, *turns))
    if not opened:
        return [], []
    held = f"DELETE FROM hold WHERE {some} RETURNING turn, account, amount, unit, estimate"
    return opened, run(held, (organisation, *turns))


def last_known(found: tuple[Any, ...], holds: Iterable[tuple[Any, ...]], now: int) -> Row:
    """The row of a turn whose owner died and left no figure: what it held. `found` is of `open_turns`.

    Each budget held for the same turn, a large one perhaps a hundred times what a small one did. The row counts for
    all of them, so it has the least; what one held beyond that, `settle` charges it alone. Of currencies that one of
    them has rates for it has one, too, or that budget would count the same again: dollars, where they have a rate,
    because in these nearly all agents tell what such a turn cost after all.
    """
    turn, expires_at = open_turn(found)
    least: dict[str, int] = {}  # by unit
    with_rates: list[tuple[str, _Terms]] = []
    for amount, unit, text in holds:
        if (terms := _read_terms(text)).rates:
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


def _hold_values(turn: OpenTurn, holds: Sequence[tuple[Account, int]]) -> Iterator[tuple[object, ...]]:
    for account, amount in holds:
        limit, terms = account.limit, _terms_of(account.budget)
        yield turn.origin.organisation, account.key, turn.id, amount, account.unit, terms, limit


def _terms_of(budget: Budget) -> str | None:
    """Its `_Terms`; without rates the models alone, as versions read it that know none."""
    models = budget.scope.model if budget.limit.is_money and budget.on_unpriced == "estimate" else None
    if budget.rates:
        return msgspec.json.encode(_Terms(models, budget.rates)).decode()
    return None if models is None else json.dumps(models)


def _read_terms(text: str | None) -> _Terms:
    """Of any model where it cannot be read: an error would come up whenever the ledger is opened."""
    if text is None:
        return _Terms()
    try:
        if text.startswith("{"):
            return json_decoder(_Terms).decode(text)
        return _Terms(json_decoder(tuple[str, ...]).decode(text))
    except msgspec.MsgspecError:
        return _Terms(())


def _counted(entry: Entry, unit: str, text: str | None) -> int:
    """What the row charges by itself where it misses something; where it does not, more than any hold."""
    if is_lost(entry, unit):
        return 0
    terms = _read_terms(text)
    if unit != "turns" and is_presumed(entry):
        return entry.usage.total if unit == "tokens" else _cost(entry.lines, unit, terms)
    if terms.models is None:
        return 2**63
    lines = [line for line in entry.lines if charged(terms.models, line.model)]
    if entry.cost_source == "parent" or not any(line.cost is None and line.usage.total for line in lines):
        return 2**63
    return _cost(lines, unit, terms)


def _cost(lines: Iterable[UsageLine], currency: str, terms: _Terms) -> int:
    costs = summed(line.cost for line in lines if line.cost is not None)
    return counted({cost.currency: cost.nano for cost in costs}, currency, terms.rates)
