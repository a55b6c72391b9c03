"""Balances: a kept sum of an account's spend, so that a hold reads one row however many share the budget.

This module finds the balance of an account; `balance_updates.py` computes it. A missing balance is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec import Struct

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.contribution import Contribution
from acp_proxy.core.compact import compact
from acp_proxy.core.entry import Origin
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import Bounds
from acp_proxy.ledger.accounts.parts import columns
from acp_proxy.ledger.accounts.spending import organisation_of, spent, spent_in_rows
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Statement
from acp_proxy.ledger.sums.buckets import QUARTER_HOUR
from acp_proxy.system.decoding import json_decoder

TABLES = (
    """
    CREATE TABLE kept_sum (
        org_id TEXT NOT NULL,
        whose TEXT NOT NULL,
        what TEXT NOT NULL,
        kept_until INTEGER NOT NULL,
        spent TEXT NOT NULL,
        PRIMARY KEY (org_id, whose, what)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX kept_sum_by_end ON kept_sum (org_id, kept_until)",
)
ANEW = ("DELETE FROM kept_sum",)

# By which dimensions, beside the organisation, sums are found from the rows that they count. Who changes these, or what
# a sum counts, adds a step to the migrations that empties the table: older versions then write no more.
_SHAPES = ((), ("user",), ("team",), ("project",), ("agent",), ("user", "host", "agent", "session"))
_OF_PROCESSES = tuple((*shape, "process") for shape in _SHAPES)
_ALL = frozenset((*_SHAPES, *_OF_PROCESSES))
_NUL = r"\u0000"  # in JSON
# Where writers do not come one after the other: rows that no sum has yet (`pending_rows.py`).
_UNSUMMED = "unsummed u JOIN turn t ON t.org_id = u.org_id AND t.id = u.turn CROSS JOIN"


class BalanceKey(Struct, frozen=True):
    """By what an account's balance is found; for a rolling window, the rows of an `edge` are added to it."""

    whose: str  # values that rows must have, as JSON
    what: str  # a `What`, as JSON: two budgets of one name may differ in it
    bounds: Bounds
    edge: Bounds | None = None


class What(Struct, frozen=True):
    """The part of these rows that is in a sum."""

    unit: str
    bounds: Bounds
    scope: Scope


@lru_cache(maxsize=64)  # prompts that follow each other mostly have the same accounts
def balance_key_of(account: Account) -> BalanceKey | None:
    """None for an account without a balance, such as that of a single turn."""
    where = account.filter.where[1:] or _named(account.filter.scope)
    if tuple(dimension for dimension, _ in where) not in _ALL:
        return None
    bounds, edge = account.bounds, None
    if account.moves and bounds.start is not None:  # every quarter hour it has another sum
        start = -(-bounds.start // QUARTER_HOUR) * QUARTER_HOUR
        bounds, edge = Bounds(start, bounds.end), Bounds(bounds.start, start)
    what = msgspec.json.encode(What(account.unit, bounds, account.filter.scope)).decode()
    if _NUL in what or any("\0" in value for _, value in where):
        return None  # PostgreSQL has another text in its rows
    return BalanceKey(_whose(where), what, bounds, edge)


def is_small(account: Account) -> bool:
    """Whether it counts only rows of a session or of a run of the proxy, which are soon added up."""
    return any(dimension in ("session", "process") for dimension, _ in account.filter.where)


def _named(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Of budgets for one user each, however many there are, only that user's rows look at the sum."""
    for dimension in ("user", "team", "project", "agent"):
        match getattr(scope, dimension):
            case (value,) if "*" not in value:
                return ((dimension, value),)
    return ()


@lru_cache(maxsize=256)  # rows that follow each other are mostly of one session
def whose_are(origin: Origin, session: str, process: str | None) -> tuple[str, ...]:
    """`BalanceKey.whose` of all sums that may count a row of theirs."""
    values = {
        "user": origin.user,
        "team": origin.team,
        "project": origin.project,
        "host": origin.host,
        "agent": origin.agent,
        "session": session,
        "process": process,
    }
    shapes = _SHAPES if process is None else (*_SHAPES, *_OF_PROCESSES)
    named = (tuple((dimension, values[dimension]) for dimension in shape) for shape in shapes)
    return tuple(_whose(where) for where in named if all(value is not None for _, value in where))


def read(index: int, account: Account, key: BalanceKey, now: int, dialect: Dialect) -> Iterator[Statement]:
    """Questions that together find what is spent, as `spent` does, if one finds a `Part` of the kind 'kept'.

    Its text is what `spent_of` reads. Without that row there is no sum, and nothing of this is to be used.
    """
    yield _kept(index), [organisation_of(account), key.whose, key.what, now]
    yield from pending_spend(index, account, key, dialect)
    if key.edge is not None:
        yield from spent(index, account, key.edge, dialect)


@lru_cache(maxsize=32)
def _kept(index: int) -> str:
    return f"""
        SELECT {columns("kept", place=f"'{index}'", text="spent")}
        FROM kept_sum WHERE org_id = ? AND whose = ? AND what = ? AND kept_until >= ?
    """


def pending_spend(index: int, account: Account, key: BalanceKey, dialect: Dialect) -> Iterator[Statement]:
    """The spend in rows that are in no sum yet, in the form of `spent`."""
    if not dialect.serial:
        yield spent_in_rows(index, account, key.bounds, dialect, _UNSUMMED)


def spent_of(text: str) -> Contribution | None:
    """None for invalid JSON: the balance then counts as missing."""
    try:
        return json_decoder(Contribution).decode(text)
    except msgspec.MsgspecError:
        return None


@lru_cache(maxsize=256)
def what_of(text: str) -> What | None:
    try:
        return json_decoder(What).decode(text)
    except msgspec.MsgspecError:
        return None


@lru_cache(maxsize=256)
def _whose(where: tuple[tuple[str, str | None], ...]) -> str:
    return compact(dict(where))
