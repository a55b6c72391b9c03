"""`hub.toml` as values. Unknown keys are errors, and secrets stand as `${ENV}` or `${file:PATH}` only.

Raises ConfigError with one line: the file, the key, what was expected. No message repeats a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, ValidationError
from msgspec.structs import replace

from acp_proxy.config import bills_of, otlp_of
from acp_proxy.config.files import ConfigError, TomlFile, read
from acp_proxy.config.values import BillSource, Otlp
from acp_proxy.core.budget.lease import Terms
from acp_proxy.hub.store.retention import Retention
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.places import canonical_url
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.directories import state_directory
from acp_proxy.system.errors import reason_of

_REFERENCE = re.compile(r"\$\{(file:)?([^${}]+)\}")
_SHORTEST_RETENTION = 7  # days: what machines still have to send is younger
_LARGEST_SECRET = 64 * 1024  # bytes of a file
_AT = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`")


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """Where it listens. Behind a reverse proxy, `trusted` are the addresses whose X-Forwarded headers are believed."""

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: str | None = None  # files in PEM; without them it speaks HTTP
    key: str | None = None
    trusted: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()


class Database(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger; without a URL a file in the state directory. On PostgreSQL it has so many connections."""

    url: str = ""
    connections: int = 4


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    """An OpenID provider to sign in with. `groups` names the claim, or is a JSON pointer to it."""

    name: str
    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    domains: tuple[str, ...] = ()  # of e-mail addresses that may sign in; empty: all
    user: str = "email"  # the claim that is the user's name
    groups: str = "groups"
    allowed_groups: tuple[str, ...] = ()  # empty: all
    teams: dict[str, str] = {}  # group -> team
    leads: dict[str, str] = {}  # group -> the team it leads
    administrators: tuple[str, ...] = ()  # groups
    finance: tuple[str, ...] = ()


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """`url` is the address that people and proxies reach it at."""

    url: str = ""
    organisation: str = "default"
    listen: Listen = Listen()
    database: Database = Database()
    provider: tuple[Provider, ...] = ()
    otlp: Any = Otlp()  # an `Otlp`, whose types msgspec does not decode
    bills: dict[str, BillSource] = {}  # by provider, checked as those of `serve`
    lease: Terms = Terms()
    retention: Retention = Retention()

    @property
    def trusted(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(each) for each in self.listen.trusted)


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings in a file; the defaults without one."""
    file = TomlFile(Path("hub.toml"), "", {}) if path is None else read(path)
    table = _with_secrets(file, file.table, (), environ)
    otlp, bills = otlp_of(replace(file, table=table), environ), bills_of(replace(file, table=table))
    for own in ("otlp", "bills"):
        table.pop(own, None)
    try:
        found = json_decoder(Settings).decode(orjson.dumps(table))
    except ValidationError as error:
        raise ConfigError(_line(file, str(error))) from None  # the cause would repeat the table
    except TypeError as error:  # a date
        raise ConfigError(f"{file.path}: expected text, numbers, arrays and tables") from error
    _check(file, found)
    if not found.database.url:
        ledger = f"sqlite:///{state_directory(environ) / 'hub' / 'ledger.db'}"
        found = replace(found, database=replace(found.database, url=ledger))
    return replace(found, otlp=otlp, bills=dict(bills))


def _with_secrets(file: TomlFile, value: Any, key: tuple[str, ...], environ: Mapping[str, str]) -> Any:
    """The same value with each reference in a text replaced by what it names."""
    match value:
        case _ if key[:1] == ("bills",):
            return value  # a key is read when a provider is asked, and so may be replaced meanwhile
        case dict():
            return {name: _with_secrets(file, each, (*key, name), environ) for name, each in value.items()}
        case list():
            return [_with_secrets(file, each, key, environ) for each in value]
        case str():
            if key[-1] == "client_secret" and not _REFERENCE.fullmatch(value):
                raise ConfigError(f"{file.where(key)}: {'.'.join(key)}: expected ${{VARIABLE}} or ${{file:PATH}}")
            if key == ("otlp", "headers") and not _REFERENCE.search(value):
                raise ConfigError(
                    f"{file.where(key)}: otlp.headers: expected ${{VARIABLE}} or ${{file:PATH}} for the key"
                )
            try:
                return _REFERENCE.sub(lambda found: _secret(found, environ), value)
            except ValueError as error:
                raise ConfigError(f"{file.where(key)}: {'.'.join(key)}: {error}") from None
    return value


def _secret(found: re.Match[str], environ: Mapping[str, str]) -> str:
    is_file, name = found.groups()
    if not is_file:
        if name not in environ:
            raise ValueError(f"the environment has no {name}")
        return environ[name]
    try:
        with Path(name).open("rb") as file:
            return file.read(_LARGEST_SECRET).decode().strip()
    except OSError as error:
        raise ValueError(f"{name}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: expected UTF-8 text") from error


def _line(file: TomlFile, message: str) -> str:
    """What msgspec says of a table, in our words and with its place in the file."""
    place = _AT.search(message)
    dotted = re.sub(r"\[\d+\]", "", place[1]) if place else ""
    key = tuple(part for part in dotted.split(".") if part)
    if unknown := _UNKNOWN.search(message):
        key = (*key, unknown[1])
        return f"{file.where(key)}: {'.'.join(key)}: unknown key"
    said = message[: place.start()] if place else message
    words = said.replace("`", "").replace("array", "an array").replace("object", "a table").replace("str,", "text,")
    return f"{file.where(key)}: {'.'.join(key) or 'hub'}: {words[:1].lower()}{words[1:]}"


def _check(file: TomlFile, found: Settings) -> None:
    """What no type says."""

    def wrong(key: str, expected: str) -> ConfigError:
        return ConfigError(f"{file.where(tuple(key.split('.')))}: {key}: expected {expected}")

    if found.url and not found.url.startswith(("https://", "http://")):
        raise wrong("url", "https://HOST")
    if not 0 <= found.listen.port < 65536:
        raise wrong("listen.port", "a number up to 65535")
    if bool(found.listen.certificate) != bool(found.listen.key):
        raise wrong("listen", "certificate and key, or neither")
    try:
        _ = found.trusted
    except ValueError:
        raise wrong("listen.trusted", "addresses or networks such as 10.0.0.0/8") from None
    if not 1 <= found.database.connections <= 64:
        raise wrong("database.connections", "1 to 64")
    if found.database.url:
        try:
            canonical_url(found.database.url)
        except LedgerError as error:
            raise ConfigError(f"{file.where(('database', 'url'))}: database.url: {error}") from None
    for name, most in (("share", 100), ("turns", 1000), ("hours", 168), ("kept_days", 90)):
        if not (name == "share") <= getattr(found.lease, name) <= most:
            raise wrong(f"lease.{name}", f"{int(name == 'share')} to {most}")
    for name in ("names_days", "titles_days", "requests_days", "audit_days"):
        days = getattr(found.retention, name)
        if days and not _SHORTEST_RETENTION <= days <= 36500:
            raise wrong(f"retention.{name}", f"0, or {_SHORTEST_RETENTION} to 36500")
    if not found.organisation.strip() or not found.organisation.isprintable():
        raise wrong("organisation", "a name")
