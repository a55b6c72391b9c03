"""Checks of requests (host, origin, method, token), and the security headers of responses. Knows no route.

A page of another site can send requests to a server on this machine, and by DNS rebinding even read the answers: so
the name that was asked for, and where the question comes from, are looked at before anything else.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_TO_ALL = ("/healthz", "/livez")  # tell nothing but whether the server works; what asks has no token

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # browsers without frame-ancestors
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Policy(Struct, frozen=True):
    """`hosts` are the names that the server answers to, beside `localhost` and the address that it was reached at.

    `token` says which one is needed now; None where none is.
    """

    hosts: frozenset[str] = frozenset()
    token: Callable[[], str] | None = None

    def __repr__(self) -> str:
        return f"Policy({self.hosts!r})"

    @classmethod
    def of(cls, hosts: Iterable[str], token: Callable[[], str] | None) -> Policy:
        return cls(frozenset(map(name_of, hosts)), token)


class Guard:
    """ASGI middleware; whatever passes it, and whatever it refuses, has the same headers."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer: ASGIApp = self._refusal(scope) or self._app
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if not hosts and scope["path"] in OPEN_TO_ALL:
            hosts = ["localhost"]  # a load balancer asks in HTTP/1.0; browsers always name a host
        if len(hosts) != 1 or not self._is_own(name_of(hosts[0]), scope):
            return _refused(403, "this host is not served here; [serve] allowed_hosts names others")
        if is_foreign(headers, hosts[0]):
            return _refused(403, "requests of other sites are refused")
        if scope["method"] not in ("GET", "HEAD"):
            return _refused(405, "only GET and HEAD", {"Allow": "GET, HEAD"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return _refused(413, "no body is expected", {"Connection": "close"})
        if self._policy.token and scope["path"] not in OPEN_TO_ALL and not _shows(self._policy.token(), headers):
            return _refused(401, "a token is needed", {"WWW-Authenticate": 'Basic realm="acp-proxy", charset="UTF-8"'})
        return None

    def _is_own(self, name: str, scope: Scope) -> bool:
        if name == "localhost" or name in self._policy.hosts:
            return True
        server: Sequence[str | int] | None = scope.get("server")
        try:
            address = ip_address(name)
            # Behind an address of one's own no name server can be put: no rebinding.
            return address.is_loopback or (server is not None and address == _address(str(server[0])))
        except ValueError:
            return False


def _address(text: str) -> IPv4Address | IPv6Address:
    """One of IPv4 that was reached by a socket of IPv6 is one of IPv4. Raises ValueError."""
    address = ip_address(text)
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def name_of(host: str) -> str:
    """Without port, brackets and the final dot; in lower case."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return (name if name.count(":") > 1 else name.partition(":")[0]).removesuffix(".")


def is_foreign(headers: Headers, host: str) -> bool:
    """Whether a browser says that another site asks. Who follows a link to here may see the page.

    What it says of sites is true also behind a proxy that asks by another name than it was asked for itself.
    """
    if headers.get("sec-fetch-site") == "same-origin":
        return False
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != host.lower():
        return True
    if headers.get("sec-fetch-site", "none") == "none":
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _shows(token: str, headers: Headers) -> bool:
    """As a bearer, or as the password of whatever user: so browsers ask for it."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    shown = b""
    match scheme.lower():
        case "bearer":
            shown = credentials.strip().encode("latin-1")
        case "basic":
            try:
                shown = b64decode(credentials.strip(), validate=True).partition(b":")[2]
            except ValueError:
                return False
    return hmac.compare_digest(shown, token.encode())


def _refused(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{reason}\n", status, headers)
