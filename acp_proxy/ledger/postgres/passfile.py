"""Passwords of `~/.pgpass`, as libpq reads them: https://www.postgresql.org/docs/current/libpq-pgpass.html

asyncpg keeps the backslash before a `:` or a backslash, so that a password with one of these fails that psql takes; and
what it does not read, it tells as a warning of Python. It sends text, where libpq sends whatever bytes stand there: of
a password that is not UTF-8 it would tell the first byte, and nothing else that helps.
"""

from __future__ import annotations

import getpass
import os.path
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from acp_proxy.system.errors import reason_of

_NO_TEXT = "cannot be sent: expected UTF-8"


def password_for(dsn: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The password of one server's `dsn`, None where its file does not decide; and why it has none, for a line."""
    parts = urlsplit(dsn)
    options = dict(parse_qsl(parts.query))
    elsewhere = parts.password or options.get("password") or environ.get("PGPASSWORD")
    if elsewhere or options.get("service") or environ.get("PGSERVICE"):
        return ("", f"PGPASSWORD {_NO_TEXT}") if elsewhere and not _is_text(elsewhere) else (None, "")
    file = Path(options.get("passfile") or environ.get("PGPASSFILE") or os.path.expanduser("~/.pgpass"))  # noqa: PTH111  (without a home it stays)
    hosts = unquote(_host(parts.netloc)) or options.get("host") or environ.get("PGHOST") or "localhost"
    ports = parts.port or options.get("port") or environ.get("PGPORT") or 5432
    wanted = (
        [*hosts.split(","), *(["localhost"] if hosts.startswith("/") else [])],
        str(ports).split(","),
        [unquote(parts.path.strip("/")) or options.get("dbname") or options.get("database") or ""],
        [unquote(parts.username or "") or options.get("user") or environ.get("PGUSER") or getpass.getuser()],
    )
    # An empty one is none to the server, and keeps asyncpg from looking itself.
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            return "", f"{file} is not used, because others may read it: expected mode 600"
        found = _found(file.read_text(encoding="utf-8", errors="surrogateescape"), wanted)
    except FileNotFoundError:
        found = None
    except OSError as error:
        return "", f"{file}: {reason_of(error)}"
    if found and not _is_text(found):
        return "", f"the password in {file} {_NO_TEXT}"
    return (found, "") if found else ("", f"no password is given, expected one in {file} or PGPASSWORD")


def _is_text(password: str) -> bool:
    return not any("\udc80" <= sign <= "\udcff" for sign in password)  # what bytes become that are no UTF-8


def _host(netloc: str) -> str:
    """As it is written: `hostname` has small letters, and names are compared as they are."""
    named = netloc.rpartition("@")[2]
    return named[1:].partition("]")[0] if named.startswith("[") else named.partition(":")[0]


def _found(text: str, wanted: Collection[Collection[str]]) -> str | None:
    """The first line's that is about it."""
    for line in text.split("\n"):
        fields = _fields(line.rstrip("\r"))
        if line.startswith("#") or len(fields) <= len(wanted):
            continue
        if all(field == "*" or field in names for field, names in zip(fields, wanted, strict=False)):
            return ":".join(fields[len(wanted) :])  # libpq ends it at the next colon: no server would take that
    return None


def _fields(line: str) -> list[str]:
    """What stands between colons; a backslash takes the next sign as it is."""
    fields, signs = [""], iter(line)
    for sign in signs:
        if sign == ":":
            fields.append("")
        else:
            fields[-1] += next(signs, sign) if sign == "\\" else sign
    return fields
