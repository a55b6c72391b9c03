"""The values of one source by key (a file, the environment, flags), and which of them the administrator permits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acp_proxy.config.files import ConfigError, TomlFile
from acp_proxy.config.schema import (
    HUB_TOKEN,
    PREFIX,
    Key,
    check_of,
    children,
    dotted,
    of_text,
    pattern_of,
    unknown,
    variable_meant,
)

FLAGS: Mapping[str, Key] = {
    "ledger": ("ledger", "url"),
    "agent": ("run", "agent"),
    "user": ("identity", "user"),
    "team": ("identity", "team"),
    "project": ("identity", "project"),
    "budget": ("run", "budget"),
    "no_summary": ("run", "summary"),
    "log": ("log", "file"),
    "log_level": ("log", "level"),
    "host": ("serve", "host"),
    "port": ("serve", "port"),
    "token_file": ("serve", "token_file"),
}

Settings = dict[Key, Any]
"""Values as the program uses them, by key. What stands in arrays of tables is not among them."""


def of_file(file: TomlFile | None) -> Settings:
    if file is None:
        return {}
    settings = dict(_settings(file, file.table, ()))
    if ("ledger", "url") in settings:
        settings["ledger", "url"] = _beside(file, file.table["ledger"]["url"], settings["ledger", "url"])
    _refuse_two_of_one(file)
    return settings


def _beside(file: TomlFile, written: str, url: str) -> str:
    """The URL of a ledger; a relative path in a file is relative to the file, as the current directory changes."""
    if "://" in written or written.startswith(("/", "~")):
        return url
    return f"sqlite:///{file.path.absolute().parent / written}"


def of_environment(environ: Mapping[str, str]) -> Settings:
    """`ACP_PROXY_LEDGER__URL` is ledger.url; an empty variable counts as not set."""
    settings: Settings = {}
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and value and variable != HUB_TOKEN:
            key = tuple(part.lower() if part.isupper() else part for part in variable[len(PREFIX) :].split("__"))
            if key[0] == "budget":
                raise ConfigError(
                    f"{variable}: budgets are set in a file, [[budget]]; only {PREFIX}RUN__BUDGET is a variable"
                )
            if key[0] == "notify":
                raise ConfigError(
                    f"{variable}: channels are set in a file, as [[notify]]; its url_file may name another"
                )
            check = check_of(key)
            if check is None and (meant := variable_meant(variable)):
                raise ConfigError(f"{variable}: unknown key; did you mean {meant}?")
            settings[key] = _checked(key, of_text(check, value) if check else value, variable)
    return settings


def of_flags(options: Mapping[str, str]) -> Settings:
    settings: Settings = {}
    for option, key in FLAGS.items():
        if option in options:
            check = check_of(key)
            value = False if option == "no_summary" else of_text(check, options[option]) if check else None
            settings[key] = _checked(key, value, f"--{option.replace('_', '-')}")
    return settings


def outside_of(final: Settings, lower: Settings) -> Settings:
    """The values that the administrator's file does not set. A price or an agent in that file is final as a whole."""
    both = {key[0] for key in final} & {key[0] for key in lower}
    closed = {_units(key)[0] for key in final if key[0] in both}
    return {key: value for key, value in lower.items() if key[0] not in both or closed.isdisjoint(_units(key))}


def _units(key: Key) -> list[Key]:
    """What is final as a whole: the key's own, and for a model those that apply to its name, whose spellings differ."""
    pattern = pattern_of(key)
    if "*" not in pattern:
        return [key]
    at = pattern.index("*")
    if key[0] not in ("prices", "aliases"):
        return [key[: at + 1]]
    from acp_proxy.core.models import alias_names, without_lab  # where both files tell of these

    return [(key[0], without_lab(name) if key[0] == "prices" else name) for name in alias_names(key[at])]


def _settings(file: TomlFile, table: Mapping[str, Any], above: Key) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        key = (*above, name)
        if key in (("budget",), ("notify",)):
            continue  # they add up, and have a reader of their own
        if isinstance(value, dict) and children(key):
            yield from _settings(file, value, key)
        else:
            yield key, _checked(key, value, file)


def _refuse_two_of_one(file: TomlFile) -> None:
    """Spellings of one model with different prices or aliases: of these the catalog would take the last."""
    for table in ("prices", "aliases"):
        names = file.table.get(table, {})
        if len(names) < 2:
            continue
        from acp_proxy.core.models import canonical  # few say so much of prices

        first: dict[str, str] = {}
        for name, value in names.items():
            other = first.setdefault(canonical(name.strip()) if table == "prices" else name.strip().lower(), name)
            if names[other] != value:
                problem = f"expected each model once; {dotted((table, other))} is the same, and says something else"
                raise ConfigError(f"{_prefix((table, name), file)}: {problem}")


def _checked(key: Key, value: object, source: TomlFile | str) -> Any:
    """The value as the program uses it. `source` is a file, or the name of a variable or flag."""
    check = check_of(key)
    if isinstance(value, dict) and "*" in pattern_of(key) and (check is None or key[0] == "aliases"):
        # Many models have a dot in their name: TOML takes what follows it for a table.
        key = _deepest(key, value)
        meant = dotted((key[0], ".".join(key[1:])))
        raise ConfigError(f"{_prefix(key, source)}: expected quotes around a name with a dot, as in {meant}")
    if check is None:
        problem = f"expected a table, [{dotted(key)}]" if children(key) else unknown(key)
        raise ConfigError(f"{_prefix(key, source)}: {problem}")
    try:
        return check(value)
    except ValueError as error:
        raise ConfigError(f"{_prefix(key, source)}: {error}") from None


def _deepest(key: Key, value: object) -> Key:
    """`prices.glm-5.2.1` for what TOML has below `prices.glm-5.2`: all parts of the name that it took apart."""
    while isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if key[0] != "aliases" and not isinstance(inner, dict):
            break
        key, value = (*key, name), inner
    return key


def _prefix(key: Key, source: TomlFile | str) -> str:
    return source if isinstance(source, str) else f"{source.where(key)}: {dotted(key)}"
