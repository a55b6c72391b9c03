"""Creates and updates balances. The first hold that needs a missing balance computes it from totals or rows. From then
on each append adds its rows to every balance that counts them, in the same transaction, even without own budgets.

On PostgreSQL, where writers are concurrent, that is deferred (`pending_rows.py`). Nothing is subtracted from a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.charge import lines_in
from acp_proxy.core.budget.contribution import NOTHING, Contribution
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.session_ids import booked
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts.balances import (
    BalanceKey,
    What,
    balance_key_of,
    pending_spend,
    spent_of,
    what_of,
    whose_are,
)
from acp_proxy.ledger.accounts.parts import Part, union_all
from acp_proxy.ledger.accounts.spending import organisation_of, spent
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Run, Statement, execute, insert

_LONGEST = 7 * DAY  # then it is made anew: most of those of sessions and processes are never read again
_MOST_AT_ONCE = 500
_CHANGE = " ON CONFLICT (org_id, whose, what) DO UPDATE SET spent = excluded.spent"
_REPLACE = f"{_CHANGE}, kept_until = excluded.kept_until"


def make(run: Run, accounts: Iterable[Account], now: int, dialect: Dialect) -> None:
    """Recompute the balances of accounts, and delete balances that will not be read again. Needs the lock."""
    for account in accounts:
        if key := balance_key_of(account):
            organisation, total = organisation_of(account), _added_up(run, account, key, dialect)
            run("DELETE FROM kept_sum WHERE org_id = ? AND kept_until < ?", (organisation, now))
            if (text := _encoded(total.within(account.unit))) is not None:
                made = (organisation, key.whose, key.what, _until(account, key, now), text)
                insert(run, "kept_sum", [made], _REPLACE)


def _added_up(run: Run, account: Account, key: BalanceKey, dialect: Dialect) -> Contribution:
    """All spend except rows that are still pending, read in one snapshot."""
    total = NOTHING
    if parts := list(spent(0, account, key.bounds, dialect)):
        for found in map(Part._make, run(*union_all([*parts, *pending_spend(1, account, key, dialect)]))):
            total = total - found.contribution if found.place == "1" else total + found.contribution
    return total


class RowsByBalance(Struct, frozen=True):
    """An organisation's rows by the `BalanceKey.whose` of the sums that may count them, and how to find these sums."""

    organisation: str
    by_whose: Mapping[str, Sequence[Row]]
    finding: Sequence[Statement]


def rows_by_balance(rows: Iterable[Row]) -> list[RowsByBalance]:
    """Computed before the transaction, because other writers wait for the transaction."""
    by_organisation: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        by_whose = by_organisation.setdefault(row.origin.organisation, {})
        for whose in whose_are(row.origin, booked(row.entry.session), row.process):
            by_whose.setdefault(whose, []).append(row)
    return [RowsByBalance(each, found, list(_finding(each, list(found)))) for each, found in by_organisation.items()]


def _finding(organisation: str, names: Sequence[str]) -> Iterator[Statement]:
    for start in range(0, len(names), _MOST_AT_ONCE):
        some = names[start : start + _MOST_AT_ONCE]
        yield _find(len(some)), (organisation, *some)


@lru_cache(maxsize=64)
def _find(names: int) -> str:
    places = ", ".join("?" * names)
    return f"SELECT whose, what, kept_until, spent FROM kept_sum WHERE org_id = ? AND whose IN ({places})"


def add(run: Run, rows: Iterable[RowsByBalance]) -> None:
    """Add new rows to all sums that count them."""
    for each in rows:
        changed = []
        for whose, what, until, text in execute(run, each.finding):
            of = what_of(what)
            counted = list(_counted(of, each.by_whose[whose])) if of else []
            if of is None or not counted:
                continue
            total = spent_of(text)
            if total is not None:
                for row, lines in counted:
                    total += Contribution.of(of.unit, of.scope, row.entry, lines)
            if total is not None and (encoded := _encoded(total)) is not None:
                changed.append((each.organisation, whose, what, until, encoded))
            else:
                run(
                    "DELETE FROM kept_sum WHERE org_id = ? AND whose = ? AND what = ?", (each.organisation, whose, what)
                )
        insert(run, "kept_sum", changed, _CHANGE)


def forget(run: Run) -> None:
    """Delete all balances. No other process may write meanwhile."""
    run("DELETE FROM kept_sum", ())


def _counted(what: What, rows: Iterable[Row]) -> Iterator[tuple[Row, list[UsageLine]]]:
    """The rows that count in a sum, with the lines that do."""
    for row in rows:
        if lines := lines_in(what.scope, what.bounds, row.origin, row.entry):
            yield row, lines


def _until(account: Account, key: BalanceKey, now: int) -> int:
    """The time from which a balance will not be read any more, if known."""
    end = key.bounds.end
    if account.moves and key.bounds.start is not None:
        end = key.bounds.start + account.budget.window.hours * HOUR
    return now + _LONGEST if end is None else min(end, now + _LONGEST)


def _encoded(total: Contribution) -> str | None:
    """None for what is too much to be kept, beyond 64 bits: a row must never be refused because of a sum."""
    try:
        return msgspec.json.encode(total).decode()
    except OverflowError:
        return None
