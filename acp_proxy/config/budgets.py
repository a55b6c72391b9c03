"""The budgets of one configuration file as values. Whether they are kept is not its business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from acp_proxy.config.arrays import Place, checked, tables
from acp_proxy.config.checks import currency, listed
from acp_proxy.config.files import TomlFile
from acp_proxy.core.budget import Budget, Layer, Limit
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.scope import DIMENSIONS, Scope
from acp_proxy.core.windows import Window

FLAG = "--budget"  # the name of the budget that the flag gives
_LIMIT = (
    'expected { amount = "30", currency = "USD" }, { tokens = 2_000_000 }, { turns = 200 } or '
    '{ plan = "five_hour", percent = 80 }'
)
_SCOPE = 'expected { team = "core" } or the like; of user, team, project, agent and model'
_RATES = 'expected { USD = "0.92" } or the like: what one of another currency counts as in that of the limit'
_PLAIN = ("per", "mode", "thresholds", "on_exceed", "on_unpriced", "on_unavailable", "hold")


_OF_PLANS = ("name", "limit", "scope", "mode", "on_overage")


def budgets_of(file: TomlFile, layer: Layer) -> tuple[Budget | PlanBudget, ...]:
    """Every `[[budget]]` of the file, in its order. Raises ConfigError."""
    named: dict[str, Budget | PlanBudget] = {}
    for index, table in enumerate(tables(file, "budget")):
        place = Place(file, "budget", index)
        values = checked(table, place, {("limit",): _LIMIT, ("scope",): _SCOPE, ("rates",): _RATES})
        if "name" not in values:
            raise place.wrong("name", "expected a name; each budget needs one of its own")
        of_plan = any(key in values for key in ("limit.plan", "limit.percent"))
        budget = (
            _plan_budget(values, layer, place) if of_plan else _budget(values, table.get("hold", "auto"), layer, place)
        )
        if budget.name in named:
            raise place.wrong("name", f'"{budget.name}" is the name of another budget of this file')
        named[budget.name] = budget
    return tuple(named.values())


def flag_budget(nano: int) -> Budget:
    """`--budget`: US dollars over all sessions of this process."""
    return Budget(FLAG, "flag", Window("total"), Limit(nano, "USD"), Scope(without_plans=True))


def _budget(values: Mapping[str, Any], hold: object, layer: Layer, place: Place) -> Budget:
    """`hold` is as it was written: text is an amount of money."""
    if "window" not in values:
        raise place.wrong("window", "expected a window, such as day or month")
    limit = _limit(values, place)
    if "count_plans" in values and not limit.is_money:
        raise place.wrong("count_plans", f"expected none: a limit of {limit.unit} counts plans, too")
    if "on_overage" in values:
        of_plan = '{ plan = "five_hour", percent = 80 }'
        raise place.wrong("on_overage", f"expected a limit of a plan beside it, such as {of_plan}")
    if hold != "auto" and isinstance(hold, str) is not limit.is_money:
        of = f'an amount of {limit.unit} in quotes, such as "0.50"' if limit.is_money else f"a number of {limit.unit}"
        raise place.wrong("hold", f'expected "auto" or {of}')
    return Budget(
        name=values["name"],
        layer=layer,
        window=_window(values, place),
        limit=limit,
        scope=replace(_scope(values), without_plans=limit.is_money and not values.get("count_plans", False)),
        zone=values.get("timezone", "UTC"),
        rates=_rates(values, limit, place),
        count_plans=values.get("count_plans", False),
        **{key: values[key] for key in _PLAIN if key in values},
    )


def _plan_budget(values: Mapping[str, Any], layer: Layer, place: Place) -> PlanBudget:
    """Its window is the plan's, and whose it is the account's: there is nothing to choose."""
    match {key.removeprefix("limit."): value for key, value in values.items() if key.startswith("limit.")}:
        case {"plan": str(window), "percent": int(percent), **rest} if not rest:
            pass
        case _:
            raise place.wrong("limit", _LIMIT)
    for key in values:
        if key.partition(".")[0] not in _OF_PLANS:
            raise place.wrong(key, f"expected none: a limit of a plan has {listed(_OF_PLANS[2:], 'and')} beside it")
    return PlanBudget(
        name=values["name"],
        layer=layer,
        window=window,
        percent=percent,
        scope=_scope(values),
        **{key: values[key] for key in ("mode", "on_overage") if key in values},
    )


def _scope(values: Mapping[str, Any]) -> Scope:
    return Scope(**{key: values[f"scope.{key}"] for key in DIMENSIONS if f"scope.{key}" in values})


def _window(values: Mapping[str, Any], place: Place) -> Window:
    window: Window = values["window"]
    if "week_start" not in values:
        return window
    if window.name != "week":
        raise place.wrong("week_start", f'expected window = "week" beside it, not "{window.text}"')
    return replace(window, week_start=values["week_start"])


def _rates(values: Mapping[str, Any], limit: Limit, place: Place) -> tuple[tuple[str, int], ...]:
    rates = {key.removeprefix("rates."): value for key, value in values.items() if key.startswith("rates.")}
    if rates and not limit.is_money:
        raise place.wrong("rates", f"expected none: a limit of {limit.unit} counts no money")
    for name in rates:
        try:
            currency(name)
        except ValueError as error:
            raise place.wrong("rates", str(error)) from None
    if limit.unit in rates:
        raise place.wrong("rates", f"expected currencies other than that of the limit, {limit.unit}")
    return tuple(sorted(rates.items()))


def _limit(values: Mapping[str, Any], place: Place) -> Limit:
    match {key.removeprefix("limit."): value for key, value in values.items() if key.startswith("limit.")}:
        case {"amount": int(nano), "currency": str(unit), **rest} if not rest:
            return Limit(nano, unit)
        case {"amount": _, **rest} if not rest:
            raise place.wrong("limit", 'expected a currency beside the amount, such as currency = "USD"')
        case {"tokens": int(number), **rest} if not rest:
            return Limit(number, "tokens")
        case {"turns": int(number), **rest} if not rest:
            return Limit(number, "turns")
    raise place.wrong("limit", _LIMIT)
