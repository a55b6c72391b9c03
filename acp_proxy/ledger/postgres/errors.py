"""What errors of PostgreSQL and its driver mean, and how they read: in one line that names no user."""

from __future__ import annotations

import re

import psycopg

from acp_proxy.ledger import LedgerError, LedgerUnavailableError

# SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html
CONFLICTS = ("40001", "40P01", "40003")  # after the last it may be done, and doing it again changes nothing
# Two that make a ledger's first table at once: whoever comes second finds it made.
FIRST_TABLE = ("23505", "42P07")
NO_STATEMENT = ("26000", "42P05")  # a pooler gave the connection to somebody else
NO_SUCH_LEVEL = "0A000"  # a hot standby has no SERIALIZABLE, and says so in no other way
IS_THERE = "23505"  # a row
NOT_AS_ASSUMED = (IS_THERE, "21000")  # a subquery has several
READ_ONLY = "25006"
NO_RIGHT = "42501"
NO_LOCK = "55P03"  # in time
SET_BACK = "2201F"  # by the statements of `keeping.py` alone
# The connection is gone: broken, ended by an administrator, or since it or its transaction lasted too long.
ENDED = ("08", "57P", "25P03", "25P04")
# Connection, resources, operator, system, transactions that ended, locks: may pass.
PASSING = ("08", "53", "57", "58", "40", "55")
# Numbers that are too large, and names that no index takes: a row with one must not keep all others waiting.
REFUSED = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, UnicodeEncodeError)
NO_ANSWER = "no answer in time"

_DRIVERS = re.compile(r"^(?:[a-z ]+? failed: |connection is bad: )?(?:connection to server (?:at|on) .*? failed: )?")
_SERVERS = re.compile(r"^\w+\s?:  ")  # severity, in its own language
# libpq keeps the SQLSTATE of who is not let in to itself.
_MAY_PASS = re.compile("too many|slots|starting up|shutting down|recovery|accepting|terminat|timeout|connect to|_")
_NEVER = re.compile(r'^invalid |^could not match|^weak |definition of service|file "')  # what is wrong with options


def first_line(error: BaseException, user: str) -> str:
    """Without the user, whom a server names where it lets nobody in: in quotes of its own language."""
    said = _DRIVERS.sub("", str(error).partition("\n")[0])
    if user:
        said = re.sub(rf" ?[^\w\s]\s?{re.escape(user)}\s?[^\w\s]", "", said)
    return re.sub(r'\b(user|role) "[^"]*"', r"\1", said)


def not_connected(error: psycopg.OperationalError, user: str) -> LedgerError:
    """Whether it is of use to try again, and where else."""
    if error.pgconn and error.pgconn.needs_password:
        file = next((each.val or b"" for each in error.pgconn.info if each.keyword == b"passfile"), b"").decode()
        return LedgerError(f"no password is given, expected one in {file} (of mode 600) or PGPASSWORD")
    said = first_line(error, user)
    line = _SERVERS.sub("", said)
    passes = _MAY_PASS.search(line) if line != said else not _NEVER.search(line)
    return LedgerUnavailableError(line) if passes else LedgerError(line)


def of_text(error: psycopg.ProgrammingError) -> str:
    """What is wrong with a URL: libpq shows the part that it cannot read, which may be of the password."""
    if option := re.search(r'^invalid URI query parameter: "(.*)"', str(error)):
        return f"unknown option {option[1]}: settings of the server are options=-c%20NAME%3DVALUE"
    if str(error).startswith("bad value for connect_timeout"):
        return str(error)
    return "cannot be read: in a password % is %25, and : @ / ? # are %3A, %40, %2F, %3F, %23"
