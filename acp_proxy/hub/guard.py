"""What holds of every request to a hub: its host, the site it comes from, and the headers of its answer."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acp_proxy.hub.api.problems import problem
from acp_proxy.serve.guard import HEADERS, OPEN_TO_ALL, is_foreign, name_of

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

API = "/v1/"  # asked with a token in a header, which no browser sends by itself


class Guard:
    """ASGI middleware. `hosts` are the names that it answers to, beside those of this machine and addresses."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(map(name_of, hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in there)]
            await send(message)

        refusal = self._refusal(scope)
        answer: ASGIApp = self._app if refusal is None else problem(*refusal)
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if not hosts and scope["path"] in OPEN_TO_ALL:
            return None
        if len(hosts) != 1 or not self._is_own(name_of(hosts[0])):
            return 403, "this host is not served here; url and listen.allowed_hosts of hub.toml name it"
        if not scope["path"].startswith(API) and is_foreign(headers, hosts[0]):
            return 403, "requests of other sites are refused"
        return None

    def _is_own(self, name: str) -> bool:
        """No name server can be put behind an address."""
        if name == "localhost" or name in self._hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True
