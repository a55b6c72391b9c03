"""The route of SCIM: whoever may provision, and one transaction for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from acp_proxy.hub.auth.access_tokens import NotSignedInError
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import LedgerError

PREFIX = "/scim/v2"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_LARGEST = 1 << 20  # bytes of a request

Answered = tuple[int, bytes, dict[str, str]]  # status, body, headers


class Provisioning:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [Route(f"{PREFIX}/{{path:path}}", self.answer, methods=_METHODS)]

    async def answer(self, request: Request) -> Response:
        try:
            shown = request.headers.get("authorization")
            who = await self._desk.authenticator.identity_of(shown, None, self._desk.clock())
        except NotSignedInError as error:
            return _error(401, str(error), {"WWW-Authenticate": 'Bearer realm="acp-proxy"'})
        except LedgerError:
            return _error(503, "the hub's database does not answer")
        if not _may(who):
            return _error(403, "expected an administrator's token, or one with the scope scim")
        try:
            answered = await asyncio.to_thread(_protocol)
        except ImportError:
            return _error(501, "this hub has no SCIM: install the extra scim")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST:
                return _error(413, f"expected at most {_LARGEST} bytes")
        base, now = self._desk.url(request) + PREFIX, self._desk.clock()
        path = request.path_params["path"]
        asked = (request.method, f"/{path}", dict(request.query_params), list(request.headers.items()), bytes(body))
        rules = next(iter(self._desk.settings.provider), None)
        try:
            status, text, headers = await self._desk.ask(lambda store: answered(store, base, asked, rules, now))
        except LedgerError:
            return _error(503, "the hub's database does not answer")
        if request.method != "GET":
            self._desk.authenticator.forget()
        return Response(text, status, headers)


def _protocol() -> Callable[..., Answered]:
    """Takes a second to import, in which others are to be answered. Raises ImportError."""
    from acp_proxy.hub.scim.service import answered

    return answered


def _may(who: Identity) -> bool:
    return "scim" in who.scopes or (who.role == "administrator" and not who.scopes)


def _error(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"]
    text = orjson.dumps({"schemas": schemas, "status": str(status), "detail": detail})
    return Response(text, status, headers, "application/scim+json")
