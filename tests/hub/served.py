"""The routes of sign-in under uvicorn on a port of loopback, with a real ledger and a clock that can be set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TypeVar

import uvicorn
from starlette.applications import Starlette

from acp_proxy.hub.auth.authenticator import Authenticator
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.auth.routes import routes
from acp_proxy.hub.guard import Guard
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store import AskedStore, Store
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.in_thread import InThread
from harness.daemons import until
from harness.ports import free_port

T = TypeVar("T")


class Served:
    """`ahead` are seconds that its clock is ahead of ours."""

    def __init__(self, ledger_url: str, settings: Settings) -> None:
        self.port = free_port()
        self.settings = settings
        self.ahead = 0
        self.guarded = True  # as the command has it; without, what the routes themselves hold is seen
        self.asked: list[str] = []  # paths
        self._thread: InThread[BudgetLedger] = InThread(
            lambda: open_ledger(ledger_url, journals=()), deadline=30, name="hub"
        )
        ask = AskedStore(self._thread.ask, settings.organisation)
        self.authenticator = Authenticator(ask)
        app = Starlette(routes=routes(Desk(settings, ask, self.authenticator, self.now)))
        guard = Guard(app, ())

        async def counted(scope: dict[str, object], receive: object, send: object) -> None:
            if scope["type"] == "http":
                self.asked.append(str(scope["path"]))
            await (guard if self.guarded else app)(scope, receive, send)  # type: ignore[arg-type]

        config = uvicorn.Config(counted, port=self.port, log_config=None, lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        self._ledger_url = ledger_url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def now(self) -> int:
        return int(time.time()) + self.ahead

    def store(self, question: Callable[[Store], T]) -> T:
        """Of the same database, from outside."""
        with closing(open_ledger(self._ledger_url, journals=())) as ledger:
            return question(Store(ledger.tables, self.settings.organisation))

    @contextmanager
    def running(self) -> Iterator[Served]:
        thread = threading.Thread(target=self._server.run, daemon=True)
        thread.start()
        until(lambda: self._server.started, "the hub serves")
        try:
            yield self
        finally:
            self._server.should_exit = True
            thread.join()
            with suppress(Exception):
                self._thread.close(5)
