"""URLs of PostgreSQL ledgers: what is given to the driver, and what may be shown. Never shows user or password."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from acp_proxy.ledger import LedgerError

_YES = ("true", "1", "yes", "on")


class Address(Struct, frozen=True):
    url: str  # canonical: however it is spelt, the same ledger has the same
    dsn: str
    pooled: bool = False  # behind PgBouncer: no prepared statement outlives its transaction

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @classmethod
    def of(cls, url: str) -> Address:
        """`?pgbouncer=true` is taken out of the URL, all else is libpq's. Raises LedgerError, in one line."""
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError as error:
            raise LedgerError("ledger URL that cannot be read, expected postgresql://HOST/DATABASE") from error
        pooled = options.pop("pgbouncer", "").lower() in _YES
        host = parts.netloc.rpartition("@")[2].lower() or options.get("host", "localhost")
        if parts.path.strip("/") == "" and "dbname" not in options and "database" not in options:
            raise LedgerError("ledger URL without a database, expected postgresql://HOST/DATABASE")
        name = parts.path.strip("/") or options.get("dbname") or options.get("database")
        port = "" if ":" in host.rpartition("]")[2] or host.startswith("/") else f":{options.get('port', 5432)}"
        dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(options), ""))
        return cls(f"postgresql://{host}{port}/{name}", dsn, pooled)
