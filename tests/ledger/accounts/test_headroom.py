"""What a server says by itself of what is left: never yes where it does not fit, and yes where nothing is unclear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, Limit
from acp_proxy.core.scope import Scope
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts import headroom
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from harness.postgres import Server
from harness.rows import NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import ELSEWHERE, account, any_rows, held, hold, keep, unique

_organisations = count()
_budgets = st.sampled_from(
    [
        budget("1 USD"),
        budget("1 USD", "total", rates=(("EUR", 1_083_333_333),)),
        budget("1 USD", "session", scope=Scope(model=("op*",))),
        budget("1 USD", "rolling:1h", name="rolling"),
        budget("9 tokens", per="user"),
        budget("9 turns", scope=Scope(model=("opus", "haiku"))),
    ]
)


@pytest.fixture
def ledger(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(postgres.create(tmp_path_factory.mktemp("headroom").name))) as ledger:
        yield ledger


def says(ledger: PostgresLedger, accounts: Sequence[Account], needs: Sequence[int]) -> bool:
    sql, values = headroom.enough(Question(accounts, NOON, ledger.dialect, "another"), needs)
    ((found,),) = ledger._read(f"{sql} SELECT yes::int FROM enough", values)
    return bool(found)


def with_limit(of: Budget, amount: int) -> Budget:
    return replace(of, limit=Limit(amount, of.limit.unit))


@given(any_rows, st.lists(_budgets, min_size=1, max_size=3, unique=True), st.integers(0, 3), st.integers(-2, 2))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_it_is_what_a_standing_says(
    ledger: PostgresLedger, rows: list[Row], budgets: list[Budget], own: int, more: int
) -> None:
    organisation = f"o{next(_organisations)}"
    origin = replace(row().origin, organisation=organisation)
    accounts = [account(with_limit(each, 2**60), origin) for each in budgets]
    ledger.append([unique(each, number, organisation) for number, each in enumerate(rows[::2])])
    keep(ledger, *accounts)
    ledger.release(organisation, "first")
    ledger.append([unique(each, number + 100, organisation) for number, each in enumerate(rows[1::2])])
    limited = [
        account(with_limit(of, each.spent + each.held + own + more), origin)
        for of, each in zip(budgets, ledger.standing(accounts, NOON), strict=True)
    ]
    fits = all(each.left >= own for each in ledger.standing(limited, NOON))
    converted = any(each.rates for each in budgets)  # a nano-unit more, perhaps, than it counts as
    assert says(ledger, limited, [own] * len(limited)) in ({False, fits} if converted else {fits})


class TestItIsNoWhereItIsNotClear:
    cap = account(budget("9 USD"))

    def test_whose_sum_is_not_kept(self, ledger: PostgresLedger) -> None:
        assert not says(ledger, [self.cap], [1])
        keep(ledger, self.cap)
        assert says(ledger, [self.cap], [1])

    def test_that_only_a_grant_has_room_for(self, ledger: PostgresLedger) -> None:
        keep(ledger, self.cap)
        ledger.grant(Grant("g", "default", "user", "daily", None, usd("5"), "USD", NOON - 1, NOON + 1, "me", "why"))
        assert not says(ledger, [self.cap], [usd("10")])
        assert hold(ledger, "turn", (self.cap, "10")).admitted

    def test_while_a_hold_has_expired(self, ledger: PostgresLedger) -> None:
        hold(ledger, "old", (self.cap, "1"), now=NOON - 2**40, owner=ELSEWHERE)
        assert not says(ledger, [self.cap], [1])

    def test_of_which_a_row_spells_its_currency_strangely(self, ledger: PostgresLedger) -> None:
        keep(ledger, self.cap)
        ledger.append([row(line(cost="1", currency="crédits"))])
        assert not says(ledger, [self.cap], [1])
        assert hold(ledger, "turn", (self.cap, "1")).admitted


def test_a_sum_that_cannot_be_read_is_made_anew(ledger: PostgresLedger) -> None:
    cap = TestItIsNoWhereItIsNotClear.cap
    ledger.append([row(line(cost="1"))])
    keep(ledger, cap)
    ledger._write(lambda run: run("UPDATE kept_sum SET spent = 'nothing'", ()))
    assert hold(ledger, "turn", (cap, "1")).admitted
    assert held(ledger, cap) == (usd("1"), usd("1"))
