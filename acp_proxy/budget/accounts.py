"""The accounts to show: one for each budget; for a budget `per` user, team …, one for each that has rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, account_of
from acp_proxy.core.scope import DIMENSIONS, Dimension, Subject
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.text.times import zone_info

_NO_TURN = ""
_UNCHOSEN: tuple[Dimension, ...] = ("model",)  # of who has not prompted yet


def accounts_of(ledger: LedgerReader, budgets: Iterable[Budget], own: Subject, now: int) -> list[Account]:
    """In the order of the budgets, then by name. `own` is who asks, and has accounts before it has rows.

    A budget for each session is shown for the last sessions of a day, one for each turn as it is for any turn. One
    that is for a single run of the proxy is not shown: only that run can spend it.
    """
    accounts = (
        account_of(budget, subject, now, zone_info(budget.zone), _NO_TURN)
        for budget in budgets
        if budget.layer != "flag"
        for subject in _subjects(ledger, budget, own, now)
    )
    return list({account.key: account for account in accounts}.values())


def _subjects(ledger: LedgerReader, budget: Budget, own: Subject, now: int) -> list[Subject]:
    """One for each account that the budget has."""
    if budget.window.name == "turn":
        return [own]
    if budget.window.name == "session":
        return _last_sessions(ledger, budget, own, now)
    if budget.per is None:
        return [own]
    found = {subject.of(budget.per) or "": subject for subject in _seen(ledger, budget, own)}
    mine = own.of(budget.per)
    if mine and budget.may_match(own, _UNCHOSEN):
        found.setdefault(mine, own)
    return [found[value] for value in sorted(found)]


def _seen(ledger: LedgerReader, budget: Budget, own: Subject) -> Iterator[Subject]:
    """Subjects that have rows in the budget's scope, by the dimensions that the budget asks for."""
    asked = [dimension for dimension in DIMENSIONS if dimension == budget.per or budget.scope.of(dimension)]
    unnamed = Subject(own.organisation, "", None, None, "", "")
    for sums in ledger.summed(Query(where=(("organisation", own.organisation),)), asked):
        values = {name: None if value is None else str(value) for name, value in zip(asked, sums.key, strict=True)}
        subject = replace(unnamed, **values)
        if budget.matches(subject):
            yield subject


def _last_sessions(ledger: LedgerReader, budget: Budget, own: Subject, now: int) -> list[Subject]:
    """The last of each user, host and agent."""
    last: dict[tuple[str, str, str], Subject] = {}
    recent = Query(since=now - DAY, where=(("organisation", own.organisation),))
    for session in sorted(ledger.sessions(recent), key=lambda session: session.ended_at):
        subject = session.origin.subject(session=session.session)
        if budget.may_match(subject, _UNCHOSEN):
            last[subject.user, subject.host, subject.agent] = subject
    return list(last.values()) or [own]
