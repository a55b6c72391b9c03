"""What a hub serves: the API for proxies, the page for people, metrics for servers that collect them, and health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import cast

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, without_files
from acp_proxy.config.applied import catalog_of
from acp_proxy.hub.api import Api
from acp_proxy.hub.api.problems import RefusedError, problem
from acp_proxy.hub.auth.access_tokens import NotSignedInError
from acp_proxy.hub.auth.authenticator import Authenticator
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.auth.routes import routes as sign_in_routes
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.ledgers import Ledgers
from acp_proxy.hub.page.figures import Figures
from acp_proxy.hub.page.policies import Policies
from acp_proxy.hub.page.routes import Page
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.hub.request_pages import RequestPages
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store import AskedStore, Store
from acp_proxy.ledger import LedgerError, Warn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.metrics import CONTENT_TYPE, Exporter
from acp_proxy.otlp.exporting import Exporting
from acp_proxy.reconcile.fetching import Fetching
from acp_proxy.serve.scrapes import Scrapes

_LOOK = 600  # seconds between two looks whether the day is over


class Site:
    """`application` is ASGI without a guard. `clock` is Unix time in ns."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        warn: Warn,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.ledgers = Ledgers(settings.database.url, settings.database.connections, warn, clock)
        self.store = AskedStore(partial(self.ledgers.ask, writes=True), settings.organisation)
        self.authenticator = Authenticator(self.store)
        self._clock = clock
        config = _config(settings, environ)
        self._exporter = _exporter(config)
        self._figures = Figures(config, environ, warn, clock)
        self._senders = [
            sender
            for sender in (Exporting.of(config, environ, warn), _fetching(config, environ, warn, clock))
            if sender is not None
        ]
        self._retention, self._warn = settings.retention, warn
        api = Api(self.ledgers, self.identify, warn, clock=clock, lease=settings.lease, url=settings.url)
        routes = [Route("/metrics", self._metrics), Route("/healthz", self._health), Route("/livez", _alive)]
        desk = Desk(settings, self.store, self.authenticator, lambda: clock() // 10**9)
        deciding = RequestPages(desk, self.ledgers, clock).routes()
        page = [*Page(desk, self._figures).routes(), *Policies(desk, self.ledgers, clock).routes()]
        self.application = Starlette(routes=[*api.routes, *sign_in_routes(desk), *page, *deciding, *routes])
        self.application.router.redirect_slashes = False

    def close(self, within: float) -> None:
        self._figures.close(within / 2)
        self.ledgers.close(within / 2)

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Meanwhile telemetry goes where `[otlp]` says, or the environment, bills are fetched of `[bills]`, and what is
        too old is removed each day.
        """
        work = [sender.run() for sender in self._senders]
        if not self._retention.keeps_all:
            work.append(self._retain())
        running = [asyncio.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            for task in running:
                with suppress(asyncio.CancelledError):
                    await task

    async def _retain(self) -> None:
        while True:
            try:
                await self.store(self._retained)
            except LedgerError as error:
                self._warn("hub.not_retained", error=str(error))
            await asyncio.sleep(_LOOK)

    def _retained(self, store: Store) -> None:
        now = self._clock() // 10**9
        if store.retaining.is_due(now):
            store.retaining.run(self._retention, now)

    async def first_token(self) -> str | None:
        """An administrator's, where there is none yet. Raises LedgerError."""
        now = self._clock() // 10**9

        def first(store: Store) -> str | None:
            return store.tokens.first(now)

        return await self.store(first)

    async def identify(self, authorization: str | None, now: int) -> Identity:
        try:
            return await self.authenticator.identity_of(authorization, None, now)
        except NotSignedInError as error:
            raise RefusedError(401, f"{error}; acp-proxy login signs in") from error

    async def _metrics(self, request: Request) -> Response:
        try:
            who = await self.identify(request.headers.get("authorization"), self._clock() // 10**9)
            if not _collects(who):
                return problem(403, "metrics are of everybody; expected an administrator, or the scope metrics")
            text = await self.ledgers.ask(self._scraped, writes=False)
        except RefusedError as error:
            return problem(error.status, str(error), WWW_Authenticate='Basic realm="acp-proxy"')
        except LedgerError:
            text = self._exporter.without_ledger()
        return Response(text, media_type=CONTENT_TYPE)

    def _scraped(self, ledger: SqlLedger) -> bytes:
        return Scrapes(ledger, self._exporter).text()

    async def _health(self, _: Request) -> Response:
        try:
            await self.ledgers.ask(SqlLedger.clock_ahead, writes=False)
        except LedgerError:
            return PlainTextResponse("the ledger does not answer\n", 503)
        return PlainTextResponse("ok\n")


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _collects(who: Identity) -> bool:
    if who.role == "service":
        return "metrics" in who.scopes
    return who.role == "administrator" and who.may("metrics")


def _config(settings: Settings, environ: Mapping[str, str]) -> Config:
    config = without_files({"ledger": settings.database.url}, environ)
    identity = replace(config.identity, organisation=settings.organisation)
    return replace(config, identity=identity, otlp=settings.otlp, bills=settings.bills)


def _fetching(config: Config, environ: Mapping[str, str], warn: Warn, clock: Callable[[], int]) -> Fetching | None:
    catalog = catalog_of(config)
    policies = CurrentPolicies()

    def known(ledger: BudgetLedger) -> Catalog:
        """With the prices that the policy has."""
        policy = policies.of(cast(SqlLedger, ledger), config.identity.organisation).policy
        catalog.reprice(policy.prices)
        return catalog

    return Fetching.of(config, environ, warn, known, clock)


def _exporter(config: Config) -> Exporter:
    catalog = catalog_of(config)
    catalog.read()
    return Exporter(config, catalog)
