"""A whole hub on loopback with rows of three people in two teams, and browsers of people of each role."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, TypeVar
from urllib.parse import urlencode

import uvicorn
from msgspec.structs import replace

from acp_proxy.core.budget.requests import Wish
from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import NANO
from acp_proxy.hub.auth.browsers import SESSION
from acp_proxy.hub.guard import Guard
from acp_proxy.hub.identity import Role
from acp_proxy.hub.settings import Database, Settings
from acp_proxy.hub.site import Site
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub import asking
from harness.daemons import until
from harness.rows import ALICE, line, row

HOUR = 3600 * 10**9
ROLES: tuple[Role, ...] = ("administrator", "finance", "lead", "developer", "service")
ORIGINS = {
    user: replace(ALICE, user=user, team=team, project=f"project-of-{user}", host=f"laptop-of-{user}")
    for user, team in (("mallory", "red"), ("ruby", "red"), ("bob", "blue"))
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    cookies: list[str]  # of `Set-Cookie`
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Hub:
    """`ahead` are seconds that its clock is ahead of ours."""

    def __init__(self, ledger: str, settings: Settings) -> None:
        self.ahead = 0
        self.ledger = ledger
        self.settings = replace(settings, database=Database(ledger))
        self.site = Site(self.settings, {}, lambda event, **fields: None, lambda: time.time_ns() + self.ahead * 10**9)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def now(self) -> int:
        return int(time.time()) + self.ahead

    def store(self, question: Callable[[Store], T]) -> T:
        with closing(open_ledger(self.ledger, journals=())) as ledger:
            return question(Store(ledger.tables, self.settings.organisation))

    def token(self, user: str, role: Role, team: str | None = None, *scopes: str, leads: tuple[str, ...] = ()) -> str:
        asked = Asked(f"{user}'s", user, role, team, leads, scopes)
        return self.store(lambda store: store.tokens.make(asked, "test", self.now()))[0]

    def ask(self, path: str, cookie: str = "", method: str = "GET", body: str = "", **headers: str) -> Answer:
        """Headers have `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | (
            {"Cookie": cookie} if cookie else {}
        )
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body or None, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.headers.get_all("set-cookie") or [], response.read())

    def sign_in(self, token: str, cookie: str = "", **headers: str) -> Answer:
        form = {"Content_Type": "application/x-www-form-urlencoded"} | headers
        return self.ask("/signin", cookie, "POST", urlencode({"token": token}), **form)

    def cookie(self, user: str, role: Role, team: str | None = None, leads: tuple[str, ...] = ()) -> str:
        """Of a browser that has signed in by a token; an address may do that ten times in ten minutes."""
        shown, now = self.token(user, role, team, leads=leads), self.now()

        def begun(store: Store) -> str:
            found = store.tokens.find(shown, now)
            assert found
            return store.tokens.begin_session(user, found[0].id, now, now + SESSION)[0]

        return f"acp-proxy={self.store(begun)}"

    def csrf(self, cookie: str) -> str:
        return str(self.ask("/oauth/whoami", cookie).json["csrf"])

    def change(self, path: str, cookie: str, value: object) -> Answer:
        """As a page of the hub does it."""
        return self.ask(
            path, cookie, "POST", json.dumps(value), Content_Type="application/json", X_CSRF=self.csrf(cookie)
        )

    @contextmanager
    def running(self) -> Iterator[Hub]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            app = Guard(self.site.application, ("hub.example.org",))
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", access_log=False))
            thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
            thread.start()
            until(lambda: server.started, "the hub serves")
            try:
                yield self
            finally:
                server.should_exit = True
                thread.join()
                self.site.close(5)


def cookie_of(hub: Hub, role: Role) -> str:
    """Of mallory's browser, in the team red, which she leads as a lead."""
    return hub.cookie("mallory", role, "red", ("red",) if role == "lead" else ())


def ask_for_more(hub: Hub) -> None:
    """Each of the three for themselves."""
    for user, origin in ORIGINS.items():
        wish = Wish(f"wish-of-{user}", "hub", "each", "user", user, 2 * NANO, "USD", f"reasons of {user}")
        fields = {name: getattr(wish, name) for name in wish.__struct_fields__}
        token = hub.token(user, "developer", origin.team)
        headers = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
        answer = hub.ask(asking.ASK.path, "", "POST", json.dumps(fields), **headers)
        assert answer.status == 200, answer.body


def fill(ledger: str, now: int) -> None:
    """A session of each with one turn, of another cost for each."""
    with closing(open_ledger(ledger, journals=())) as opened:
        for place, (user, origin) in enumerate(ORIGINS.items()):
            spent = line("opus", f"{place + 1}.{place + 1}7")
            state = SessionState(title=f"title of {user}")
            opened.append(
                [row(spent, origin=origin, id=f"row-of-{user}", session=f"s-{user}", at=now - HOUR, state=state)]
            )
