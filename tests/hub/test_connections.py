"""Who dawdles at a hub is told so and cut, and who comes meanwhile is served."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from acp_proxy.hub import connections
from acp_proxy.hub.connections import LARGEST_HEAD, HubConnection
from harness.hub import served

QUICK = 0.2  # seconds
HEAD = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
MANY = 32 * 1024 * 1024  # bytes: more than a system keeps for who does not read


async def _body(request: Request) -> Response:
    return PlainTextResponse(await request.body())


async def _much(_: Request) -> Response:
    return Response(bytes(MANY))


@pytest.fixture
def port() -> Iterator[int]:
    routes = [Route("/body", _body, methods=["POST"]), Route("/much", _much), Route("/ok", lambda _: Response(b"ok"))]
    with served(Starlette(routes=routes)) as port:
        yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def is_answered(connection: socket.socket) -> bool:
    answer = b""
    try:
        connection.sendall(GET % b"ok")
        while not answer.endswith(b"\r\n\r\nok"):
            if not (data := connection.recv(4096)):
                return False
            answer += data
    except ConnectionError:
        return False
    return True


def rest(connection: socket.socket) -> bytes:
    """All that comes until the end; a reset is one, too."""
    found = b""
    try:
        while data := connection.recv(1 << 16):
            found += data
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize(
    "head",
    [
        b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 3 * LARGEST_HEAD,
        b"GET /" + b"x" * 2 * LARGEST_HEAD + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /ok HTTP/1.1\r\n" + b"X: y\r\n" * LARGEST_HEAD,
    ],
    ids=["a value without an end", "a long path", "many lines"],
)
def test_a_head_that_is_too_large_is_refused_before_its_end(port: int, head: bytes) -> None:
    with closing(connected(port)) as connection:
        connection.sendall(head)
        assert rest(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("half", [b"", GET[:9], HEAD, HEAD + b"12345"], ids=["nothing", "a head", "no body", "a body"])
def test_half_of_a_request_has_an_end(port: int, half: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", QUICK)
    monkeypatch.setattr(connections, "LONGEST_BODY", QUICK)
    with closing(connected(port)) as connection:
        connection.sendall(half)
        answer = rest(connection)
        assert answer.startswith(b"HTTP/1.1 408 ") if half else answer == b""


def test_who_reads_nothing_of_an_answer_is_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONGEST_PAUSE", QUICK)
    ended = threading.Event()
    lost = HubConnection.connection_lost

    def connection_lost(connection: HubConnection, error: Exception | None) -> None:
        lost(connection, error)
        ended.set()

    monkeypatch.setattr(HubConnection, "connection_lost", connection_lost)
    with closing(connected(port)) as slow, closing(connected(port)) as other:
        slow.sendall(GET % b"much")
        slow.recv(1)
        for _ in range(50):
            assert is_answered(other)
        assert ended.wait(60)
        assert len(rest(slow)) < MANY


def test_for_one_too_many_one_that_rests_gives_way(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HubConnection, "most", 4)
    with ExitStack() as stack:
        resting = [stack.enter_context(closing(connected(port))) for _ in range(4)]
        for connection in resting:
            assert is_answered(connection)
        with closing(connected(port)) as late:
            assert is_answered(late)
        assert sum(map(is_answered, resting)) == 3
