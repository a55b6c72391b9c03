"""A hub with rows of two users, and a way to ask it as anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.hub.identity import Identity, Role
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.connection import written
from acp_proxy.ledger.hub.wire import Call
from harness import hub
from harness.rows import ALICE, NOON, row

MALLORY = replace(ALICE, user="mallory", team="red", project="shop")
BOB = replace(ALICE, user="bob", team="blue", project="secret-of-bob")

ROLES: tuple[Role, ...] = ("administrator", "finance", "lead", "developer", "service")
PEOPLE: dict[str, Identity] = {
    role: Identity("mallory", "default", "red", role, ("red",) if role == "lead" else (), role) for role in ROLES
}
PEOPLE["bob"] = Identity("bob", "default", "blue", "developer", (), "bob")
PEOPLE["blue"] = Identity("mallory", "default", "red", "lead", ("blue",), "blue")
PEOPLE["elsewhere"] = Identity("bob", "other", "blue", "administrator", (), "elsewhere")

Ask = Callable[..., tuple[int, bytes]]


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def address(ledger: str) -> Iterator[str]:
    """Of a hub to whose clock it is noon."""
    with closing(open_ledger(ledger, journals=())) as opened:
        opened.append([row(origin=MALLORY, id="row-of-mallory"), row(origin=BOB, id="row-of-bob")])
    with hub.running(ledger, PEOPLE, clock=lambda: NOON) as url:
        yield url


@pytest.fixture
def ask(address: str) -> Ask:
    """Asks as somebody; the status and the body of the answer."""

    def asked(who: str, call: Call[Any, Any], question: Any) -> tuple[int, bytes]:
        path, body = written(call, question)
        connection = HTTPConnection(address.removeprefix("http://"), timeout=20)
        with closing(connection):
            headers = {"Authorization": f"Bearer {who}", "Content-Type": "application/json"}
            connection.request(call.method, path, None if call.method == "GET" else body, headers)
            response = connection.getresponse()
            return response.status, response.read()

    return asked
