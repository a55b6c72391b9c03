"""Every value of a configuration and where it comes from, for `acp-proxy config`. Shows no secret."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.config import ADMIN_FILE, load, without_files
from acp_proxy.config.files import TomlFile, expanded, read, user_file
from acp_proxy.config.layers import FLAGS, of_environment, of_file, of_flags, outside_of
from acp_proxy.config.schema import HUB_TOKEN, KEYS, PREFIX, Key, dotted

DEFAULT = "default"
_ARRAYS = ("budget", "notify")
_DURATIONS = ("admission_timeout", "ask_timeout")
_SECRET = ("secret", "url")  # last parts of keys whose values may hold a password or a token


class Value(Struct, frozen=True):
    key: str  # e.g. ledger.url
    value: Any
    source: str  # "default", FILE:LINE, the name of a variable, or a flag


def values(options: Mapping[str, str], environ: Mapping[str, str], admin_file: Path = ADMIN_FILE) -> Iterator[Value]:
    """In the order of their keys, each as it was written in the source that wins. Raises ConfigError."""
    load(options, environ, admin_file=admin_file)  # a mistake is told as every command tells it
    own_path = expanded(options["config"], environ) if "config" in options else user_file(environ)
    admin, own = (read(path) if path.exists() else None for path in (admin_file, own_path))
    lower = {**_of_file(own), **_of_environment(environ), **_of_flags(options)}
    final = _of_file(admin)
    found = {key: (value, DEFAULT) for key, value in _defaults(environ)}
    found |= {key: lower[key] for key in outside_of(final, lower)} | final
    for key in sorted(found, key=dotted):
        value, source = found[key]
        yield Value(dotted(key), _shown(key, value), source)
    for file in (admin, own):
        if file:
            yield from _tables(file)


def _defaults(environ: Mapping[str, str]) -> Iterator[tuple[Key, Any]]:
    config = without_files({}, {name: value for name, value in environ.items() if not name.startswith(PREFIX)})
    for name in KEYS:
        key = tuple(name.split("."))
        if "*" in key or key[0] in _ARRAYS:
            continue
        match key:
            case (name,):
                yield key, getattr(config, name)
            case (section, name):
                value = getattr(getattr(config, section), name)
                yield key, _duration(value) if name in _DURATIONS else value


def _duration(seconds: float) -> str:
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{int(seconds * 1000)}ms"


def _of_file(file: TomlFile | None) -> dict[Key, tuple[Any, str]]:
    """The text of each key's value; `of_file` knows which tables have their own keys."""
    return {key: (_written(file.table, key), file.where(key)) for key in of_file(file)} if file else {}


def _written(table: Mapping[str, Any], key: Key) -> Any:
    value: Any = table
    for part in key:
        value = value[part]
    return value


def _of_environment(environ: Mapping[str, str]) -> dict[Key, tuple[Any, str]]:
    found: dict[Key, tuple[Any, str]] = {}
    for name, value in environ.items():
        if name.startswith(PREFIX) and name != HUB_TOKEN:
            found |= dict.fromkeys(of_environment({name: value}), (value, name))
    return found


def _of_flags(options: Mapping[str, str]) -> dict[Key, tuple[Any, str]]:
    given = {FLAGS[name]: (name, value) for name, value in options.items() if name in FLAGS}
    return {key: (given[key][1], f"--{given[key][0].replace('_', '-')}") for key in of_flags(options)}


def _tables(file: TomlFile) -> Iterator[Value]:
    """`[[budget]]` and `[[notify]]`, which add up over the files."""
    for array in _ARRAYS:
        tables = file.table.get(array, [])
        for index, table in enumerate(tables if isinstance(tables, list) else []):
            name = table.get("name", index + 1)
            for key, value in table.items():
                if key != "name":
                    yield Value(
                        f"{array}.{name}.{key}", _shown((array, key), value), file.where_nth(index, (array, key))
                    )


def _shown(key: Key, value: Any) -> Any:
    if key[-1] not in _SECRET or not isinstance(value, str):
        return value
    if key == ("ledger", "url"):
        scheme, separator, rest = value.partition("://")
        return value if scheme == "sqlite" else f"{scheme}{separator}{_without_password(rest)}"
    return "…"


def _without_password(address: str) -> str:
    names, at, place = address.rpartition("@")
    user, colon, _ = names.partition(":")
    return f"{user}{':…' if colon else ''}{at}{place.partition('?')[0]}{'?…' if '?' in place else ''}"


def as_text(value: Any) -> str:
    """As TOML has it, on one line."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case dict():
            return "{ " + ", ".join(f"{name} = {as_text(each)}" for name, each in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(as_text, value)) + "]"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
