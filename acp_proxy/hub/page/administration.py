"""Administration on the page: people, machines, tokens, keys and the log of changes; for administrators alone.

What others administer, budgets among it, is on the same page, and told by `policies`.

Every change goes through the store, which writes its line into the log in the same transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.resources import files
from typing import Any, Final, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.page import records
from acp_proxy.hub.page.parts import REFUSALS, Endpoint, answered, browser_of, changed, refused, signed_in
from acp_proxy.hub.page.policies import READERS
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.audit import Wanted
from acp_proxy.ledger.hub.wire import NDJSON
from acp_proxy.serve.assets import asset
from acp_proxy.serve.site import asked_of, send_asset

ADMINISTRATORS: Final[tuple[Role, ...]] = ("administrator",)
_PATH = "/api/administration"
_AS_FILE = {"Content-Disposition": 'attachment; filename="acp-proxy-audit.jsonl"'}

T = TypeVar("T")


class Administration:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        page = files("acp_proxy.hub.page").joinpath("files", "administration.html").read_bytes()
        self._page = asset("administration.html", page)

    def routes(self) -> list[Route]:
        return [
            Route("/administration", self.page, methods=["GET"]),
            *(Route(f"{_PATH}/{name}", self._reads(read), methods=["GET"]) for name, read in records.READS.items()),
            Route(f"{_PATH}/audit.jsonl", self.log, methods=["GET"]),
            self._changes("tokens", records.NewToken, records.make_token),
            self._changes("tokens/revoked", records.Ended, records.revoke_token),
            self._changes("machines/ended", records.Ended, records.end_machine),
            self._changes("keys", records.Rotation, records.rotate_keys),
        ]

    async def page(self, request: Request) -> Response:
        return await signed_in(self._desk, request, READERS, lambda _: send_asset(self._page, request))

    async def log(self, request: Request) -> Response:
        """All of it that is wanted, as a file."""

        async def lines(wanted: Wanted) -> AsyncIterator[bytes]:
            after = 0
            while found := await self._desk.ask(partial(_after, after, wanted)):
                after, text = found
                yield text

        try:
            await browser_of(self._desk, request, ADMINISTRATORS)
            wanted = records.wanted(asked_of(request))
        except REFUSALS as error:
            return refused(error)
        return StreamingResponse(lines(wanted), media_type=NDJSON, headers=_AS_FILE)

    def _reads(self, read: Callable[[Store, dict[str, str], int], Any]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            async def question(_: Identity) -> bytes:
                given, now = asked_of(request), self._desk.clock()
                return orjson.dumps(await self._desk.ask(lambda store: read(store, given, now)))

            return await answered(self._desk, request, ADMINISTRATORS, question)

        return endpoint

    def _changes(self, name: str, kind: type[T], change: Callable[[Store, T, str, int], Any]) -> Route:
        async def work(who: Identity, given: T) -> bytes:
            done = await self._desk.ask(lambda store: change(store, given, who.user, self._desk.clock()))
            self._desk.authenticator.forget()  # what was ended holds no more on this hub
            return orjson.dumps(done)

        endpoint = partial(changed, self._desk, roles=ADMINISTRATORS, kind=kind, change=work)
        return Route(f"{_PATH}/{name}", endpoint, methods=["POST"])


def _after(number: int, wanted: Wanted, store: Store) -> tuple[int, bytes] | None:
    return store.audit.exported_after(number, wanted)
