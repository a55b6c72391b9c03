"""Posting to servers elsewhere: the client, what its errors are called, and how long a server wants to be left alone.

Never follows a redirect, never shows a URL. A proxy named by the environment (`HTTPS_PROXY`) is used, and so are the
system's certificates.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import ssl
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx2

from acp_proxy import __version__
from acp_proxy.config import ConfigError
from acp_proxy.core.windows import SECOND
from acp_proxy.system.errors import reason_of

_MOST_TO_WAIT = 3600  # seconds, whatever a server asks for


def client_of(timeout: float, part: str, verify: ssl.SSLContext | bool = True) -> httpx2.AsyncClient:
    """Raises ConfigError, for `part` of the configuration, where the environment cannot be used."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs the URL of every request, which may be a secret
    try:
        return httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout, headers={"User-Agent": f"acp-proxy/{__version__}"}, verify=verify
        )
    except ImportError:
        raise ConfigError(f"{part}: the environment names a SOCKS proxy, which cannot be used") from None
    except OSError as error:
        why = "the environment names certificates that cannot be used"
        raise ConfigError(f"{part}: {why}: {reason_of(error)}") from error
    except (ValueError, httpx2.InvalidURL):  # which may have a password in it
        raise ConfigError(f"{part}: the environment names a proxy by something that is no URL") from None


def seconds_of(retry_after: str | None, now: int) -> float:
    """The seconds of a `Retry-After`, which is a number or a date; 0 if it is neither. `now` is Unix ns."""
    if not retry_after:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            moment = parsedate_to_datetime(retry_after)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now / SECOND
        except (ValueError, OverflowError):  # the latter for a time zone of any number of hours
            return 0.0
    return min(max(0.0, seconds), _MOST_TO_WAIT)  # in this order "nan" is nothing, too


def words(error: httpx2.TransportError) -> str:
    """What the system says of a connection names hosts at most; without numbers, and without lines of C."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, (ssl.SSLError, socket.gaierror)):
            return os.strerror(cause.errno)  # the others only say that all attempts failed
        cause = cause.__cause__ or cause.__context__
    said = str(error).partition("\n")[0] if isinstance(error, httpx2.ConnectError) else ""
    return re.sub(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$", "", said)[:100] or type(error).__name__
