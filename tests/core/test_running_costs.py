"""What a running turn has cost so far: by what the agent has told since it began, and by the models that had it."""

from __future__ import annotations

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import ContextChanged
from acp_proxy.core.money import Money
from acp_proxy.core.running_costs import RunningCosts
from acp_proxy.core.scope import Scope
from tests.core.accounts import usd

OPUS, HAIKU = Scope(model=("opus*",)), Scope(model=("haiku",))


def told(cost: str, model: str | None, *, restored: bool = False) -> ContextChanged:
    return ContextChanged(1, "s", SessionState(costs=(Money.of(cost, "USD"),), model=model), restored=restored)


def hear(costs: RunningCosts, *events: ContextChanged) -> None:
    for event in events:
        costs.hear(event)


def test_each_model_of_a_turn_has_the_costs_that_came_while_it_was_chosen() -> None:
    costs = RunningCosts()
    hear(costs, told("1", "opus"))
    costs.begin("s")
    hear(costs, told("1.2", "opus"), told("1.5", "haiku"), told("1.6", "haiku"), told("2", "opus-5"))
    assert costs.of("s") == {"USD": usd("1")}
    assert costs.of("s", OPUS) == {"USD": usd("0.6")}
    assert costs.of("s", HAIKU) == {"USD": usd("0.4")}
    assert costs.of("s", Scope(model=("gpt",))) == {}


def test_a_model_that_is_named_late_has_had_the_turn_from_its_start() -> None:
    costs = RunningCosts()
    costs.begin("s")
    hear(costs, told("0.2", None), told("0.3", "opus"))
    assert costs.of("s", OPUS) == {"USD": usd("0.3")}


def test_the_next_turn_begins_with_nothing_of_any_model() -> None:
    costs = RunningCosts()
    costs.begin("s")
    hear(costs, told("0.2", "opus"), told("0.3", "haiku"))
    costs.begin("s")
    assert (costs.of("s"), costs.of("s", OPUS)) == ({}, {})
    costs.forget(["s"])
    hear(costs, told("5", "haiku"))
    costs.begin("s")
    assert costs.of("s") == {}


def test_what_a_ledger_knew_of_the_session_is_no_models() -> None:
    costs = RunningCosts()
    costs.begin("s")
    hear(costs, told("0.2", "opus"), told("9.2", "opus", restored=True), told("9.3", "haiku"))
    assert (costs.of("s", OPUS), costs.of("s", HAIKU)) == ({"USD": usd("0.2")}, {"USD": usd("0.1")})


def test_a_session_that_takes_the_id_of_a_closed_one_begins_with_nothing_of_it() -> None:
    costs = RunningCosts()
    hear(costs, told("1", "opus"))
    costs.begin("s")
    hear(costs, told("2", "opus"), told("3", "haiku"))
    costs.forget(["s"])
    hear(costs, told("0.2", "opus"))
    assert (costs.of("s", OPUS), costs.of("s", HAIKU)) == ({"USD": usd("0.2")}, {})
    costs.forget(["s"])
    costs.begin("s")
    hear(costs, told("0.4", "haiku"))
    assert (costs.of("s", OPUS), costs.of("s", HAIKU)) == ({}, {"USD": usd("0.4")})
