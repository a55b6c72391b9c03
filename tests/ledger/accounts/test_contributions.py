"""Whatever rows add to an account, each way to add them up comes to the same: SQL from totals or rows, and Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.charge import charge, lines_in
from acp_proxy.core.budget.contribution import NOTHING, Contribution
from acp_proxy.core.scope import Scope
from acp_proxy.core.session_ids import booked
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts.balances import balance_key_of, whose_are
from acp_proxy.ledger.accounts.parts import Part, union_all
from acp_proxy.ledger.accounts.spending import spent, spent_in_rows
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import NOON
from tests.core.accounts import budget
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import account, any_rows, hold, unique

_organisations = count()
_accounts = st.builds(
    lambda amount, window, scope, per, at: account(
        budget(amount, window, scope=scope, per=per, rates=(("EUR", 1_100_000_000),) if "USD" in amount else ()), at=at
    ),
    st.sampled_from(["9 USD", "9 EUR", "9 tokens", "9 turns"]),
    st.sampled_from(["day", "month", "total", "session", "rolling:24h"]),
    st.sampled_from([Scope(), Scope(model=("op*",)), Scope(model=("opus", "haiku")), Scope(user=("a*",))]),
    st.sampled_from([None, "user", "team"]),
    st.sampled_from([NOON, NOON + 7, NOON + HOUR, NOON + DAY]),
)


def of_organisation(of: Account, organisation: str) -> Account:
    where = (("organisation", organisation), *of.filter.where[1:])
    return replace(of, filter=replace(of.filter, where=where), key=f"{organisation} {of.key}")


def contribution(of: Account, row: Row) -> Contribution:
    """By Python."""
    key = balance_key_of(of)
    if key is None or key.whose not in whose_are(row.origin, booked(row.entry.session), row.process):
        return NOTHING
    scope = of.filter.scope
    return Contribution.of(of.unit, scope, row.entry, lines_in(scope, of.bounds, row.origin, row.entry))


def added_up(rows: Sequence[Row], of: Account) -> Contribution:
    return plain(reduce(Contribution.__add__, (contribution(of, row) for row in rows), NOTHING))


def plain(of: Contribution) -> Contribution:
    """Without currencies of which nothing is left."""
    return replace(of, nano={currency: nano for currency, nano in of.nano.items() if nano})


@ONE_AT_A_TIME
@given(any_rows, _accounts)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sql_adds_up_what_python_does(ledger: SqlLedger, rows: list[Row], of: Account) -> None:
    organisation = f"o{next(_organisations)}"
    booked_rows = [unique(each, number, organisation) for number, each in enumerate(rows)]
    ledger.append(booked_rows)
    of = of_organisation(of, organisation)
    expected = added_up(booked_rows, of)
    for parts in (spent(0, of, of.bounds, ledger.dialect), [spent_in_rows(0, of, of.bounds, ledger.dialect)]):
        found = [Part._make(each).contribution for each in ledger._read(*union_all(parts))]
        assert plain(reduce(Contribution.__add__, found, NOTHING).within(of.unit)) == expected


@ONE_AT_A_TIME
@given(any_rows, _accounts)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_spent_is_what_rows_charge(ledger: SqlLedger, rows: list[Row], of: Account) -> None:
    """With a sum that is kept, to which some are added and of which others are no part yet."""
    organisation = f"o{next(_organisations)}"
    booked_rows = [unique(each, number, organisation) for number, each in enumerate(rows)]
    of = of_organisation(of, organisation)
    ledger.append(booked_rows[::2])
    hold(ledger, f"{organisation} turn", (of, 1))
    ledger.append(booked_rows[1::2])
    charged = added_up(booked_rows, of).standing(of)
    (standing,) = ledger.standing([of], NOON)
    assert replace(standing, held=0) == charged
    if not of.budget.rates:  # else each row is rounded for itself
        assert sum(charge(of, each.origin, each.entry, process=each.process) for each in booked_rows) == charged.spent


def test_what_is_added_is_left_when_it_is_taken_away() -> None:
    dollars, euros = (Contribution.of_cost(currency, 5) for currency in ("usd", "EUR"))
    assert dollars == Contribution({"USD": 5})
    assert plain(dollars + euros - dollars) == euros
    assert Contribution(tokens=3, turns=2, untold=1) - Contribution(tokens=3, turns=2, untold=1) == NOTHING
    assert (dollars + Contribution(tokens=3, turns=2, unpriced=1)).within("tokens") == Contribution(tokens=3)
