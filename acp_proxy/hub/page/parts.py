"""What the routes of the page share: who has signed in with a browser, and answers to them as pages and as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec
import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.auth import pages
from acp_proxy.hub.auth.access_tokens import NotSignedInError
from acp_proxy.hub.auth.authenticator import is_own_request
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.store.secrets import SESSION
from acp_proxy.ledger import LedgerError
from acp_proxy.serve.questions import BadQuestionError
from acp_proxy.serve.site import sent
from acp_proxy.system.decoding import json_decoder

PEOPLE: Final[tuple[Role, ...]] = ("administrator", "finance", "lead", "developer")
REFUSALS: Final = (NotSignedInError, RefusedError, BadQuestionError, LedgerError)
_LARGEST = 64 * 1024  # bytes of a change

Endpoint = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


async def signed_in(
    desk: Desk, request: Request, roles: tuple[Role, ...], page: Callable[[Identity], Awaitable[Response]]
) -> Response:
    """A page, or the one on which to sign in."""
    try:
        who = await browser_of(desk, request, roles)
    except NotSignedInError:
        path = request.url.path
        return RedirectResponse("/signin" + ("" if path == "/" else f"?{urlencode({'next': path})}"), 303)
    except RefusedError:
        return pages.told("Not for you", "This page is for another role. The hub's own page shows what is yours.", 403)
    except LedgerError:
        return pages.told("Not now", "The hub's database does not answer: try again in a minute.", 503, 30)
    return await page(who)


async def answered(
    desk: Desk, request: Request, roles: tuple[Role, ...], question: Callable[[Identity], Awaitable[bytes]]
) -> Response:
    """JSON, or one line of what is wrong. What the database says of itself is for nobody in a browser."""
    try:
        body = await question(await browser_of(desk, request, roles))
    except REFUSALS as error:
        return refused(error)
    return sent(request, body, "application/json")


async def browser_of(desk: Desk, request: Request, roles: tuple[Role, ...]) -> Identity:
    """Who has signed in with it. Raises NotSignedInError, RefusedError and LedgerError."""
    cookie = request.cookies.get(desk.cookies(request).session)
    if not (cookie or "").startswith(SESSION):
        raise NotSignedInError("nobody has signed in here")
    who = await desk.authenticator.identity_of(None, cookie, desk.clock())
    if who.role not in roles or who.scopes:
        raise RefusedError(403, f"not for the role {who.role}" if who.role not in roles else "not for this token")
    return who


def refused(error: Exception) -> Response:
    match error:
        case NotSignedInError():
            status, text = 401, f"{error}: load this page again"
        case RefusedError() | BadQuestionError():
            status, text = error.status, str(error)
        case _:
            status, text = 503, "the hub's database does not answer: try again in a minute"
    return Response(orjson.dumps({"error": text}), status, media_type="application/json")


async def changed(
    desk: Desk,
    request: Request,
    roles: tuple[Role, ...],
    kind: type[T],
    change: Callable[[Identity, T], Awaitable[bytes]],
) -> Response:
    """The same for what changes something: a page of ours has sent it, as its token against CSRF shows."""
    cookie = request.cookies.get(desk.cookies(request).session, "")

    async def question(who: Identity) -> bytes:
        if not is_own_request(cookie, request.headers.get("x-csrf")):
            raise RefusedError(403, "this was not sent by a page of this hub: load it again")
        return await change(who, await _sent(request, kind))

    return await answered(desk, request, roles, question)


async def _sent(request: Request, kind: type[T]) -> T:
    """The body of a request. Raises BadQuestionError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadQuestionError("expected application/json", 415)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise BadQuestionError(f"expected at most {_LARGEST} bytes", 413)
    try:
        return json_decoder(kind).decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadQuestionError(" ".join(str(error).split())) from error
