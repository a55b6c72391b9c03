"""Questions to a hub about signing in, by the standard library: a form or a token, answered by a JSON object."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

from acp_proxy import __version__
from acp_proxy.signin import SignInError, UnreachableError

_SECONDS = 10.0
_LARGEST = 1 << 20  # bytes of an answer
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
DISCOVERY = "/.well-known/oauth-authorization-server"
CLIENT = "acp-proxy"


class RefusedError(SignInError):
    """What the hub answers instead of a token; `error` is its word for it (RFC 6749, 5.2)."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description or error)
        self.error = error


def hub_url(text: str) -> str:
    """The address of one hub in one spelling. Raises SignInError."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = parts.port
    except ValueError:
        raise SignInError(f"{text!r}: expected https://HOST") from None
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("https", "http") or not host or parts.username or parts.query or parts.fragment:
        raise SignInError(f"{text!r}: expected https://HOST")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise SignInError(f"{text!r}: without TLS a token would be read on its way: expected https://")
    place = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{place}{'' if port in (None, usual) else f':{port}'}{parts.path.rstrip('/')}"


def discovered(hub: str) -> dict[str, str]:
    """The addresses that a hub signs in by. Raises SignInError."""
    found = _ask("GET", hub + DISCOVERY, None, {})
    if found.get("issuer") != hub:
        raise SignInError(f"{hub}: calls itself {str(found.get('issuer'))[:200]}: sign in there")
    names = ("device_authorization_endpoint", "token_endpoint", "revocation_endpoint", "userinfo_endpoint")
    addresses = {name: str(found.get(name, "")) for name in names}
    for name, address in addresses.items():
        if not address.startswith(f"{hub}/"):
            raise SignInError(f"{hub}: its {name} is elsewhere")
    return addresses


def post(url: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Raises RefusedError, and UnreachableError."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return _ask("POST", url, urlencode({"client_id": CLIENT, **sent}).encode(), headers)


def who_is(url: str, token: str) -> dict[str, Any]:
    """Whom a hub knows by a token. Raises RefusedError, and UnreachableError."""
    return _ask("GET", url, None, {"Authorization": f"Bearer {token}"})


def _ask(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(url)
    hub = f"{parts.scheme}://{parts.netloc}"
    connection = _connection(parts)
    try:
        said = {"Accept": "application/json", "User-Agent": f"acp-proxy/{__version__}", **headers}
        connection.request(method, parts.path, body, said)
        answer = connection.getresponse()
        status, text = answer.status, answer.read(_LARGEST)
    except (OSError, HTTPException) as error:
        raise UnreachableError(f"{hub}: {_reason(error)}") from error
    finally:
        connection.close()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if status >= 500 or status == 429:
        why = found.get("error_description") if isinstance(found, dict) else None
        raise UnreachableError(f"{hub}: {why or f'answers {status}'}")
    if not isinstance(found, dict):
        raise SignInError(f"{hub}: no hub answers there ({status})")
    if status != 200:
        raise RefusedError(str(found.get("error")), str(found.get("error_description") or f"answers {status}"))
    return found


def _connection(parts: SplitResult) -> HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=_SECONDS)
    return HTTPSConnection(host, parts.port, timeout=_SECONDS, context=ssl.create_default_context())


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "the connection was closed"
