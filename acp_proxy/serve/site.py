"""The routes: the thread for each request, and the HTTP response.

Nothing is imported or read from the package after the start: it may be updated while the server runs.
"""

from __future__ import annotations

import asyncio
import gzip
import zoneinfo  # noqa: F401  `times` imports it when it is asked for a zone
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from acp_proxy.config import Config
from acp_proxy.config.applied import catalog_of
from acp_proxy.config.values import Otlp
from acp_proxy.ledger import LedgerError, Warn, open_ledger
from acp_proxy.ledger.accounts import live_standings  # noqa: F401  a reader imports it when it is asked for budgets
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.ledger.sqlite.soundness import fault_in
from acp_proxy.log import Log
from acp_proxy.metrics import CONTENT_TYPE, Exporter
from acp_proxy.serve.assets import Asset, page_assets
from acp_proxy.serve.questions import BadQuestionError
from acp_proxy.serve.scrapes import Scrapes
from acp_proxy.serve.views import VIEWS, Views

if TYPE_CHECKING:
    from acp_proxy.notify.notifier import Notifier
    from acp_proxy.otlp.exporting import Exporting
    from acp_proxy.reconcile.fetching import Fetching

_PAGE_DEADLINE = 10.0  # seconds
_SCRAPE_DEADLINE = 8.0  # Prometheus waits for 10
_PATIENCE = 2.0  # seconds that a call of the ledger waits for writers
_WORTH_ZIPPING = 1024  # bytes

S = TypeVar("S", Views, Scrapes)
T = TypeVar("T")
_Answer = Callable[[Request], Awaitable[Response]]


class Site:
    """`application` is ASGI without a guard. The ledger is read by a thread for the page, and one for scrapes.

    Raises ConfigError for a `[[notify]]` whose URL cannot be read, and for an `[otlp]` that cannot be used.
    """

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        warn = partial(Log(config.log.level, config.log.file), "warning")
        catalog = catalog_of(config)
        catalog.read()
        self._exporter = Exporter(config, catalog)
        self._url = config.ledger.url

        def opened() -> BudgetLedger:
            return self._read(lambda: open_ledger(config.ledger.url, patience=_PATIENCE, warn=warn))

        self._page = InThread(lambda: Views(opened(), config, environ), deadline=_PAGE_DEADLINE, name="acp-proxy page")
        self._scrapes = InThread(
            lambda: Scrapes(opened(), self._exporter), deadline=_SCRAPE_DEADLINE, name="acp-proxy scrapes"
        )
        routes = [Route(path, partial(send_asset, asset)) for path, asset in page_assets().items()]
        routes += [Route(path, self._json(view)) for path, view in VIEWS.items()]
        routes += [Route("/metrics", self._metrics), Route("/healthz", self._health), Route("/livez", _alive)]
        senders = _notifier(config, warn), _exporting(config, environ, warn), _fetching(config, environ, warn)
        self._senders = [sender for sender in senders if sender]
        self._warn = warn
        self._away = False
        self.application = Starlette(routes=routes, lifespan=self._sending)
        self.application.router.redirect_slashes = False

    def open(self) -> None:
        """Open the ledger, and make it where it is not there. Raises LedgerError, which the log need not tell again."""
        self._away = True
        self._page.open()
        self._away = False

    def close(self, within: float) -> None:
        self._scrapes.close(within / 2)
        self._page.close(within / 2)

    @asynccontextmanager
    async def _sending(self, _: Starlette) -> AsyncIterator[None]:
        """While it serves, `[[notify]]` and `[otlp]` say what is sent where, and `[bills]` which bills are fetched."""
        running = [asyncio.create_task(sender.run()) for sender in self._senders]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            for task in running:
                with suppress(asyncio.CancelledError):
                    await task

    async def _health(self, _: Request) -> Response:
        try:
            said = await self._ask(self._page, Views.health)
        except LedgerError:
            return PlainTextResponse("the ledger does not answer\n", 503)
        return PlainTextResponse(f"{said}\n")

    async def _metrics(self, request: Request) -> Response:
        """Responds without a ledger, too: counters must not decrease, and its absence is a metric."""
        try:
            text = await self._ask(self._scrapes, lambda scrapes: self._read(scrapes.text))
        except LedgerError:
            text = self._exporter.without_ledger()
        return sent(request, text, CONTENT_TYPE)

    async def _ask(self, ledger: InThread[S], question: Callable[[S], T]) -> T:
        """The answer. The first that there is not, and the first again, is logged. Raises LedgerError."""
        try:
            answer = await ledger.ask(question)
        except LedgerError as error:
            if not self._away:
                self._away = True
                self._warn("ledger.unavailable", error=str(error))
            raise
        if self._away:
            self._away = False
            self._warn("ledger.answers")
        return answer

    def _read(self, asked: Callable[[], T]) -> T:
        """Raises LedgerError for what is the fault of a ledger that another program has changed."""
        try:
            return asked()
        except (LedgerError, BadQuestionError):
            raise
        except Exception as error:
            if fault := fault_in(self._url):
                raise fault from error
            raise

    def _json(self, view: Callable[[Views, Mapping[str, str]], bytes]) -> _Answer:
        async def answer(request: Request) -> Response:
            try:
                asked = asked_of(request)
                body = await self._ask(self._page, lambda views: self._read(lambda: view(views, asked)))
            except BadQuestionError as error:
                return _json_error(error.status, str(error))
            except LedgerError as error:
                return _json_error(503, str(error))
            return sent(request, body, "application/json")

        return answer


async def _alive(_: Request) -> Response:
    """Without the ledger: one that does not answer is no reason to start the server anew."""
    return PlainTextResponse("ok\n")


def _notifier(config: Config, warn: Warn) -> Notifier | None:
    if not config.channels:
        return None
    from acp_proxy.notify.notifier import Notifier  # without channels its HTTP client is not imported

    return Notifier.of(config, warn)


def _exporting(config: Config, environ: Mapping[str, str], warn: Warn) -> Exporting | None:
    if not any(name.startswith("OTEL_") for name in environ) and config.otlp == Otlp():
        return None
    from acp_proxy.otlp.exporting import Exporting  # nor is it without a receiver

    return Exporting.of(config, environ, warn)


def _fetching(config: Config, environ: Mapping[str, str], warn: Warn) -> Fetching | None:
    if not config.bills:
        return None
    from acp_proxy.reconcile.fetching import Fetching  # few have a key for it

    return Fetching.of(config, environ, warn)


def asked_of(request: Request) -> dict[str, str]:
    """The query. Raises BadQuestionError for a name that comes twice."""
    pairs = request.query_params.multi_items()
    asked = dict(pairs)
    if len(asked) < len(pairs):
        raise BadQuestionError("a parameter is given twice")
    return asked


def _json_error(status: int, text: str) -> Response:
    return Response(orjson.dumps({"error": text}), status, media_type="application/json")


def sent(request: Request, body: bytes, content_type: str) -> Response:
    headers = {"Vary": "Accept-Encoding"}
    if len(body) >= _WORTH_ZIPPING and _takes_gzip(request):
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
    return Response(body, headers=headers, media_type=content_type)


async def send_asset(asset: Asset, request: Request) -> Response:
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if asset.etag in [etag.strip().removeprefix("W/") for etag in request.headers.get("if-none-match", "").split(",")]:
        return Response(None, 304, headers)
    if not _takes_gzip(request):
        return Response(asset.body, headers=headers, media_type=asset.type)
    return Response(asset.zipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.type)


def _takes_gzip(request: Request) -> bool:
    offers = (offer.strip().lower().partition(";") for offer in request.headers.get("accept-encoding", "").split(","))
    return any(
        name.strip() == "gzip" and quality.replace(" ", "") not in ("q=0", "q=0.0") for name, _, quality in offers
    )
