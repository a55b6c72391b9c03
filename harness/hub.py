"""A hub in a thread of this process, in front of a ledger: its API alone, for who asks as this or that identity."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.lease import Terms
from acp_proxy.core.entry import Origin
from acp_proxy.core.notice import Notice
from acp_proxy.hub.api import TERMS, Api
from acp_proxy.hub.api.claims import ByToken, Claims
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.connections import HubConnection
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.ledgers import Ledgers
from acp_proxy.ledger import Query, Row, Warn
from acp_proxy.ledger.budgets import Grant

ANYBODY = Identity("anybody", "default", None, "administrator")


class AsAsked:
    """`Claims` of a hub that believes everything: what is then tested is a ledger by its hub."""

    def __init__(self, who: Identity) -> None:
        pass

    def organisation(self, claimed: str) -> str:
        return claimed

    def origin(self, claimed: Origin) -> Origin:
        return claimed

    def row(self, claimed: Row, now: int) -> Row:
        return claimed

    def moved(self, claimed: Row, now: int) -> Row:
        return claimed

    def is_own(self, user: str) -> bool:
        return True

    def now(self, claimed: int, clock: int) -> int:
        return claimed

    def account(self, claimed: Account) -> Account:
        return claimed

    def user(self, asked: str | None) -> str | None:
        return asked

    def own(self, asked: str | None) -> str | None:
        return asked

    def writer(self, claimed: str) -> str:
        return claimed

    def team(self, claimed: str | None) -> str | None:
        return claimed

    def query(self, asked: Query) -> Query:
        return asked

    def session_of(self, asked: Origin) -> Origin:
        return asked

    def sees(self, origin: Origin) -> bool:
        return True

    def sees_user(self, user: str) -> bool:
        return True

    def sees_grant(self, grant: Grant) -> bool:
        return True

    def giver(self, grant: Grant) -> str:
        return grant.who

    def notice(self, claimed: Notice) -> Notice:
        return claimed


def _say_nothing(event: str, **fields: object) -> None:
    pass


@contextmanager
def running(
    ledger: str,
    people: Mapping[str, Identity] | None = None,
    claims: Callable[[Identity], Claims] = ByToken,
    clock: Callable[[], int] = time.time_ns,
    lease: Terms = TERMS,
    port: int = 0,
    warn: Warn = _say_nothing,
) -> Iterator[str]:
    """The URL of a hub for the ledger at a URL. `people` are identities by their token; without any it is `ANYBODY`."""
    ledgers = Ledgers(ledger, 4, warn, clock)

    async def identify(authorization: str | None, now: int) -> Identity:
        if people is None:
            return ANYBODY
        found = people.get((authorization or "").removeprefix("Bearer "))
        if found is None:
            raise RefusedError(401, "no token of this hub")
        return found

    api = Api(ledgers, identify, warn, claims=claims, clock=clock, lease=lease)
    try:
        with served(Starlette(routes=api.routes), port) as at:
            yield f"http://127.0.0.1:{at}"
    finally:
        ledgers.close(5.0)


@contextmanager
def served(application: Starlette, port: int = 0) -> Iterator[int]:
    """The port at which an application answers."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(
            uvicorn.Config(application, http=HubConnection, log_config=None, lifespan="off", access_log=False)
        )
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)
