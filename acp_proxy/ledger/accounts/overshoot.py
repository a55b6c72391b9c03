"""Overshoot: how far turns exceeded limits and grants, counted once per turn, in the transaction that ends its holds.

A turn counts with at most its own charge, so the sum never exceeds what was overspent. A turn that ran without the
ledger, as `on_unavailable` permits, has no holds to end and is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.charge import charge
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts import headroom
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.accounts.standings import NEVER, Found, Question
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Journey, Run, Statement, insert
from acp_proxy.system.decoding import json_decoder

TABLES = (
    "ALTER TABLE open_turn ADD COLUMN accounts TEXT",
    """
    CREATE TABLE overshoot (
        org_id TEXT NOT NULL,
        layer TEXT NOT NULL,
        budget TEXT NOT NULL,
        value TEXT NOT NULL,
        unit TEXT NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY (org_id, layer, budget, value, unit)
    ) STRICT, WITHOUT ROWID
    """,
)
WATCHED = (
    "ALTER TABLE open_turn ADD COLUMN watched INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE hold ADD COLUMN under INTEGER",  # the limit that it was admitted under
)
READ = (
    "SELECT layer, budget, unit, amount FROM overshoot WHERE org_id = ? ORDER BY 1, 2, 3"  # SQLite's sum would overflow
)

_MOST = 2**62  # a count that is this far stays there: a row must never be refused because of it
_ADD = f"""
ON CONFLICT (org_id, layer, budget, value, unit) DO UPDATE SET amount = CASE
    WHEN overshoot.amount > {_MOST} - excluded.amount THEN {_MOST} ELSE overshoot.amount + excluded.amount END
"""
_WATCH = "UPDATE open_turn SET watched = 1 WHERE org_id = ? AND watched = 0"

_NOTHING: Mapping[str, int] = {}

Lock = Callable[[Run, Sequence[Account]], None]


class Opened(Struct, frozen=True):
    """A turn that was admitted here: the accounts, `written`, and of each hold account, amount, unit and terms."""

    accounts: str
    holds: Sequence[tuple[str, int, str, str | None]]
    standings: Sequence[Standing]  # as it was admitted, without what it holds itself

    def may_exceed(self, row: Row, *, granted: bool) -> bool:
        """Whether its row charges more than an account had left by then, with what was granted or without."""
        holds = {account: amount for account, amount, _, _ in self.holds}
        for standing in self.standings:
            account = standing.account
            charged = charge(account, row.origin, row.entry, hold=holds.get(account.key, 0), process=row.process)
            if charged > standing.left - (0 if granted else standing.granted):
                return True
        return False


class EndedTurn(Struct, frozen=True):
    """A turn whose row was just appended. `accounts` are those it was admitted under, as `written`.

    If it is not `watched`, and stayed within its holds, then its accounts cannot have been overshot.
    """

    row: Row
    accounts: str | None
    holds: Mapping[str, int]  # by the keys of accounts
    extra: Mapping[str, int]  # what is charged beyond its row, likewise
    watched: bool


def written(accounts: Sequence[Account]) -> str:
    """Accounts as a turn keeps them until its row is there: limits are those that it was admitted under."""
    return f"[{','.join(map(_written, accounts))}]"


def watch(run: Run, organisation: str, found: Found, holds: Sequence[tuple[Account, int]], dialect: Dialect) -> bool:
    """Whether the overshoot of a turn with these holds must be computed; some holds make this true of all open turns.

    Not needed while spend and holds stay within one unchanged limit in one interval without end: grants end, and holds
    of running turns may expire. On PostgreSQL, where writers are concurrent, every turn is watched.
    """
    if not dialect.serial:
        return True
    granted = any(standing.granted for standing in found.standings)
    if granted or found.expired or found.other_limits or len(holds) < len(found.standings):
        _watch_all(run, organisation, dialect)
        return True
    return any(account.budget.window.name == "rolling" for account, _ in holds)


def _watch_all(run: Run, organisation: str, dialect: Dialect) -> None:
    if dialect.serial:
        run(_WATCH, (organisation,))


def none_of(ended: Sequence[tuple[Row, str]], dialect: Dialect) -> Iterator[Statement]:
    """Fails where some account of turns that end may exceed its limit if all holds are spent; each is asked for once.

    Grants say nothing here, so that it is the same when each of the turns ended.
    """
    concerned: dict[tuple[str, Account], Row] = {}
    for row, accounts in ended:
        concerned |= dict.fromkeys(((row.origin.organisation, each) for each in read_accounts(accounts)), row)
    for organisation in sorted({of for of, _ in concerned}):
        some = [account for of, account in concerned if of == organisation]
        last = max(
            (row for (of, _), row in concerned.items() if of == organisation), key=lambda row: row.entry.ended_at
        )
        yield headroom.refuted(_question(some, last, dialect), [0] * len(some))


class PrefetchedStandings:
    """How accounts stand with all rows included, as far as it could be asked for together with these: one journey less.

    What ended turns charge beyond their rows is not included.
    """

    def __init__(self, journey: Journey, rows: Iterable[Row], opened: Mapping[str, Opened], dialect: Dialect) -> None:
        self.dialect = dialect
        self.is_locked = False
        self._asked: dict[tuple[str, str], tuple[str, Question, Callable[[], list[list[tuple[Any, ...]]]]]] = {}
        for row in rows if opened and dialect.remote else ():
            if (turn := opened.get(row.entry.id)) and (accounts := read_accounts(turn.accounts)):
                question = _question(accounts, row, dialect)
                answer = journey.add([question.asked])
                self._asked[row.origin.organisation, row.entry.id] = turn.accounts, question, answer

    def lock(self, run: Run, lock: Lock) -> None:
        """Before the journey: what it finds then can be counted with."""
        concerned: dict[str, list[Account]] = {}
        for (organisation, _), (_, question, _) in sorted(self._asked.items(), key=itemgetter(0)):
            concerned.setdefault(organisation, []).extend(question.accounts)
        for accounts in concerned.values():
            lock(run, accounts)
        self.is_locked = True

    def standings(self, turn: EndedTurn) -> Sequence[Standing] | None:
        """Of the accounts that the turn was admitted under; None where that was not asked for."""
        asked = self._asked.get((turn.row.origin.organisation, turn.row.entry.id))
        if asked is None or asked[0] != turn.accounts:
            return None
        _, question, answer = asked
        found, missing = question.answered(answer()[0])
        some_summed = question.number_kept < len(question.accounts)  # from totals, perhaps, which are added to last
        return None if missing or some_summed else found.standings


def count(
    run: Run, turns: Sequence[EndedTurn], rows: Iterable[Row], prefetched: PrefetchedStandings, lock: Lock
) -> None:
    """Add what turns charge beyond the limits and grants of their accounts, with all rows included.

    `rows` are all that are new, also those that held nothing.
    """
    dialect = prefetched.dialect
    held = {(turn.row.origin.organisation, turn.row.entry.id) for turn in turns}
    keys = ((row.origin.organisation, row.entry.id) for row in rows)
    watching = {key[0] for key in keys if key not in held}
    for organisation in sorted(watching):
        _watch_all(run, organisation, dialect)
    counted: Counter[str] = Counter()
    extra = any(turn.extra for turn in turns)  # by one of them, perhaps to the account of another
    for turn in turns:
        charges = _charges(turn)
        watched = turn.watched or turn.row.origin.organisation in watching
        if not watched and all(amount <= turn.holds.get(account.key, 0) for account, amount in charges):
            continue
        accounts = [account for account, _ in charges]
        found = prefetched.standings(turn)
        if not (
            _may_exceed(_standings(run, accounts, turn, dialect)) if found is None else _may_exceed(found, turn.extra)
        ):
            continue
        _watch_all(run, turn.row.origin.organisation, dialect)
        if found is None or extra or not prefetched.is_locked:
            lock(run, accounts)  # only now: turns of others may end at this moment, and no other hold waits for them
            found = _standings(run, accounts, turn, dialect)
        standings = {standing.account: standing for standing in found}
        amounts: Counter[Account] = Counter()
        for account, amount in charges:
            standing = standings[account]
            amounts[account] = min(amount, standing.spent - standing.allowed - counted[account.key])
        counted.update({account.key: amount for account, amount in amounts.items() if amount > 0})
        insert(run, "overshoot", [_values(account, amount) for account, amount in amounts.items() if amount > 0], _ADD)


def _charges(turn: EndedTurn) -> list[tuple[Account, int]]:
    row = turn.row
    charges = [
        (account, charge(account, row.origin, row.entry, hold=turn.holds.get(account.key, 0), process=row.process))
        for account in read_accounts(turn.accounts)
    ]
    return [(account, amount) for account, amount in charges if amount > 0]


@lru_cache(maxsize=64)  # prompts that follow each other mostly have the same ones
def _written(account: Account) -> str:
    return msgspec.json.encode(_without_defaults(account)).decode()


def _without_defaults(value: object) -> object:
    """Without default values: with a row of a kilobyte, each hold and each settle would write two more pages."""
    if isinstance(value, tuple):
        return [_without_defaults(each) for each in value]
    if not isinstance(value, Struct):
        return value
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    by_default = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    said = {name: getattr(value, name) for name in names}
    return {
        name: _without_defaults(each)
        for name, each in said.items()
        if name not in by_default or each != by_default[name]
    }


@lru_cache(maxsize=64)
def read_accounts(accounts: str | None) -> Sequence[Account]:
    """None if another version of acp-proxy wrote something that this one does not know."""
    try:
        return json_decoder(tuple[Account, ...]).decode(accounts or "[]")
    except msgspec.MsgspecError:
        return ()


def _may_exceed(standings: Iterable[Standing], extra: Mapping[str, int] = _NOTHING) -> bool:
    """Whether some account may exceed its limit if all holds are spent."""
    return any(standing.left < extra.get(standing.account.key, 0) for standing in standings)


def _standings(run: Run, accounts: Sequence[Account], turn: EndedTurn, dialect: Dialect) -> list[Standing]:
    return _question(accounts, turn.row, dialect).ask(run).standings if accounts else []


def _question(accounts: Sequence[Account], row: Row, dialect: Dialect) -> Question:
    """With the grants in force when the turn ended, even if its row arrives much later."""
    # A turn whose hold has expired may go on.
    return Question(accounts, row.entry.ended_at, dialect, expired_at=NEVER)


def _values(account: Account, amount: int) -> tuple[object, ...]:
    budget = account.budget
    return organisation_of(account), budget.layer, budget.name, account.value or "", account.unit, min(amount, _MOST)
