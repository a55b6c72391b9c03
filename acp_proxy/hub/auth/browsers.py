"""What people sign in by with a browser, and let their machines in."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from acp_proxy.hub.auth import pages
from acp_proxy.hub.auth.authenticator import csrf_of, is_own_request
from acp_proxy.hub.auth.claims import RefusedError, person, user_of
from acp_proxy.hub.auth.parts import Desk, FormError, address_of, form, is_own_page
from acp_proxy.hub.auth.provider import ProviderError
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.secrets import TOKEN, canonical_code
from acp_proxy.hub.store.tokens import Token
from acp_proxy.ledger import LedgerError

SESSION = 12 * 3600  # seconds that a browser stays signed in
_FLOW = 600  # seconds that somebody may take at the provider
_CALLBACK = "/signin/callback"


class Browsers:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/signin", _told(self.page), methods=["GET"]),
            Route("/signin", _told(self.by_token), methods=["POST"]),
            Route("/signin/start", _told(self.start), methods=["GET"]),
            Route(_CALLBACK, _told(self.callback), methods=["GET"]),
            Route("/signout", _told(self.sign_out), methods=["POST"]),
            Route("/device", _told(self.device), methods=["GET"]),
            Route("/device", _told(self.decide), methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        return pages.sign_in(list(self._desk.providers), _onward(request.query_params.get("next")))

    async def by_token(self, request: Request) -> Response:
        sent, now, address = await form(request), self._desk.clock(), address_of(request)
        onward = _onward(sent.get("next"))
        if not is_own_page(request):
            return pages.told("Not signed in", "Another site has sent this: open the hub's page itself.", 403)
        wait = await self._desk.ask(lambda store: store.limits.wait("verification", address, now))
        if wait:
            return _too_often(wait)
        shown = sent.get("token", "").strip()
        found = await self._desk.ask(lambda store: _person_of(store, shown, now))
        if isinstance(found, str):
            return pages.sign_in(list(self._desk.providers), onward, found)
        return await self._begin(request, found.user, found.id, onward, now)

    async def start(self, request: Request) -> Response:
        """To the provider."""
        provider = self._desk.providers.get(request.query_params.get("provider", ""))
        if provider is None:
            return pages.told("Not signed in", "This hub has no such provider.", 404)
        flow = secrets.token_urlsafe(32)
        url = await provider.begin(flow, self._desk.url(request) + _CALLBACK, self._desk.clock())
        answer, cookies = RedirectResponse(url, 303), self._desk.cookies(request)
        kept = [flow, provider.settings.name, _onward(request.query_params.get("next"))]
        cookies.put(answer, cookies.flow, urlsafe_b64encode(orjson.dumps(kept)).decode(), _FLOW)
        return answer

    async def callback(self, request: Request) -> Response:
        """From the provider."""
        cookies, now = self._desk.cookies(request), self._desk.clock()
        flow, name, onward = _kept(request.cookies.get(cookies.flow, ""))
        provider = self._desk.providers.get(name)
        if provider is None:
            raise RefusedError("this sign-in was begun in another browser, or long ago: begin anew")
        answered = dict(request.query_params)
        claims = await provider.finish(flow, self._desk.url(request) + _CALLBACK, answered, now)
        user = user_of(claims, provider.settings) or ""
        more = await self._desk.ask(lambda store: store.people.groups_of(user))
        arrived = person(claims, provider.settings, more)
        kept = await self._desk.ask(lambda store: store.people.arrive(arrived, arrived.user, now))
        if not kept.active:
            raise RefusedError("your account may not sign in any more: ask your administrator")
        answer = await self._begin(request, kept.user, None, onward, now)
        cookies.drop(answer, cookies.flow)
        return answer

    async def _begin(self, request: Request, user: str, parent: str | None, onward: str, now: int) -> Response:
        until, answer, cookies = now + SESSION, RedirectResponse(onward, 303), self._desk.cookies(request)
        await self._end(request.cookies.get(cookies.session, ""), now)
        secret, _ = await self._desk.ask(lambda store: store.tokens.begin_session(user, parent, now, until))
        cookies.put(answer, cookies.session, secret, SESSION)
        return answer

    async def sign_out(self, request: Request) -> Response:
        sent, cookies, now = await form(request), self._desk.cookies(request), self._desk.clock()
        cookie = request.cookies.get(cookies.session, "")
        if not is_own_request(cookie, sent.get("csrf") or request.headers.get("x-csrf")):
            return pages.told("Still signed in", "Another site has sent this.", 403)
        await self._end(cookie, now)
        answer = RedirectResponse("/signin", 303)
        cookies.drop(answer, cookies.session)
        return answer

    async def _end(self, cookie: str, now: int) -> None:
        """The session of a browser, where there is one that holds."""
        session = await self._desk.ask(lambda store: _session(store, cookie, now)) if cookie else None
        if session is not None:
            await self._desk.ask(lambda store: store.tokens.revoke(session.id, session.user, now))
            self._desk.authenticator.forget()

    async def device(self, request: Request) -> Response:
        typed, now, address = request.query_params.get("user_code"), self._desk.clock(), address_of(request)
        cookie = request.cookies.get(self._desk.cookies(request).session, "")
        session = await self._desk.ask(lambda store: _session(store, cookie, now))
        if session is None:
            onward = "/device" + (f"?{urlencode({'user_code': typed[:20]})}" if typed else "")
            return RedirectResponse(f"/signin?{urlencode({'next': onward})}", 303)
        if typed is None:
            return pages.code()
        wait = await self._desk.ask(lambda store: store.limits.wait("verification", address, now))
        if wait:
            return _too_often(wait)
        code = canonical_code(typed)
        waiting = await self._desk.ask(lambda store: store.devices.waiting(code, now))
        if waiting is None:
            return pages.code("No machine waits with this code. It may have expired, or been used.", 404)
        return pages.confirm(waiting, session.user, _bound(cookie, code))

    async def decide(self, request: Request) -> Response:
        sent, now = await form(request), self._desk.clock()
        cookie = request.cookies.get(self._desk.cookies(request).session, "")
        session = await self._desk.ask(lambda store: _session(store, cookie, now))
        code, allow = sent.get("user_code", ""), sent.get("decision") == "allow"
        if session is None or not hmac.compare_digest(_bound(cookie, code).encode(), sent.get("csrf", "").encode()):
            return pages.told("Not let in", "This page is too old, or another site has sent it: begin anew.", 403)
        user, parent = session.user, session.parent
        done = await self._desk.ask(lambda store: store.devices.decide(code, user, parent, now, allow=allow))
        if not done:
            return pages.code("No machine waits with this code. It may have expired, or been used.", 404)
        if not allow:
            return pages.told("Not let in", "The machine was told so.")
        return pages.told("Signed in", "Your machine goes on by itself. You can close this page.")


def _person_of(store: Store, shown: str, now: int) -> Token | str:
    """Whose token it is, or why nobody signs in by it."""
    found = store.tokens.find(shown, now) if shown.startswith(TOKEN) else None
    token, holder = found or (None, None)
    if token is None or holder is None:
        return "This token is not known, or has expired."
    if holder.role == "service" or holder.scopes:
        return "This token is for a program, and not for a page."
    return token


def _session(store: Store, cookie: str, now: int) -> Token | None:
    found = store.tokens.find(cookie, now)
    if found is None or found[0].kind != "session" or found[1] is None or not found[0].holds(now):
        return None
    return found[0]


def _bound(cookie: str, code: str) -> str:
    """Shows that this browser was shown this code: who only guesses codes has to ask for the page."""
    return csrf_of(f"{cookie} {code}")


def _onward(wanted: str | None) -> str:
    """A page of this hub, and no other site's."""
    if wanted and wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable():
        return wanted[:500]
    return "/"


def _kept(cookie: str) -> tuple[str, str, str]:
    """The secret, the provider and where to go on to, as `start` has kept them."""
    try:
        flow, provider, onward = orjson.loads(urlsafe_b64decode(cookie))
        return str(flow), str(provider), _onward(str(onward))
    except (ValueError, TypeError):
        return "", "", "/"


def _too_often(wait: int) -> Response:
    return pages.told("Too many tries", f"Too many codes were tried from here: wait {wait} seconds.", 429, wait)


def _told(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What goes wrong, as a page."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RefusedError as error:
            return pages.told("Not signed in", f"{error}.", 403)
        except ProviderError as error:
            return pages.told("Not signed in", f"{error}.", 502, 30)
        except FormError as error:
            return pages.told("Not signed in", f"{error}.", 400)
        except LedgerError:
            return pages.told("Not signed in", "The hub's database does not answer: try again in a minute.", 503, 30)

    return answer
