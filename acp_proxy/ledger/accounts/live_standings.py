"""The current standings of accounts; holds of dead processes are booked first. Not imported without a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from acp_proxy.core.budget import Account, Standing
from acp_proxy.ledger import LedgerForbiddenError, LedgerReadOnlyError
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.accounts.standings import Found, Question, owners_of
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Read

_TOGETHER = 50  # accounts: a statement of SQLite has at most 500 parts, and an account needs some


def live_standings(
    read: Read, accounts: Sequence[Account], now: int, dialect: Dialect, settle_dead: Callable[[int], object]
) -> list[Standing]:
    """One standing per account; accounts of one organisation must be adjacent."""
    found = _found(read, accounts, now, dialect)
    if (found.expired or any(each.held for each in found.standings)) and _any_owner_gone(read, accounts):
        # On a standby, or for a role that only reads, it stays held until who writes books it.
        with suppress(LedgerReadOnlyError, LedgerForbiddenError):
            settle_dead(now)
            found = _found(read, accounts, now, dialect)
    return found.standings


def _found(read: Read, accounts: Sequence[Account], now: int, dialect: Dialect) -> Found:
    result = Found([])
    for some in _parts(accounts):
        found = Question(some, now, dialect).ask(read)
        result.standings += found.standings
        result.expired |= found.expired
    return result


def _any_owner_gone(read: Read, accounts: Sequence[Account]) -> bool:
    return any(owner.is_gone for some in _parts(accounts) for owner in owners_of(read, some))


def _parts(accounts: Sequence[Account]) -> Iterator[Sequence[Account]]:
    """Parts of one organisation each, small enough for one statement."""
    for _, group in groupby(accounts, organisation_of):
        together = list(group)
        for start in range(0, len(together), _TOGETHER):
            yield together[start : start + _TOGETHER]
