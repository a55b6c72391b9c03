"""URLs of PostgreSQL ledgers: what is given to libpq, and what may be shown. Never shows user or password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from msgspec import Struct

from acp_proxy.ledger import LedgerError

_YES = ("true", "1", "yes", "on")
_SEARCH_PATH = re.compile(r"(?:-c ?|--)search[_-]path=(\S+)")  # within `options`


class Address(Struct, frozen=True):
    """A ledger's URL, taken apart. What libpq makes of its options is not known here: it may not be installed."""

    url: str  # canonical: however it is spelt, the same ledger has the same
    dsn: str  # what libpq is given: the URL without what is ours
    pooled: bool = False  # behind a pooler: no prepared statement outlives its transaction
    user: str = ""  # as the URL names it

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @classmethod
    def of(cls, url: str) -> Address:
        """`?pgbouncer=true` is taken out of the URL. Raises LedgerError, in one line."""
        try:
            parts = urlsplit(url, allow_fragments=False)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError as error:
            raise LedgerError("ledger URL that cannot be read, expected postgresql://HOST/DATABASE") from error
        unnamed = "" if "service" in options else "localhost"
        host = parts.netloc.rpartition("@")[2].lower() or options.get("host", unnamed)
        # What is shown is what stands behind the last @ before a slash: a password with a slash would be.
        if "@" in parts.path or not all(map(_is_host, host.split(","))):
            raise LedgerError(
                "ledger URL that cannot be read: a port is a number; in a password /, ? and # are %2F, %3F and %23"
            )
        name = parts.path.strip("/") or options.get("dbname")
        if not name:
            raise LedgerError("ledger URL without a database, expected postgresql://HOST/DATABASE")
        known = not host or ":" in host.rpartition("]")[2] or host.startswith("/")
        port = "" if known else f":{options.get('port', 5432)}"
        # As it is written, for libpq takes a + for a +, and urllib for a space; but it takes no = within a value.
        pairs = [part.partition("=") for part in parts.query.split("&") if part]
        query = "&".join(f"{key}={value.replace('=', '%3D')}" for key, _, value in pairs if key != "pgbouncer")
        return cls(
            url=f"postgresql://{host}{port}/{name}{_which(options)}",
            dsn=f"{url.partition('?')[0]}?{query}".replace(" ", "%20"),
            pooled=options.get("pgbouncer", "").lower() in _YES,
            user=unquote(parts.username or options.get("user", "")),
        )


def _which(options: Mapping[str, str]) -> str:
    """What tells a ledger from others of one host and database, whose journals are not its own."""
    schemas = _SEARCH_PATH.findall(options.get("options", ""))
    told = {"service": options.get("service"), "search_path": schemas[-1] if schemas else None}
    text = urlencode({name: value for name, value in told.items() if value})
    return f"?{text}" if text else ""


def _is_host(text: str) -> bool:
    _, colon, port = text.rpartition("]")[2].partition(":")
    return not colon or (port.isascii() and port.isdigit())
