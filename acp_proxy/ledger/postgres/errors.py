"""What errors of PostgreSQL and its driver mean, and how they read: in one line that names no user."""

from __future__ import annotations

import os
import re

import asyncpg

# SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html
CONFLICTS = ("40001", "40P01")
# Two that make a ledger's first table at once: whoever comes second finds it made.
FIRST_TABLE = ("23505", "42P07")
NO_STATEMENT = ("26000", "42P05")  # a pooler gave the connection to somebody else
NO_SUCH_LEVEL = "0A000"  # a hot standby has no SERIALIZABLE, and says so in no other way
READ_ONLY = "25006"
NO_RIGHT = "42501"
NO_LOCK = "55P03"  # in time
# The connection is gone: broken, ended by an administrator, or since it or its transaction lasted too long.
ENDED = ("08", "57P", "25P03", "25P04")
# Connection, resources, operator, system, transactions that ended, locks: may pass.
PASSING = ("08", "53", "57", "58", "40", "55")
# Numbers that are too large, and names that no index takes: a row with one must not keep all others waiting.
REFUSED = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
# The last one is what asyncpg raises for a connection that the server cut while nobody looked.
LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError, asyncpg.InternalClientError)


def first_line(error: BaseException, user: str) -> str:
    """Without the user, whom a server names where it lets nobody in: in quotes of its own language."""
    said = str(error).partition("\n")[0]
    if user:
        said = re.sub(rf" ?[^\w\s]\s?{re.escape(user)}\s?[^\w\s]", "", said)
    return re.sub(r'\b(user|role) "[^"]*"', r"\1", said)


def why_lost(error: BaseException, user: str) -> str:
    """The system's word, which asyncio tells with its number, and with addresses in place of the reason."""
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "none of its hosts is what target_session_attrs asks for"
    said = first_line(error, user) or "no answer in time"
    if number := re.search(r"\[Errno (\d+)\]", said):
        return os.strerror(int(number[1]))
    return re.sub(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$", "", said)
