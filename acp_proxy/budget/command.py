"""`acp-proxy budget …`: from the arguments to the text of the answer. Writes to no stream.

Imports for a single action are local to it: `list` runs often and must start fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.budget import listing, on_plans
from acp_proxy.budget.accounts import accounts_of
from acp_proxy.budget.central import known, lent, which_hold
from acp_proxy.budget.unmatched import names_nobody
from acp_proxy.config import Config, load, load_to_answer
from acp_proxy.config.files import expanded, read
from acp_proxy.core.budget import Account, Per, Standing
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import Bounds
from acp_proxy.ledger import Query, Tell, open_or_make, open_reader
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.system.errors import UsageError
from acp_proxy.text import table
from acp_proxy.text.figures import clean
from acp_proxy.text.times import Zone

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger, BudgetReader

    _Action = Callable[[BudgetReader, argparse.Namespace, Config, "Place"], tuple[int, str]]

NO_BUDGETS = "No budget is configured: a [[budget]] with a name, a window and a limit makes one.\n"


class Place(Struct, frozen=True):
    """The place and time of the command. `width` is the terminal's, None if stdout is no terminal.

    `tell` is called if there is no ledger yet.
    """

    now: int  # Unix ns
    zone: Zone
    cwd: Path | None
    environ: Mapping[str, str]
    width: int | None
    tell: Tell | None


def main(arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    """Exit status and answer. `since` among the arguments is Unix ns already. Raises UsageError and LedgerError."""
    if arguments.action in ("request", "requests", "approve", "deny"):
        from acp_proxy.budget import requests

        return 0, requests.answered(arguments, config, place)
    if arguments.action == "history":
        return 0, _history(arguments, config, place)
    if arguments.action == "grant":
        with closing(open_or_make(config.ledger.url, place.tell)) as ledger:
            return _grant(ledger, arguments, config, place)
    with closing(open_reader(config.ledger.url, tell=place.tell)) as reader:
        return _ACTIONS[arguments.action](reader, arguments, config, place)


def proposed(options: Mapping[str, str], environ: Mapping[str, str]) -> Config:
    """The budgets of the file named by `config`; ledger and identity as ever, where that file says nothing of them.

    Raises ConfigError.
    """
    config = load_to_answer(options, environ)
    if "config" not in options:
        return config
    said = read(expanded(options["config"], environ)).table
    ever = load({name: value for name, value in options.items() if name != "config"}, environ)
    if "ledger" not in said:
        config = replace(config, ledger=ever.ledger)
    return config if "identity" in said else replace(config, identity=ever.identity)


def _history(arguments: argparse.Namespace, config: Config, place: Place) -> str:
    if not is_hub(config.ledger.url):
        files = " and ".join(map(str, config.files)) or "a configuration file"
        raise UsageError(f"budget history: only a hub keeps one; here budgets are those of {files}")
    from acp_proxy.budget import at_hub

    return at_hub.history(config.ledger.url, arguments.name, place, as_json=arguments.json)


def _list(ledger: BudgetReader, arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    found = known(ledger, config, place.cwd)
    accounts = found.answered(accounts_of(ledger, found.budgets, found.own, place.now))
    standings = ledger.standing(accounts, place.now)
    plans = on_plans.standings(ledger, found.plan_budgets, found.own, place.now)
    at_machines = lent(ledger, config)
    if arguments.json:
        return 0, listing.as_json(standings, plans, at_machines)
    if not standings:
        return 0, _table_of_plans(plans, place) if plans else _none(config)
    notes = [
        clean(f'Nothing counts in budget "{budget.name}" so far: {why}.')
        for budget, why in names_nobody(found.budgets if found.sees_all else (), ledger, found.own.organisation)
    ]
    notes += which_hold(found.budgets, config.ledger.url)
    return 0, "\n".join(
        (_table(standings, place, notes, at_machines), *([_table_of_plans(plans, place)] if plans else []))
    )


def _none(config: Config) -> str:
    if is_hub(config.ledger.url):
        return "No budget is about you, neither of the hub nor of this machine's configuration.\n"
    return NO_BUDGETS


def _table(
    standings: Sequence[Standing], place: Place, more: Sequence[str] = (), lent: Mapping[str, int] = listing.NOTHING
) -> str:
    if place.width is None:
        return listing.plain(standings, more, lent)
    return listing.coloured(standings, place.width, place.environ, more, lent)


def _table_of_plans(found: Sequence[PlanStanding], place: Place) -> str:
    if place.width is None:
        return on_plans.plain(found, place.now, place.zone)
    return on_plans.coloured(found, place.now, place.zone, place.width, place.environ)


def _check(ledger: BudgetReader, arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    from acp_proxy.budget import check
    from acp_proxy.policy.prices import catalog_here
    from acp_proxy.report.nothing import not_known  # a mistyped name would show other budgets

    catalog = catalog_here(config, place.environ)
    given = {name: value for name in get_args(Per) if (value := getattr(arguments, name)) is not None}
    for name, value in {**given, "model": arguments.model}.items():
        if value == "":
            raise UsageError(f"--{name}: expected a name")
    model = catalog.concrete(arguments.model)
    found = known(ledger, config, place.cwd)
    subject = replace(found.own, **given, model=model)
    unpriced = model is not None and catalog.price(model, Usage(input=1, output=1), place.now).cost is None
    if denied := on_plans.check(ledger, found.plan_budgets, subject, place.now):
        from acp_proxy.text.plan_budgets import refusal as plan_refusal

        return check.REFUSED, f"{clean(plan_refusal(denied, place.now, place.zone))}\n"
    answer = check.check(
        ledger,
        found.budgets,
        subject,
        place.now,
        unpriced=unpriced,
        asks=is_hub(config.ledger.url),
        table=lambda found: _table(found, place),
    )
    typed = [("model", model)] if model and model == arguments.model else []  # an alias is in no row
    named = (*given.items(), *typed)
    unknown = "".join(f"The ledger has {text}\n" for text in not_known(ledger, found.own.organisation, named))
    plans = on_plans.standings(ledger, found.plan_budgets, subject, place.now) if not answer.status else []
    more = [_table_of_plans(plans, place)] if plans else []
    return answer.status, "\n".join((answer.text, *more, *([unknown] if unknown else [])))


def _grant(ledger: BudgetLedger, arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    from acp_proxy.budget import grants
    from acp_proxy.report.nothing import not_known  # a grant to a mistyped name would help no budget

    asked = grants.Asked(
        budget=arguments.name,
        amount=arguments.amount,
        duration=arguments.duration,
        reason=arguments.reason,
        layer=arguments.layer,
        values={name: value for name in get_args(Per) if (value := getattr(arguments, f"for_{name}")) is not None},
    )
    found = known(ledger, config, place.cwd)
    budget, grant = grants.granted(asked, found.budgets, found.own, place.now)
    ledger.grant(grant)
    named = [(name, value) for name, value in asked.values.items() if value != grants.EACH]
    unknown = (f"The ledger has {text}\n" for text in not_known(ledger, grant.organisation, named))
    return 0, "".join((grants.confirmation(grant, budget, place.zone), *unknown))


def _grants(ledger: BudgetReader, arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    from acp_proxy.budget import grants

    found = ledger.grants(config.identity.organisation)
    budgets = known(ledger, config, place.cwd).budgets
    if arguments.json:
        return 0, grants.as_json(found, budgets, place.now)
    if not found:
        return 0, "Nothing was granted yet.\n"
    columns = grants.columns(found, budgets, place.zone, place.now)
    if place.width is None:
        return 0, table.plain(columns)
    return 0, table.coloured(columns, (), None, place.width, place.environ)


def _simulate(ledger: BudgetReader, arguments: argparse.Namespace, config: Config, place: Place) -> tuple[int, str]:
    from acp_proxy.budget import simulation
    from acp_proxy.budget.replay import reaches_back, replay

    budgets = [budget for budget in config.budgets if budget.layer != "flag"]
    if not budgets and not arguments.json:
        return 0, NO_BUDGETS
    organisation = (("organisation", config.identity.organisation),)
    begin = reaches_back(budgets, arguments.since)

    def spent_before(account: Account) -> int:
        if begin is None or account.bounds.start is not None or account.budget.window.name == "turn":
            return 0
        (standing,) = ledger.standing([replace(account, bounds=Bounds(end=begin))], place.now)
        return standing.spent

    found = replay(ledger.rows(Query(since=begin, where=organisation)), budgets, arguments.since, spent_before)
    if arguments.json:
        return 0, simulation.as_json(found)
    if place.width is None:
        return 0, simulation.plain(found)
    return 0, simulation.coloured(found, place.width, place.environ)


_ACTIONS: Mapping[str, _Action] = {
    "list": _list,
    "check": _check,
    "grants": _grants,
    "simulate": _simulate,
}
