"""What machines sign in by: discovery (RFC 8414), device authorization (RFC 8628), refresh, revocation (RFC 7009)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from acp_proxy.hub.auth.access_tokens import LIFETIME, NotSignedInError
from acp_proxy.hub.auth.authenticator import csrf_of
from acp_proxy.hub.auth.parts import Desk, FormError, address_of, form, named
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store import devices
from acp_proxy.hub.store.families import Granted, Refused
from acp_proxy.hub.store.secrets import REFRESH, TOKEN
from acp_proxy.ledger import LedgerError

CLIENT = "acp-proxy"  # the only client: a public one
DISCOVERY = "/.well-known/oauth-authorization-server"
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_Form = dict[str, str]

_SAYS = {
    "authorization_pending": "nobody has let this machine in yet",
    "slow_down": "asked too often",
    "access_denied": "this machine was not let in",
    "expired_token": "the code has expired: begin anew",
}


class Machines:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route(DISCOVERY, self.discovery, methods=["GET"]),
            Route("/oauth/device_authorization", self._of_client(self.begin), methods=["POST"]),
            Route("/oauth/token", self._of_client(self.token), methods=["POST"]),
            Route("/oauth/revoke", self._of_client(self.revoke), methods=["POST"]),
            Route("/oauth/whoami", self.whoami, methods=["GET"]),
        ]

    async def discovery(self, request: Request) -> Response:
        url = self._desk.url(request)
        return _json(
            200,
            {
                "issuer": url,
                "device_authorization_endpoint": f"{url}/oauth/device_authorization",
                "token_endpoint": f"{url}/oauth/token",
                "revocation_endpoint": f"{url}/oauth/revoke",
                "userinfo_endpoint": f"{url}/oauth/whoami",
                "response_types_supported": [],
                "grant_types_supported": [_DEVICE_GRANT, "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
            },
        )

    async def begin(self, request: Request, sent: _Form) -> Response:
        now, address = self._desk.clock(), address_of(request)
        wait = await self._desk.ask(lambda store: store.limits.wait("authorization", address, now))
        if wait:
            return _error(429, "slow_down", "too many sign-ins were begun from this address", wait)
        machine = (named(sent, "machine"), named(sent, "machine_name"))
        device, code = await self._desk.ask(lambda store: store.devices.begin(machine, address, now))
        await self._desk.ask(lambda store: store.tidy(now))
        page = f"{self._desk.url(request)}/device"
        return _json(
            200,
            {
                "device_code": device,
                "user_code": code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={code}",
                "expires_in": devices.LIFETIME,
                "interval": devices.PAUSE,
            },
        )

    async def token(self, _: Request, sent: _Form) -> Response:
        now = self._desk.clock()
        match sent.get("grant_type"):
            case grant if grant == _DEVICE_GRANT:
                device = sent.get("device_code", "")
                answer = await self._desk.ask(lambda store: store.devices.ask(device, now))
                if isinstance(answer, str):
                    return _error(400, answer, _SAYS[answer])
            case "refresh_token":
                shown = sent.get("refresh_token", "")
                found = await self._desk.ask(lambda store: store.families.refresh(shown, now))
                if isinstance(found, Refused):
                    self._desk.authenticator.forget()  # a family may have ended
                    return _error(400, "invalid_grant", found.reason)
                answer = found
            case _:
                return _error(400, "unsupported_grant_type", "expected a device code or a refresh token")
        return await self._granted(answer, now)

    async def _granted(self, granted: Granted, now: int) -> Response:
        access = await self._desk.authenticator.access_token(granted, now)
        return _json(
            200,
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": LIFETIME,
                "refresh_token": granted.refresh,
                "user": granted.holder.user,
            },
        )

    async def revoke(self, _: Request, sent: _Form) -> Response:
        """Whatever it was is no token afterwards: RFC 7009, 2.2."""
        shown, now = sent.get("token", ""), self._desk.clock()
        if shown.startswith(REFRESH):
            family = await self._desk.ask(lambda store: store.families.of(shown))
            if family is not None:
                await self._desk.ask(lambda store: store.families.revoke(family.id, family.user, now, leases_end=False))
        elif shown:
            try:
                who = await self._desk.authenticator.identity_of(f"Bearer {shown}", None, now)
            except NotSignedInError:
                return _json(200, {})
            if shown.startswith(TOKEN):
                await self._desk.ask(lambda store: store.tokens.revoke(who.token, who.user, now, leases_end=False))
            else:
                await self._desk.ask(lambda store: store.families.revoke(who.token, who.user, now, leases_end=False))
        self._desk.authenticator.forget()
        return _json(200, {})

    async def whoami(self, request: Request) -> Response:
        cookie = request.cookies.get(self._desk.cookies(request).session)
        try:
            shown = request.headers.get("authorization")
            who = await self._desk.authenticator.identity_of(shown, cookie, self._desk.clock())
        except NotSignedInError as error:
            challenge = f'Bearer realm="acp-proxy", error="invalid_token", error_description="{error}"'
            return _json(401, {"error": "invalid_token", "error_description": str(error)}, challenge)
        except LedgerError:
            return _unavailable()
        return _json(200, _shown(who) | ({"csrf": csrf_of(cookie)} if cookie and not shown else {}))

    def _of_client(
        self, endpoint: Callable[[Request, _Form], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                sent = await form(request)
                if sent.get("client_id") != CLIENT:
                    return _error(401, "invalid_client", f"expected client_id={CLIENT}")
                return await endpoint(request, sent)
            except FormError as error:
                return _error(400, "invalid_request", str(error))
            except LedgerError:
                return _unavailable()

        return answer


def _shown(who: Identity) -> dict[str, Any]:
    names = ("user", "organisation", "team", "role", "teams_led", "machine", "expires_at", "scopes")
    return {name: getattr(who, name) for name in names}


def _unavailable() -> Response:
    return _error(503, "temporarily_unavailable", "the hub's database does not answer", 5)


def _error(status: int, error: str, description: str, wait: int | None = None) -> Response:
    answer = _json(status, {"error": error, "error_description": description})
    if wait is not None:
        answer.headers["Retry-After"] = str(wait)
    return answer


def _json(status: int, value: dict[str, Any], challenge: str | None = None) -> Response:
    headers = {"Cache-Control": "no-store"} | ({"WWW-Authenticate": challenge} if challenge else {})
    return Response(orjson.dumps(value), status, headers, "application/json")
