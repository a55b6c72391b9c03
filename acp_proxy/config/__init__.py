"""The configuration as values: defaults, the user's file, the environment and flags, under the administrator's word.

Reads files, and starts, opens and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from acp_proxy.config.files import ConfigError, TomlFile, expanded, read, state_dir, user_file
from acp_proxy.config.schema import (
    PREFIX,
    Key,
    check_of,
    children,
    dotted,
    of_text,
    pattern_of,
    unknown,
)

if TYPE_CHECKING:
    from acp_proxy.config.channels import Channel
    from acp_proxy.core.budget import Budget

__all__ = ["Config", "ConfigError", "load"]

ADMIN_FILE = Path("/etc/acp-proxy/config.toml")
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

Layer = dict[Key, Any]


class Identity(Struct, frozen=True):
    """Who pays. `project` is None when it is to be found by `project.project_of`."""

    user: str
    team: str | None = None
    organisation: str = "default"
    project: str | None = None


class Run(Struct, frozen=True):
    agent: str | None = None  # in place of the name that the agent reports
    summary: bool = True
    estimate: bool = True  # characters / 4 for agents that report nothing
    budget: int | None = None  # nano US dollars over all sessions of this process; also in `Config.budgets`


class Log(Struct, frozen=True):
    file: Path | None = None
    level: Literal["debug", "info", "warning", "error"] = "warning"


class LedgerChoice(Struct, frozen=True):
    url: str  # with an absolute path: a journal names the ledger that it was written for
    on_unavailable: Literal["open", "closed", "local"] = "local"
    admission_timeout: float = 0.25  # seconds


class Price(Struct, frozen=True):
    """US dollars per million tokens as decimal text, `context` in tokens. None is unknown."""

    input: str | None = None
    output: str | None = None
    cached_read: str | None = None
    cached_write: str | None = None
    cached_write_1h: str | None = None
    context: int | None = None


class Pricing(Struct, frozen=True):
    cache_write: Literal["5m", "1h"] = "5m"
    prices: Mapping[str, Price] = field(default_factory=dict)


class AgentCounts(Struct, frozen=True):
    """How an agent counts; None where the user did not say."""

    scope: Literal["turn", "session", "last_call", "call"] | None = None
    input: Literal["excludes_cache", "includes_cache"] | None = None


class Serve(Struct, frozen=True):
    """Where `acp-proxy serve` listens. `allowed_hosts` are names that it is reached by beside its own."""

    host: str = "127.0.0.1"
    port: int = 9464  # 0 is any that is free
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()


class Metrics(Struct, frozen=True):
    """Labels that metrics have only when they are wanted."""

    user_label: bool = False
    project_label: bool = False


class Config(Struct, frozen=True):
    identity: Identity
    run: Run
    log: Log
    ledger: LedgerChoice
    pricing: Pricing
    aliases: Mapping[str, str]
    agents: Mapping[str, AgentCounts]
    serve: Serve
    metrics: Metrics
    share_titles: bool
    budgets: tuple[Budget, ...]  # the administrator's, the user's, the flag's
    channels: tuple[Channel, ...]  # for notices: the administrator's, the user's
    refusal_style: Literal["message", "error"]
    files: tuple[Path, ...]  # that were read, the administrator's last
    final: frozenset[str]  # keys that the administrator set
    by_file: Mapping[Literal["admin", "user"], Layer]  # what each file sets, but for its arrays of tables
    overruled: tuple[str, ...]  # keys that were set, but differently by the administrator


def load(options: Mapping[str, str], environ: Mapping[str, str], *, admin_file: Path = ADMIN_FILE) -> Config:
    """Options are flags as given: `config`, and the names in `FLAGS`; `no_summary` counts by being there.

    Raises ConfigError. A file named by `config` must exist, the user's and the administrator's need not.
    """
    return _settled(_own_file(options, environ), read(admin_file) if _exists(admin_file) else None, options, environ)


def without_files(options: Mapping[str, str], environ: Mapping[str, str]) -> Config:
    """Defaults and flags alone, for a program that embeds the relay. Raises ConfigError."""
    return _settled(None, None, options, environ)


def _settled(
    own: TomlFile | None, admin: TomlFile | None, options: Mapping[str, str], environ: Mapping[str, str]
) -> Config:
    users, final = _of_file(own), _of_file(admin)
    lower = users | _of_environment(environ) | _of_flags(options)
    settings = _defaults(environ) | _outside_of(final, lower) | final
    _keep_the_lowest_budget(settings, lower, final)
    return Config(
        identity=Identity(**_section(settings, "identity")),
        run=Run(**_section(settings, "run")),
        log=_log(_section(settings, "log"), environ),
        ledger=_ledger(_section(settings, "ledger"), environ),
        pricing=_pricing(settings),
        aliases=_section(settings, "aliases"),
        agents={name: AgentCounts(**counts) for name, counts in _tables(settings, "agents").items()},
        serve=_serve(_section(settings, "serve"), environ),
        metrics=Metrics(**_section(settings, "metrics")),
        share_titles=settings.get(("share_titles",), False),
        budgets=_budgets(own, admin, settings, final),
        channels=_channels(own, admin, environ),
        refusal_style=settings.get(("refusal", "style"), "message"),
        files=tuple(file.path for file in (own, admin) if file),
        final=frozenset(map(dotted, final)),
        by_file={"admin": final, "user": users},
        overruled=tuple(dotted(key) for key in lower if key in final and lower[key] != settings[key]),
    )


def _own_file(options: Mapping[str, str], environ: Mapping[str, str]) -> TomlFile | None:
    if "config" in options:
        return read(expanded(options["config"], environ))
    path = user_file(environ)
    return read(path) if _exists(path) else None


def _exists(path: Path) -> bool:
    """Also true where it cannot be told: an error is better than rules that silently do not apply."""
    try:
        return path.exists()
    except OSError:
        return True


def _defaults(environ: Mapping[str, str]) -> Layer:
    return {
        ("identity", "user"): _login_name(environ),
        ("ledger", "url"): f"sqlite:///{state_dir(environ) / 'ledger.db'}",
    }


def _of_file(file: TomlFile | None) -> Layer:
    return dict(_settings(file, file.table, ())) if file else {}


def _settings(file: TomlFile, table: Mapping[str, Any], above: Key) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        key = (*above, name)
        if key in (("budget",), ("notify",)):
            continue  # they add up, and have a reader of their own
        if isinstance(value, dict) and children(key):
            yield from _settings(file, value, key)
        else:
            yield key, _checked(key, value, file)


def _of_environment(environ: Mapping[str, str]) -> Layer:
    """`ACP_PROXY_LEDGER__URL` is ledger.url; an empty variable counts as not set."""
    layer: Layer = {}
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and value:
            key = tuple(part.lower() if part.isupper() else part for part in variable[len(PREFIX) :].split("__"))
            if key[0] == "budget":
                raise ConfigError(
                    f"{variable}: budgets stand in a file, [[budget]]; only {PREFIX}RUN__BUDGET is a variable"
                )
            if key[0] == "notify":
                raise ConfigError(f"{variable}: channels stand in a file, [[notify]], whose url_file may name another")
            check = check_of(key)
            layer[key] = _checked(key, of_text(check, value) if check else value, variable)
    return layer


def _of_flags(options: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for option, key in FLAGS.items():
        if option in options:
            check = check_of(key)
            value = False if option == "no_summary" else of_text(check, options[option]) if check else None
            layer[key] = _checked(key, value, f"--{option.replace('_', '-')}")
    return layer


def _checked(key: Key, value: object, source: TomlFile | str) -> Any:
    """The value as the program uses it. `source` is a file, or the name of a variable or flag."""
    check = check_of(key)
    if check is None:
        problem = f"expected a table, [{dotted(key)}]" if children(key) else unknown(key)
        raise ConfigError(f"{_prefix(key, source)}: {problem}")
    try:
        return check(value)
    except ValueError as error:
        raise ConfigError(f"{_prefix(key, source)}: {error}") from None


def _prefix(key: Key, source: TomlFile | str) -> str:
    return source if isinstance(source, str) else f"{source.where(key)}: {dotted(key)}"


def _outside_of(final: Layer, lower: Layer) -> Layer:
    """What the administrator left open. A price or an agent that the administrator's file has is final as a whole."""
    closed = {_unit(key) for key in final}
    return {key: value for key, value in lower.items() if _unit(key) not in closed}


def _unit(key: Key) -> Key:
    pattern = pattern_of(key)
    return key[: pattern.index("*") + 1] if "*" in pattern else key


def _section(settings: Layer, table: str) -> dict[str, Any]:
    return {key[1]: value for key, value in settings.items() if key[0] == table and len(key) == 2}


def _tables(settings: Layer, *above: str) -> dict[str, dict[str, Any]]:
    """The tables below `above`, by the names that the user chose."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        if key[: len(above)] == above and len(key) == len(above) + 2:
            tables.setdefault(key[-2], {})[key[-1]] = value
    return tables


def _keep_the_lowest_budget(settings: Layer, lower: Layer, final: Layer) -> None:
    """A limit for one run may be lower than the administrator's, never higher."""
    key = ("run", "budget")
    if key in lower and key in final:
        settings[key] = min(lower[key], final[key])


def _budgets(own: TomlFile | None, admin: TomlFile | None, settings: Layer, final: Layer) -> tuple[Budget, ...]:
    """All that are configured: none replaces another, whatever its name."""
    for_this_run = settings.get(("run", "budget"))
    if for_this_run is None and not any(file and "budget" in file.table for file in (own, admin)):
        return ()
    from acp_proxy.config.budgets import budgets_of, flag_budget  # most machines have none

    admins = budgets_of(admin, "admin") if admin else ()
    unavailable = final.get(("ledger", "on_unavailable"), "local")  # what was left unsaid is not the user's to weaken
    return (
        *(replace(each, on_unavailable=each.on_unavailable or unavailable) for each in admins),
        *(budgets_of(own, "user") if own else ()),
        *((flag_budget(for_this_run),) if for_this_run is not None else ()),
    )


def _channels(own: TomlFile | None, admin: TomlFile | None, environ: Mapping[str, str]) -> tuple[Channel, ...]:
    if not any(file and "notify" in file.table for file in (own, admin)):
        return ()
    from acp_proxy.config.channels import channels_of  # most machines have none

    return (
        *(channels_of(admin, "admin", environ) if admin else ()),
        *(channels_of(own, "user", environ) if own else ()),
    )


def _log(section: dict[str, Any], environ: Mapping[str, str]) -> Log:
    if "file" in section:
        section["file"] = expanded(section["file"], environ)
    return Log(**section)


def _ledger(section: dict[str, Any], environ: Mapping[str, str]) -> LedgerChoice:
    if section["url"].startswith("sqlite:///"):
        path = expanded(section["url"].removeprefix("sqlite:///"), environ)
        section["url"] = f"sqlite:///{os.path.realpath(path)}"
    return LedgerChoice(**section)


def _serve(section: dict[str, Any], environ: Mapping[str, str]) -> Serve:
    if "token_file" in section:
        section["token_file"] = expanded(section["token_file"], environ)
    return Serve(**section)


def _pricing(settings: Layer) -> Pricing:
    prices = {model: Price(**rates) for model, rates in _tables(settings, "prices").items()}
    return Pricing(**_section(settings, "pricing"), prices=prices)


def _login_name(environ: Mapping[str, str]) -> str:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := environ.get(variable):
            return name
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's arbitrary uid
        return str(os.getuid())
