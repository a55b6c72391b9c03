"""The check of `doctor` for budgets that count nothing, refuse everything, or can be evaded. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from acp_proxy.budget.unmatched import names_nobody
from acp_proxy.config import Config
from acp_proxy.config.schema import Key, dotted
from acp_proxy.config.values import Pricing
from acp_proxy.core.budget import Budget
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.money import budget_text, decimal_text
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.ledger.budgets import BudgetReader

_FILES: tuple[Literal["user"], Literal["admin"]] = ("user", "admin")
_COUNTING = frozenset({"prices", "aliases", "agents", "pricing"})  # what a turn costs, and how it is read


def budget_troubles(config: Config, ledger: LedgerReader) -> Iterator[tuple[Budget, list[str]]]:
    """Each budget with what is wrong with it, in the order of the configuration."""
    if not config.budgets:
        return
    organisation = config.identity.organisation
    unmatched = list(names_nobody(config.budgets, ledger, organisation))
    rows = Query(where=(("organisation", organisation),))
    currencies = {cost.currency for sums in ledger.summed(rows, ()) for cost in sums.costs}
    for budget in config.budgets:
        without_rows = [text for each, text in unmatched if each is budget]
        yield budget, [*_amounts(budget, currencies), *without_rows, *_ways_around(budget, config)]


def plan_troubles(config: Config, ledger: BudgetReader) -> Iterator[tuple[PlanBudget, str]]:
    """Each budget on a plan with what is not known of its window; empty where it is known."""
    if not config.plan_budgets:
        return
    states = ledger.plans(config.identity.organisation)
    for budget in config.plan_budgets:
        told = {state.told.window for state in states if budget.scope.accepts("agent", state.agent)}
        if budget.window in told:
            yield budget, ""
            continue
        others = f"told were {', '.join(sorted(told))}" if told else "no agent has told of a plan"
        yield budget, f"how much is used is not known, {others}: it refuses nobody"


def in_words(budget: Budget) -> str:
    """`$30.00, day for each user, Europe/Berlin, enforce`."""
    limit = budget.limit
    amount = budget_text(limit.amount, limit.unit, 0) if limit.is_money else f"{limit.amount:,} {limit.unit}"
    per = f" for each {budget.per}" if budget.per else ""
    rates = ", ".join(f"1 {currency} = {decimal_text(nano)}" for currency, nano in budget.rates)
    of_others = f" ({rates})" if rates else ""
    day = budget.window.week_start
    since = "" if day == "monday" else f" from {day.title()}"
    return f"{amount}{of_others}, {budget.window.text}{since}{per}, {budget.zone}, {budget.mode}"


def _amounts(budget: Budget, currencies: set[str]) -> Iterator[str]:
    limit, floor = budget.limit, HoldSize.of(budget).floor
    if budget.mode == "enforce" and not limit.amount:
        yield "a limit of 0 refuses everything"
    elif budget.mode == "enforce" and limit.amount < floor:
        least = budget_text(floor, limit.unit, 0) + ("" if limit.is_money else f" {limit.unit}")
        yield f"its limit is below {least}, the least that a prompt holds: it refuses everything"
    if limit.is_money and currencies and currencies.isdisjoint(budget.units):
        yield f"it counts {' and '.join(budget.units)}, and the ledger has only {', '.join(sorted(currencies))}"


def _ways_around(budget: Budget, config: Config) -> Iterator[str]:
    """An administrator's limit is as good as what the administrator's file says about who pays, and where."""
    if budget.layer != "admin" or budget.mode != "enforce":
        return
    who = {name for name in ("user", "team", "project") if budget.per == name or budget.scope.texts.get(name)}
    deciding = {"ledger.url", "identity.organisation", *(f"identity.{name}" for name in who)}
    if "project" in who:
        deciding.remove("identity.project")  # it follows from the working directory
    if missing := sorted(deciding - config.final):
        are = "is" if len(missing) == 1 else "are"
        yield f"{' and '.join(missing)} {are} not set in the administrator's file, so users can choose"
    if budget.per == "agent" or budget.scope.agent:
        yield "it depends on the agent's name, which the agent reports and --agent overrides"
    if "project" in who and "identity.project" not in config.final:
        yield "it depends on the project's name, which is a directory's or its origin's, and --project overrides"
    if not config.run.estimate and "run.estimate" not in config.final:
        yield "the user has set run.estimate = false: agents that report no usage count nothing"
    of_user, of_admin = ({key[:2] for key in config.by_file[layer] if key[0] in _COUNTING} for layer in _FILES)
    in_force = _in_force(config)
    if own := sorted(dotted(key) for key in of_user - of_admin if key in in_force or key[0] == "pricing"):
        yield f"the user's own file sets {' and '.join(own)}, which changes what it counts"
    if told := sorted(map(dotted, in_force - of_user - of_admin)):
        yield f"the environment sets {' and '.join(told)}, which changes what it counts"


def _in_force(config: Config) -> set[Key]:
    """The keys in force that change how turns are counted; a kind of cache write only if not the default."""
    named = (("prices", config.pricing.prices), ("aliases", config.aliases), ("agents", config.agents))
    found: set[Key] = {(table, name) for table, names in named for name in names}
    return found if config.pricing.cache_write == Pricing().cache_write else {*found, ("pricing", "cache_write")}
