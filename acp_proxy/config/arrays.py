"""Arrays of tables, `[[budget]]` and `[[notify]]`: the values of each by their keys, checked, and places for errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from acp_proxy.config.files import ConfigError, TomlFile
from acp_proxy.config.schema import Key, check_of, children, dotted, unknown


class Place(Struct, frozen=True):
    """One table of the array `name` in a file."""

    file: TomlFile
    name: str
    index: int

    def wrong(self, key: str, problem: str) -> ConfigError:
        path = (self.name, *key.split("."))
        return ConfigError(f"{self.file.where_nth(self.index, path)}: {dotted(path)}: {problem}")


def tables(file: TomlFile, name: str) -> list[Mapping[str, Any]]:
    """The tables of the array `name`. Raises ConfigError if it is no array of tables."""
    found = file.table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise ConfigError(f"{file.where((name,))}: {name}: expected tables, [[{name}]]")
    return found


def checked(table: Mapping[str, Any], place: Place, shapes: Mapping[Key, str]) -> dict[str, Any]:
    """The values as the program uses them, `limit.amount` in one key; `shapes` say what tables within must be."""
    return dict(_checked(table, place, shapes, ()))


def _checked(
    table: Mapping[str, Any], place: Place, shapes: Mapping[Key, str], above: Key
) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = (*above, name)
        path = (place.name, *key)
        check = check_of(path)
        if isinstance(value, dict) and children(path):
            yield from _checked(value, place, shapes, key)
        elif check is None:
            expected = shapes.get(key, f"expected a table, [{dotted(path)}]")
            raise place.wrong(".".join(key), expected if children(path) else unknown(path))
        else:
            try:
                yield ".".join(key), check(value)
            except ValueError as error:
                raise place.wrong(".".join(key), str(error)) from None
