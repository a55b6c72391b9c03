"""Connections to PostgreSQL: to whichever host of a URL answers and is what it wants, and to no server of no use."""

from __future__ import annotations

import os
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.postgres.errors import first_line
from acp_proxy.ledger.postgres.passfile import password_for
from acp_proxy.ledger.postgres_address import FILES, Address
from acp_proxy.system.errors import reason_of

if TYPE_CHECKING:
    _Plain = asyncpg.Connection[asyncpg.Record]
else:
    _Plain = asyncpg.Connection  # generic in its stubs alone

OLDEST = 13  # major version: what the tests of the ledger are run with
_ENCODINGS = ("UTF8", "SQL_ASCII")  # of a database; the latter keeps the bytes that it is given
_STATEMENTS = 200  # that a connection keeps prepared
# What another host may do better: nobody answers, it is about to start or to stop, it is a standby.
_ELSEWHERE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InternalClientError,
)


class Connection(_Plain):
    """Names statements as nobody else does.

    By asyncpg's own names, which every process counts from one, a pooler could lead to another's statement.
    """

    def _get_unique_id(self, prefix: str) -> str:
        return f"acp_proxy_{prefix}_{uuid4().hex}"


async def connect(address: Address, seconds: float, *, pooled: bool) -> Connection:
    """To the first host that answers and is what the URL wants; `pooled` keeps no statement prepared.

    Raises LedgerError for a server or a file that is of no use, else what the last host had asyncpg raise.
    """
    deadline = time.monotonic() + seconds
    *others, last = address.dsns
    for number, dsn in enumerate(others):
        # A machine that is dead says nothing: it must leave time for those after it.
        share = (deadline - time.monotonic()) / (len(address.dsns) - number)
        with suppress(*_ELSEWHERE):
            return await _connect_one(address, dsn, share, pooled=pooled)
    return await _connect_one(address, last, deadline - time.monotonic(), pooled=pooled)


async def _connect_one(address: Address, dsn: str, seconds: float, *, pooled: bool) -> Connection:
    _check_files(address)
    password, why_none = password_for(dsn, os.environ)
    try:
        connection = await asyncpg.connect(
            dsn,
            password=password,
            timeout=max(seconds, 0.01),
            connection_class=Connection,
            statement_cache_size=0 if pooled else _STATEMENTS,
            server_settings={"application_name": "acp-proxy"},
            ssl=ssl.create_default_context() if address.system_roots else None,
        )
    except asyncpg.InvalidPasswordError as error:
        if not why_none:
            raise
        raise LedgerError(f"ledger {address.url}: {first_line(error, address.user)}: {why_none}") from error
    except ssl.SSLError as error:
        if "PEM lib" not in str(error):
            raise
        expected = "expected a certificate and its key in PEM, and sslpassword where the key has one"
        raise LedgerError(f"ledger {address.url}: sslcert and sslkey: {expected}") from error
    if trouble := _trouble(connection):
        connection.terminate()
        raise LedgerError(f"ledger {address.url}: {trouble}")
    return connection


def _trouble(connection: Connection) -> str | None:
    version = connection.get_server_version()
    if version.major < OLDEST:
        return f"PostgreSQL {version.major} is too old, expected {OLDEST} or newer"
    encoding = getattr(connection.get_settings(), "server_encoding", "UTF8")
    if encoding not in _ENCODINGS:  # a row with a name that it cannot keep would be lost
        return f"its database keeps text as {encoding}, expected one made with ENCODING 'UTF8' TEMPLATE template0"
    return None


def _check_files(address: Address) -> None:
    """What asyncpg says of one that is missing does not name it."""
    for option in FILES:
        file = address.files.get(option) or os.environ.get(f"PG{option.upper()}")
        if not file:
            continue
        try:
            Path(file).open("rb").close()
        except OSError as error:
            raise LedgerError(f"ledger {address.url}: {option} {file}: {reason_of(error)}") from error
