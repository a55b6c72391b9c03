"""What the routes of sign-in share: who is asked, which address the hub has, its cookies, and forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from acp_proxy.hub.auth.authenticator import Authenticator
from acp_proxy.hub.auth.provider import OpenIdProvider
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store import Ask

_LARGEST = 16 * 1024  # bytes of a form
_LONGEST = 200  # characters of a name


class FormError(Exception):
    """What was sent is no form that anybody reads."""


class Desk:
    """What signs in at one hub. `clock` gives Unix seconds."""

    def __init__(self, settings: Settings, ask: Ask, authenticator: Authenticator, clock: Callable[[], int]) -> None:
        self.settings = settings
        self.ask = ask
        self.authenticator = authenticator
        self.clock = clock

    @cached_property
    def providers(self) -> dict[str, OpenIdProvider]:
        return {each.name: OpenIdProvider(each) for each in self.settings.provider}

    def url(self, request: Request) -> str:
        """By which the hub is known, without a slash at its end."""
        return (self.settings.url or str(request.base_url)).rstrip("/")

    def cookies(self, request: Request) -> Cookies:
        return Cookies(secure=self.url(request).startswith("https://"))


class Cookies:
    """Of a browser: no script reads them, no other site sends them with what it asks for."""

    def __init__(self, *, secure: bool) -> None:
        self._secure = secure
        prefix = "__Host-" if secure else ""  # which no subdomain can set
        self.session = f"{prefix}acp-proxy"
        self.flow = f"{prefix}acp-proxy-flow"

    def put(self, answer: Response, name: str, value: str, seconds: int) -> None:
        answer.set_cookie(name, value, seconds, path="/", secure=self._secure, httponly=True, samesite="lax")

    def drop(self, answer: Response, name: str) -> None:
        answer.delete_cookie(name, "/", secure=self._secure, httponly=True, samesite="lax")


async def form(request: Request) -> dict[str, str]:
    """Raises FormError. A name that comes twice is an error: RFC 6749, 3.2."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise FormError(f"expected at most {_LARGEST} bytes")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise FormError("expected application/x-www-form-urlencoded") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FormError("expected each parameter once")
    return found


def named(values: Mapping[str, str], name: str) -> str | None:
    """A name of a machine, as it can be shown."""
    text = "".join(letter for letter in values.get(name, "") if letter.isprintable()).strip()
    return text[:_LONGEST] or None


def address_of(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def is_own_page(request: Request) -> bool:
    """Whether a browser says that a page of this hub asks; what is no browser says nothing."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")
