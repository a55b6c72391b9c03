"""Somebody with a browser, who signs in by a token and lets machines in."""

from __future__ import annotations

import re

import httpx2

from acp_proxy.hub.identity import Role
from acp_proxy.hub.store.tokens import Asked
from tests.hub.served import Served


def token_of(hub: Served, user: str = "alice", role: Role = "developer") -> str:
    """That an administrator made."""
    asked = Asked("a token", user, role, "core")
    return hub.store(lambda store: store.tokens.make(asked, "admin", hub.now()))[0]


class Person:
    """Somebody with a browser, who signs in by a token and lets in what waits with a code."""

    def __init__(self, hub: Served, token: str) -> None:
        self._hub = hub
        self._cookies = httpx2.Cookies()
        self._sends("POST", "/signin", {"token": token})
        self.seen = list[str]()

    def reads(self, said: str) -> None:
        """What a terminal says, and does what it wants."""
        self._decides(said, "allow")

    def refuses(self, said: str) -> None:
        self._decides(said, "deny")

    def _decides(self, said: str, decision: str) -> None:
        url = re.search(r"http://\S+", said)
        assert url
        page = self._sends("GET", url[0])
        self.seen.append(page)
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
        self._sends("POST", "/device", fields | {"decision": decision})

    def _sends(self, method: str, url: str, form: dict[str, str] | None = None) -> str:
        with httpx2.Client(base_url=self._hub.url, cookies=self._cookies) as browser:
            answer = browser.request(method, url, data=form)
            self._cookies = browser.cookies
            return answer.text
