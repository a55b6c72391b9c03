"""What prompts hold, by what the ledger knows of turns like them: a user's own of the model, else all of the agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.interceptors.budgets.sizes import Sizes
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from harness.rows import ALICE, BOB, line, row
from tests.core.accounts import usd
from tests.ledger.holds import CAP, account

BOBS = replace(BOB, agent=ALICE.agent)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as opened:
        yield opened


def learnt(sizes: Sizes, ledger: BudgetLedger, model: str | None, *, anew: bool = False) -> HoldSize:
    sizes.learn(ledger, [CAP], ALICE, model, anew=anew)
    return sizes.of(CAP, ALICE, model)


def of(*costs: str) -> HoldSize:
    return HoldSize.of(CAP.budget, [usd(cost) for cost in costs])


def test_the_users_own_turns_of_the_model_say_it(ledger: BudgetLedger) -> None:
    ledger.append([row(line("opus", "0.02")), row(line("opus", "0.2"), origin=BOBS), row(line("haiku", "0.3"))])
    assert learnt(Sizes(), ledger, "opus") == of("0.02")


@pytest.mark.parametrize("model", ["sonnet", None])
def test_without_any_those_of_all_users_of_the_agent_do(ledger: BudgetLedger, model: str | None) -> None:
    ledger.append([row(line("opus", "0.02")), row(line("opus", "0.2"), origin=BOBS)])
    ledger.append([row(line("opus", "0.3"), origin=replace(ALICE, agent="another"))])
    assert learnt(Sizes(), ledger, model) == of("0.02", "0.2")


def test_they_are_read_again_when_a_turn_has_ended_and_not_before(ledger: BudgetLedger) -> None:
    sizes = Sizes()
    ledger.append([row(line("opus", "0.02"))])
    assert learnt(sizes, ledger, "opus") == of("0.02")
    ledger.append([row(line("opus", "0.2"))])
    assert learnt(sizes, ledger, "opus") == of("0.02")
    assert learnt(sizes, ledger, "opus", anew=True) == of("0.02", "0.2")


def test_what_is_configured_needs_no_turns(ledger: BudgetLedger) -> None:
    fixed = account(replace(CAP.budget, hold=usd("0.5")))
    ledger.append([row(line("opus", "0.02"))])
    sizes = Sizes()
    sizes.learn(ledger, [fixed], ALICE, "opus")
    assert sizes.of(fixed, ALICE, "opus").wanted == usd("0.5")
