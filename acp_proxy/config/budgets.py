"""The budgets of one configuration file as values. Whether they are kept is not its business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acp_proxy.config.files import ConfigError, TomlFile
from acp_proxy.config.schema import Key, check_of, children, dotted, unknown
from acp_proxy.core.budget import Budget, Layer, Limit
from acp_proxy.core.scope import DIMENSIONS, Scope
from acp_proxy.core.windows import Window

FLAG = "--budget"  # the name of the budget that the flag gives
_LIMIT = 'expected { amount = "30", currency = "USD" }, { tokens = 2_000_000 } or { turns = 200 }'
_PLAIN = ("per", "mode", "thresholds", "on_exceed", "on_unpriced", "on_unavailable", "hold")


def budgets_of(file: TomlFile, layer: Layer) -> tuple[Budget, ...]:
    """Every `[[budget]]` of the file, in its order. Raises ConfigError."""
    tables = file.table.get("budget", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{file.where(('budget',))}: budget: expected tables, [[budget]]")
    named: dict[str, Budget] = {}
    for index, table in enumerate(tables):
        place = _Place(file, index)
        budget = _budget(dict(_checked(table, (), place)), layer, place)
        if budget.name in named:
            raise place.wrong("name", f'"{budget.name}" is the name of another budget of this file')
        named[budget.name] = budget
    return tuple(named.values())


def flag_budget(nano: int) -> Budget:
    """`--budget`: US dollars over all sessions of this process."""
    return Budget(FLAG, "flag", Window("total"), Limit(nano, "USD"))


@dataclass(frozen=True, slots=True)
class _Place:
    """One of the budgets of a file."""

    file: TomlFile
    index: int

    def wrong(self, key: str, problem: str) -> ConfigError:
        path = ("budget", *key.split("."))
        return ConfigError(f"{self.file.where_nth(self.index, path)}: {dotted(path)}: {problem}")


def _checked(table: Mapping[str, Any], above: Key, place: _Place) -> Iterator[tuple[str, Any]]:
    """The values by their keys, `limit.amount` in one."""
    for name, value in table.items():
        key = (*above, name)
        path = ("budget", *key)
        check = check_of(path)
        if isinstance(value, dict) and children(path):
            yield from _checked(value, key, place)
        elif check is None:
            expected = _LIMIT if key == ("limit",) else f"expected a table, [{dotted(path)}]"
            raise place.wrong(".".join(key), expected if children(path) else unknown(path))
        else:
            try:
                yield ".".join(key), check(value)
            except ValueError as error:
                raise place.wrong(".".join(key), str(error)) from None
            if key == ("hold",) and value != "auto":
                yield "hold is money", isinstance(value, str)


def _budget(values: Mapping[str, Any], layer: Layer, place: _Place) -> Budget:
    if "name" not in values:
        raise place.wrong("name", "expected a name; each budget needs one of its own")
    if "window" not in values:
        raise place.wrong("window", "expected a window, such as day or month")
    limit = _limit(values, place)
    if values.get("hold is money", limit.is_money) is not limit.is_money:
        of = f'an amount of {limit.unit} in quotes, such as "0.50"' if limit.is_money else f"a number of {limit.unit}"
        raise place.wrong("hold", f'expected "auto" or {of}')
    return Budget(
        name=values["name"],
        layer=layer,
        window=values["window"],
        limit=limit,
        scope=Scope(**{key: values[f"scope.{key}"] for key in DIMENSIONS if f"scope.{key}" in values}),
        zone=values.get("timezone", "UTC"),
        **{key: values[key] for key in _PLAIN if key in values},
    )


def _limit(values: Mapping[str, Any], place: _Place) -> Limit:
    match {key.removeprefix("limit."): value for key, value in values.items() if key.startswith("limit.")}:
        case {"amount": int(nano), "currency": str(currency), **rest} if not rest:
            return Limit(nano, currency)
        case {"amount": _, **rest} if not rest:
            raise place.wrong("limit", 'expected a currency beside the amount, such as currency = "USD"')
        case {"tokens": int(number), **rest} if not rest:
            return Limit(number, "tokens")
        case {"turns": int(number), **rest} if not rest:
            return Limit(number, "turns")
    raise place.wrong("limit", _LIMIT)
