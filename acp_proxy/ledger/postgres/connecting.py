"""Connections to PostgreSQL by libpq: to whichever host of a URL answers and is what it wants, within a deadline.

libpq alone would wait for a host that says nothing as long as the system does, and look up names while no thread runs.
"""

from __future__ import annotations

import os.path
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from random import shuffle
from socket import AF_INET, AF_INET6, SOCK_STREAM, getaddrinfo, inet_pton
from threading import Thread
from typing import Any

import psycopg
from psycopg import generators, pq, waiting
from psycopg.conninfo import conninfo_to_dict, make_conninfo, timeout_from_conninfo

from acp_proxy.ledger import LedgerError, LedgerUnavailableError
from acp_proxy.ledger.postgres.connection import LOOK, Connection, until
from acp_proxy.ledger.postgres.errors import NO_ANSWER, first_line, not_connected, of_text
from acp_proxy.ledger.postgres_address import Address

OLDEST = 13  # major version: what the tests of the ledger are run with
_ENCODINGS = ("UTF8", "SQL_ASCII")  # of a database; the latter keeps the bytes that it is given
# Routers forget a connection that is silent for some minutes, and a machine that has died says nothing.
_DEFAULTS = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
_DEFAULTS |= {"fallback_application_name": "acp-proxy"}
# What decides between hosts is looked for in the environment, too, as libpq does, which gets one host at a time.
_OF_HOSTS = ("host", "hostaddr", "port", "load_balance_hosts", "target_session_attrs")
# The OpenSSL that comes with psycopg knows no system's: of Debian, of Red Hat, of macOS.
_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")

Options = dict[str, Any]


def connect(address: Address, seconds: float, patience: float, *, pooled: bool) -> Connection:
    """To the first host that answers and is what the URL wants; `pooled` keeps no statement prepared.

    Raises LedgerError for an option or a server that is of no use, LedgerUnavailableError with what each host said.
    """
    deadline = time.monotonic() + seconds
    try:
        # Half of what a statement waits, so that the other half is left for a new connection. In milliseconds.
        options = _DEFAULTS | {"tcp_user_timeout": f"{patience * 500:.0f}"} | conninfo_to_dict(address.dsn)
        hosts = list(_hosts(options | {"client_encoding": "UTF8"} | _system_roots(options)))
        connection = _first([partial(_to_host, each, address.user, len(hosts) > 1) for each in hosts], deadline)
        try:
            _check(connection)
            connection.pooled = pooled
            if not pooled:
                _look_for_pooler(connection, deadline)
        except BaseException:
            connection.close()
            raise
    except psycopg.ProgrammingError as error:
        raise LedgerError(f"ledger {address.url}: {of_text(error)}") from None  # which may have the password in it
    except LedgerError as error:
        raise type(error)(f"ledger {address.url}: {error}") from error
    except (psycopg.Error, TimeoutError) as error:
        raise LedgerUnavailableError(f"ledger {address.url}: {first_line(error, address.user)}") from error
    return connection


def _hosts(options: Options) -> Iterator[Options]:
    """Options for each host; where a standby is preferred first all as standbys."""
    if "service" not in options:
        found = {each.keyword.decode(): each.val for each in pq.Conninfo.get_defaults()}
        options = {name: value.decode() for name in _OF_HOSTS if (value := found[name])} | options
    lists = {name: str(options[name]).split(",") for name in _OF_HOSTS[:3] if name in options}
    number = max(len(lists.get(name, "_")) for name in ("host", "hostaddr"))
    if any(len(values) not in (1, number) for values in lists.values()):
        raise LedgerError("several ports or addresses, expected as many as there are hosts")
    hosts = [
        {**options, **{name: values[i] if len(values) > 1 else values[0] for name, values in lists.items()}}
        for i in range(number)
    ]
    if options.get("load_balance_hosts") == "random":
        shuffle(hosts)
    wanted = options.get("target_session_attrs")
    for attributes in ("standby", "any") if wanted == "prefer-standby" else (wanted,):
        yield from ({**host, "target_session_attrs": attributes} for host in hosts)


def _first(attempts: Sequence[Callable[[float], Connection]], deadline: float) -> Connection:
    """A machine that is dead says nothing: it must leave time for those after it."""
    said = list[str]()
    for left in range(len(attempts), 0, -1):
        now = time.monotonic()
        try:
            return attempts[-left](now + (deadline - now) / left)
        except LedgerUnavailableError as error:
            said.append(str(error))
    raise LedgerUnavailableError("; ".join(dict.fromkeys(said)))


def _to_host(options: Options, user: str, named: bool, deadline: float) -> Connection:
    try:
        addresses = _addresses(options, deadline)
        return _first([partial(_to_address, {**options, **each}, user) for each in addresses], deadline)
    except LedgerUnavailableError as error:
        where = options.get("host") or options.get("hostaddr")
        raise LedgerUnavailableError(f"{where}:{options['port']}: {error}") if named else error from error


def _addresses(options: Options, deadline: float) -> list[dict[str, str]]:
    """In a thread, for the system's resolver knows no deadline."""
    host = options.get("host", "")
    if not host or host[0] in "/@" or options.get("hostaddr"):
        return [{}]
    for family in (AF_INET, AF_INET6):
        with suppress(OSError, ValueError):
            inet_pton(family, host)
            return [{}]  # no name: nobody need be asked
    found: Future[list[str]] = Future()

    def resolve() -> None:
        try:
            found.set_result([str(each[4][0]) for each in getaddrinfo(host, None, type=SOCK_STREAM)])
        except (OSError, UnicodeError) as error:
            found.set_exception(error)

    Thread(target=resolve, name="acp-proxy names", daemon=True).start()
    try:
        return [{"hostaddr": each} for each in found.result(max(deadline - time.monotonic(), 0.01))]
    except TimeoutError as error:
        raise LedgerUnavailableError(NO_ANSWER) from error
    except (OSError, UnicodeError) as error:
        raise LedgerUnavailableError(getattr(error, "strerror", None) or str(error)) from error


def _to_address(options: Options, user: str, deadline: float) -> Connection:
    deadline = min(deadline, time.monotonic() + timeout_from_conninfo(options))
    try:
        gen = until(generators.connect(make_conninfo(**options)), deadline)
        return Connection(waiting.wait_conn(gen, LOOK))
    except TimeoutError as error:
        raise LedgerUnavailableError(NO_ANSWER) from error
    except psycopg.OperationalError as error:
        raise not_connected(error, user) from error


def _system_roots(options: Options) -> dict[str, str]:
    if options.get("sslrootcert") != "system" or options.get("sslmode", "verify-full") != "verify-full":
        return {}
    import ssl  # 10 ms

    file = ssl.get_default_verify_paths().cafile or next(filter(os.path.exists, _ROOTS), "system")
    return {"sslrootcert": file, "sslmode": "verify-full"}


def _check(connection: Connection) -> None:
    major = connection.pgconn.server_version // 10000
    if major < OLDEST:
        raise LedgerError(f"PostgreSQL {major} is too old, expected {OLDEST} or newer")
    encoding = (connection.pgconn.parameter_status(b"server_encoding") or b"UTF8").decode()
    if encoding not in _ENCODINGS:  # a row with a name that it cannot keep would be lost
        expected = "expected one made with ENCODING 'UTF8' TEMPLATE template0"
        raise LedgerError(f"its database keeps text as {encoding}, {expected}")


def _look_for_pooler(connection: Connection, deadline: float) -> None:
    """A pooler tells who connects another process than the one that then serves a statement."""
    with suppress(psycopg.errors.FeatureNotSupported):  # a standby whose transactions should be serializable
        asked = connection.journey([("SELECT pg_backend_pid()", ())], deadline)
        connection.pooled = asked != [[(connection.pgconn.backend_pid,)]]
        connection.prepares = not connection.pooled
