"""The configuration: defaults, the user's file, the environment and flags; the administrator's file overrides all.

Reads files; starts, opens and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from acp_proxy.config.files import ConfigError, TomlFile, expanded, read, user_file
from acp_proxy.config.layers import Settings, of_environment, of_file, of_flags, outside_of
from acp_proxy.config.schema import dotted
from acp_proxy.config.values import (
    AgentCounts,
    BilledBy,
    BillSource,
    Books,
    Config,
    Identity,
    LedgerChoice,
    Log,
    Metrics,
    Otlp,
    Plans,
    Price,
    Pricing,
    Refusing,
    Run,
    Serve,
)
from acp_proxy.system.directories import SYNCHRONOUS, default_ledger

if TYPE_CHECKING:
    from acp_proxy.config.channels import Channel
    from acp_proxy.core.budget import Budget
    from acp_proxy.core.budget.plan_limits import PlanBudget

__all__ = [
    "ADMIN_FILE",
    "AgentCounts",
    "Config",
    "ConfigError",
    "Price",
    "bills_of",
    "load",
    "load_to_answer",
    "otlp_of",
    "without_files",
]

ADMIN_FILE = Path("/etc/acp-proxy/config.toml")


def load(options: Mapping[str, str], environ: Mapping[str, str], *, admin_file: Path = ADMIN_FILE) -> Config:
    """Options are flags as given: `config`, and the names in `layers.FLAGS`; `no_summary` counts by being there.

    Raises ConfigError. A file named by `config` must exist, the user's and the administrator's need not.
    """
    admin = read(admin_file) if _exists(admin_file) else None
    return _settled(_own_file(options, environ), admin, options, environ)


def load_to_answer(options: Mapping[str, str], environ: Mapping[str, str], *, admin_file: Path = ADMIN_FILE) -> Config:
    """`load` for a command that answers from a ledger. Raises ConfigError.

    Also where the administrator's file overrules `--ledger`: the answer would be of another ledger than was asked for,
    while a relay just writes to the administrator's.
    """
    config = load(options, environ, admin_file=admin_file)
    if "ledger" in options and "ledger.url" in config.overruled:
        raise ConfigError(f"--ledger: {admin_file} sets ledger.url, which cannot be overridden")
    return config


def without_files(options: Mapping[str, str], environ: Mapping[str, str]) -> Config:
    """Defaults and flags alone, for a program that embeds the relay. Raises ConfigError."""
    return _settled(None, None, options, environ)


def _settled(
    own: TomlFile | None, admin: TomlFile | None, options: Mapping[str, str], environ: Mapping[str, str]
) -> Config:
    users, final = of_file(own), of_file(admin)
    lower = users | of_environment(environ) | of_flags(options)
    settings = _defaults(environ) | outside_of(final, lower) | final
    _keep_the_lowest_budget(settings, lower, final)
    budgets, plan_budgets = _budgets(own, admin, settings, final)
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
        otlp=_otlp(_section(settings, "otlp"), environ),
        books=Books(**_section(settings, "books")),
        plans=Plans(**_section(settings, "plans")),
        share_titles=settings.get(("share_titles",), False),
        budgets=budgets,
        channels=_channels(own, admin, environ),
        refusal=Refusing(**_section(settings, "refusal")),
        files=tuple(file.path for file in (own, admin) if file),
        final=frozenset(map(dotted, final)),
        by_file={"admin": final, "user": users},
        overruled=tuple(dotted(key) for key in lower if settings.get(key) != lower[key]),
        plan_budgets=plan_budgets,
        bills=_bills(settings),
        billing={name: BilledBy(**said) for name, said in _tables(settings, "billing").items()},
    )


def _own_file(options: Mapping[str, str], environ: Mapping[str, str]) -> TomlFile | None:
    if "config" in options:
        return read(expanded(options["config"], environ))
    path = user_file(environ)
    return read(path) if _exists(path) else None


def _exists(path: Path) -> bool:
    """Also true where it cannot be told: an error is better than rules that silently do not apply."""
    try:
        path.stat()  # not `exists`, which in Python 3.14 is False where it cannot be told
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _defaults(environ: Mapping[str, str]) -> Settings:
    return {
        ("identity", "user"): _login_name(environ),
        ("ledger", "url"): f"sqlite:///{default_ledger(environ)}",
    }


def _section(settings: Settings, table: str) -> dict[str, Any]:
    return {key[1]: value for key, value in settings.items() if key[0] == table and len(key) == 2}


def _tables(settings: Settings, *above: str) -> dict[str, dict[str, Any]]:
    """The tables below `above`, by the names that the user chose."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        if key[: len(above)] == above and len(key) == len(above) + 2:
            tables.setdefault(key[-2], {})[key[-1]] = value
    return tables


def _keep_the_lowest_budget(settings: Settings, lower: Settings, final: Settings) -> None:
    """A limit for one run may be lower than the administrator's, never higher."""
    key = ("run", "budget")
    if key in lower and key in final:
        settings[key] = min(lower[key], final[key])


def _budgets(
    own: TomlFile | None, admin: TomlFile | None, settings: Settings, final: Settings
) -> tuple[tuple[Budget, ...], tuple[PlanBudget, ...]]:
    """All that are configured, and those on plans by themselves: none replaces another, whatever its name."""
    for_this_run = settings.get(("run", "budget"))
    if for_this_run is None and not any(file and "budget" in file.table for file in (own, admin)):
        return (), ()
    from acp_proxy.config.budgets import budgets_of, flag_budget  # most machines have none
    from acp_proxy.core.budget import Budget
    from acp_proxy.core.budget.plan_limits import PlanBudget

    admins = budgets_of(admin, "admin") if admin else ()
    unavailable = final.get(
        ("ledger", "on_unavailable"), _without_a_word(settings["ledger", "url"])
    )  # what was left unsaid is not the user's to weaken
    found = (*admins, *(budgets_of(own, "user") if own else ()))
    counted = (
        replace(each, on_unavailable=each.on_unavailable or unavailable) if each.layer == "admin" else each
        for each in found
        if isinstance(each, Budget)
    )
    for_run = (flag_budget(for_this_run),) if for_this_run is not None else ()
    return (*counted, *for_run), tuple(each for each in found if isinstance(each, PlanBudget))


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
        path, asked, how = section["url"].removeprefix("sqlite:///").partition(SYNCHRONOUS)
        path = expanded(path, environ)
        try:
            section["url"] = f"sqlite:///{os.path.realpath(path)}{asked}{how}"
        except FileNotFoundError as error:
            raise ConfigError(f"ledger.url: {path}: the working directory was removed") from error
    return LedgerChoice(**{"on_unavailable": _without_a_word(section["url"]), **section})


def _without_a_word(url: str) -> Literal["local", "lease"]:
    """What happens without the ledger where nothing is said of it: only a hub lends."""
    return "lease" if url.startswith(("https://", "http://")) else "local"


def _serve(section: dict[str, Any], environ: Mapping[str, str]) -> Serve:
    if "token_file" in section:
        section["token_file"] = expanded(section["token_file"], environ)
    return Serve(**section)


def otlp_of(file: TomlFile, environ: Mapping[str, str]) -> Otlp:
    """`[otlp]` of another program's file, with the keys of ours. Raises ConfigError."""
    only = replace(file, table={"otlp": file.table["otlp"]} if "otlp" in file.table else {})
    return _otlp(_section(of_file(only), "otlp"), environ)


def _otlp(section: dict[str, Any], environ: Mapping[str, str]) -> Otlp:
    for key in ("headers_file", "certificate", "client_certificate", "client_key"):
        if key in section:
            section[key] = expanded(section[key], environ)
    return Otlp(**section)


def bills_of(file: TomlFile) -> Mapping[str, BillSource]:
    """`[bills]` of another program's file, with the keys of ours. Raises ConfigError."""
    only = replace(file, table={"bills": file.table["bills"]} if "bills" in file.table else {})
    return _bills(of_file(only))


def _bills(settings: Settings) -> Mapping[str, BillSource]:
    return {provider: BillSource(**said) for provider, said in _tables(settings, "bills").items()}


def _pricing(settings: Settings) -> Pricing:
    prices = {model: Price(**rates) for model, rates in _tables(settings, "prices").items()}
    return Pricing(**_section(settings, "pricing"), prices=prices)


def _login_name(environ: Mapping[str, str]) -> str:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := environ.get(variable):
            return name.encode("utf-8", "replace").decode()  # a ledger keeps text, and no other bytes
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's arbitrary uid
        return str(os.getuid())
