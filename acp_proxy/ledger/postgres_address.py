"""URLs of PostgreSQL ledgers: what is given to the driver, and what may be shown. Never shows user or password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from acp_proxy.ledger import LedgerError

_YES = ("true", "1", "yes", "on")
# What only libpq does. asyncpg would hand each on as a setting of the server, which knows none of them.
_LIBPQS = frozenset(
    {"channel_binding", "connect_timeout", "fallback_application_name", "gssencmode", "hostaddr", "load_balance_hosts"}
    | {"keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "requirepeer", "sslcompression"}
    | {"sslsni", "tcp_user_timeout"}
)
FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_SEARCH_PATH = re.compile(r"(?:-c ?|--)search[_-]path=(\S+)")  # within `options`


class Address(Struct, frozen=True):
    """A ledger's URL, taken apart."""

    url: str  # canonical: however it is spelt, the same ledger has the same
    dsns: tuple[str, ...]  # what the driver is given, for one host after the other
    pooled: bool = False  # behind PgBouncer: no prepared statement outlives its transaction
    user: str = ""  # as the URL names it
    files: Mapping[str, str] = {}  # of certificates and keys, by their options
    system_roots: bool = False  # the system's certificates tell who the server is

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @classmethod
    def of(cls, url: str) -> Address:
        """`?pgbouncer=true` is taken out of the URL, and what only libpq does. Raises LedgerError, in one line."""
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError as error:
            raise LedgerError("ledger URL that cannot be read, expected postgresql://HOST/DATABASE") from error
        pooled = options.pop("pgbouncer", "").lower() in _YES
        if options.get("channel_binding") == "require":
            advice = "sslmode=verify-full also tells who the server is"
            raise LedgerError(f"ledger URL with channel_binding=require, which is not known here: {advice}")
        options = {name: value for name, value in options.items() if name not in _LIBPQS}
        unnamed = "" if "service" in options else "localhost"
        host = parts.netloc.rpartition("@")[2].lower() or options.get("host", unnamed)
        # What is shown is what stands behind the last @ before a slash: a password with a slash would be.
        if "@" in parts.path or not all(map(_is_host, host.split(","))):
            raise LedgerError(
                "ledger URL that cannot be read: a port is a number; in a password /, ? and # are %2F, %3F and %23"
            )
        if parts.path.strip("/") == "" and "dbname" not in options and "database" not in options:
            raise LedgerError("ledger URL without a database, expected postgresql://HOST/DATABASE")
        name = parts.path.strip("/") or options.get("dbname") or options.get("database")
        known = not host or ":" in host.rpartition("]")[2] or host.startswith("/")
        port = "" if known else f":{options.get('port', 5432)}"
        system_roots = options.get("sslrootcert") == "system"
        if system_roots:
            del options["sslrootcert"]
        user = unquote(parts.username or options.get("user", ""))
        files = {option: options[option] for option in FILES if option in options}
        dsns = tuple(_dsns(parts, options))
        shown = f"postgresql://{host}{port}/{name}{_which(options)}"
        return cls(shown, dsns, pooled, user, files, system_roots)


def _which(options: Mapping[str, str]) -> str:
    """What tells a ledger from others of one host and database, whose journals are not its own."""
    schemas = [*_SEARCH_PATH.findall(options.get("options", "")), options.get("search_path")]
    told = {"service": options.get("service"), "search_path": next(filter(None, reversed(schemas)), None)}
    text = urlencode({name: value for name, value in told.items() if value})
    return f"?{text}" if text else ""


def _dsns(parts: SplitResult, options: Mapping[str, str]) -> Iterator[str]:
    """Of each host; where a standby is preferred first all as standbys."""
    user, at, named = parts.netloc.rpartition("@")
    hosts = (named or options.get("host", "")).split(",")
    ports = options.get("port", "").split(",")
    if len(ports) not in (1, len(hosts)):
        raise LedgerError("ledger URL with several ports, expected as many as there are hosts")
    wanted = options.get("target_session_attrs")
    for attributes in ("standby", "any") if wanted == "prefer-standby" else (wanted,):
        for host, port in zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True):
            place = {"host": "" if named else host, "port": port, "target_session_attrs": attributes}
            chosen = {name: value for name, value in {**options, **place}.items() if value}
            netloc = f"{user}{at}{host if named else ''}"
            yield urlunsplit(("postgresql", netloc, parts.path, urlencode(chosen), ""))


def _is_host(text: str) -> bool:
    _, colon, port = text.rpartition("]")[2].partition(":")
    return not colon or (port.isascii() and port.isdigit())
