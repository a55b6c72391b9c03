"""The page that a notice of a request for more leads to: what is asked, and a form to decide on it. No script."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from acp_proxy.core.budget.requests import Decision, MoreRequest
from acp_proxy.core.money import Money, budget_text, exact_text, is_money
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.hub.api import requests
from acp_proxy.hub.api.claims import ByToken
from acp_proxy.hub.api.desk import Desk as ApiDesk
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.auth import pages
from acp_proxy.hub.auth.access_tokens import NotSignedInError
from acp_proxy.hub.auth.authenticator import csrf_of
from acp_proxy.hub.auth.parts import Desk, FormError, form
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.ledgers import Ledgers
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.hub import asking
from acp_proxy.ledger.sql_ledger import SqlLedger

_LASTING = {"2h": ("2 hours", 2 * HOUR), "1d": ("a day", DAY), "7d": ("7 days", 7 * DAY), "31d": ("31 days", 31 * DAY)}


class RequestPages:
    """`clock` is Unix time in ns."""

    def __init__(self, desk: Desk, ledgers: Ledgers, clock: Callable[[], int]) -> None:
        self._desk = desk
        self._ledgers = ledgers
        self._clock = clock
        self._policies = CurrentPolicies()

    def routes(self) -> list[Route]:
        return [Route("/requests/{id}", self._answer, methods=["GET", "POST"])]

    async def _answer(self, request: Request) -> Response:
        cookie = request.cookies.get(self._desk.cookies(request).session, "")
        try:
            who = await self._desk.authenticator.identity_of(None, cookie, self._desk.clock())
        except NotSignedInError:
            return RedirectResponse(f"/signin?{urlencode({'next': request.url.path})}", 303)
        except LedgerError:
            return pages.told("Not now", "The hub's database does not answer: try again in a moment.", 503)
        try:
            if request.method == "GET":
                return await self._page(request, who, cookie)
            return await self._decided(request, who, cookie)
        except RefusedError as error:
            return pages.told("Not decided", f"{error}.", error.status)
        except FormError as error:
            return pages.told("Not decided", f"{error}.", 400)
        except LedgerError:
            return pages.told("Not decided", "The hub's database does not answer: try again in a moment.", 503)

    async def _page(self, request: Request, who: Identity, cookie: str) -> Response:
        found = await self._found(request, who)
        return _page(found, requests.may_decide(who, found), _bound(cookie, found.wish.id))

    async def _decided(self, request: Request, who: Identity, cookie: str) -> Response:
        found, sent = await self._found(request, who), await form(request)
        if not hmac.compare_digest(_bound(cookie, found.wish.id).encode(), sent.get("csrf", "").encode()):
            raise RefusedError(403, "this page is too old, or another site has sent it: open it anew")
        decision = _decision(found, sent, self._clock())
        await self._ledgers.ask(lambda ledger: requests.decide(self._at(ledger, who), decision), writes=True)
        return RedirectResponse(request.url.path, 303)

    async def _found(self, request: Request, who: Identity) -> MoreRequest:
        wanted = asking.Wanted(id=request.path_params["id"])
        found = await self._ledgers.ask(lambda ledger: requests.search(self._at(ledger, who), wanted), writes=True)
        if not found:
            raise RefusedError(404, "there is no such request, or it is not for you to see")
        return found[0]

    def _at(self, ledger: SqlLedger, who: Identity) -> ApiDesk:
        return ApiDesk(ledger, who, ByToken(who), self._clock(), self._policies)


def _decision(request: MoreRequest, sent: dict[str, str], now: int) -> Decision:
    note = sent.get("note", "").strip()
    if sent.get("decision") != "approve":
        return Decision(request.wish.id, approve=False, note=note)
    if sent.get("lasting") not in _LASTING:
        raise RefusedError(400, "expected how long it is to last")
    until = now + _LASTING[sent["lasting"]][1]
    return Decision(request.wish.id, True, _amount(sent.get("amount", ""), request.wish.unit), until, note)


def _amount(text: str, unit: str) -> int:
    try:
        return Money.of(text.strip(), unit).nano if is_money(unit) else int(text)
    except (ValueError, ArithmeticError):
        raise RefusedError(400, "expected an amount above 0") from None


def _page(request: MoreRequest, may_decide: bool, csrf: str) -> Response:
    wish = request.wish
    told = [
        ("Who", f"{request.user}{f' (team {request.team})' if request.team else ''}"),
        ("Budget", f"{wish.budget}{f' ({wish.per} {wish.value})' if wish.per else ''}"),
        ("More", _text(wish.amount, wish.unit)),
        ("Why", wish.why),
    ]
    if request.state != "pending":
        granted = f": {_text(request.amount, wish.unit)}" if request.amount else ""
        told += [("State", f"{request.state} by {request.decided_by}{granted}"), ("Note", request.note or "-")]
    body = f"<dl>{''.join(f'<dt>{name}</dt><dd>{escape(value)}</dd>' for name, value in told)}</dl>"
    if request.state == "pending":
        body += _form(request, csrf) if may_decide else "<p>It waits for a lead or an administrator.</p>"
    return pages.page("A request for more", body)


def _form(request: MoreRequest, csrf: str) -> str:
    lasting = "".join(f'<option value="{value}">{text}</option>' for value, (text, _) in _LASTING.items())
    return f"""
<form method="post">
<input type="hidden" name="csrf" value="{escape(csrf)}">
<label for="amount">Amount ({escape(request.wish.unit)})</label>
<input id="amount" name="amount" value="{escape(exact_text(request.wish.amount, request.wish.unit))}" required>
<label for="lasting">For</label>
<select id="lasting" name="lasting">{lasting}</select>
<label for="note">Note</label>
<input id="note" name="note" maxlength="500">
<button name="decision" value="approve">Approve</button>
<button class="quiet" name="decision" value="deny">Deny</button>
</form>"""


def _text(amount: int, unit: str) -> str:
    return f"{budget_text(amount, unit, amount)}{'' if is_money(unit) else f' {unit}'}"


def _bound(cookie: str, id: str) -> str:
    """Shows that this browser was shown this request."""
    return csrf_of(f"{cookie} {id}")
