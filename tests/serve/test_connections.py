"""Clients that dawdle, do not read, say no HTTP or come in great numbers: none of them keeps others waiting."""

from __future__ import annotations

import asyncio
import select
import socket
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from acp_proxy.serve import connections
from acp_proxy.serve.connections import (
    LARGEST_HEAD,
    LONGEST_HEAD,
    MOST,
    MOST_ASKED,
    MOST_UNASKED,
    BoundedProtocol,
    Crowd,
)
from tests.pace import slower
from tests.serve.house import Home, Served

pytestmark = pytest.mark.xdist_group("connections")  # one server for all tests of it


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Home(tmp_path_factory.mktemp("home")).serving() as served:
        yield served


@pytest.mark.parametrize("times", [2, 10, 100])
def test_a_head_without_end_is_refused_with_what_was_expected(served: Served, times: int) -> None:
    endless = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (times * LARGEST_HEAD)
    with served.connected() as connection:
        connection.sendall(endless)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.endswith(b"\r\n\r\nexpected at most 16384 bytes of line and headers\n")
    assert served.ask("/healthz").status == 200


@pytest.mark.parametrize("apart", [False, True])
def test_a_body_that_is_none_leaves_nothing_in_the_log(tmp_path: Path, apart: bool) -> None:
    head, body = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"no length\r\n"
    with Home(tmp_path).serving() as served, served.connected() as connection:
        connection.sendall(head if apart else head + body)
        answer = connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 405 " if apart else b"HTTP/1.1 400 ")
        if apart:
            connection.sendall(body)
        while connection.recv(4096):
            pass
        assert served.end() == 0
        assert served.process.stderr
        assert served.process.stderr.read() == ""


def test_who_sends_on_when_refused_is_cut(served: Served) -> None:
    began = time.monotonic()
    with served.connected() as connection, suppress(ConnectionError):
        while time.monotonic() - began < 3 * LONGEST_HEAD:
            connection.sendall(b"\0" * 4096)
            select.select([], [], [], 0.05)
    assert time.monotonic() - began < 2 * LONGEST_HEAD * slower()


@pytest.mark.parametrize(
    "raw", [b"\r\n\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_http_does_no_harm(served: Served, raw: bytes) -> None:
    with served.connected() as connection:
        connection.sendall(raw)
    assert served.ask("/healthz").status == 200


def test_clients_that_dawdle_keep_nobody_waiting(served: Served) -> None:
    dawdling = [served.connected() for _ in range(MOST + 20)]
    try:
        for connection in dawdling:
            connection.sendall(b"G")
        with ThreadPoolExecutor(8) as clients:
            began = time.monotonic()
            answers = list(clients.map(served.ask, ["/healthz", "/", "/api/live", "/api/spend"] * 4))
            assert {answer.status for answer in answers} == {200}
            assert time.monotonic() - began < 5 * slower()
    finally:
        for connection in dawdling:
            connection.close()


def test_clients_that_have_asked_and_stay_keep_nobody_waiting(served: Served) -> None:
    staying = []
    try:
        for _ in range(MOST + 20):
            connection = served.connected()
            staying.append(connection)
            connection.sendall(b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(1024).startswith(b"HTTP/1.1 404 ")
        assert served.ask("/healthz").status == 200
    finally:
        for connection in staying:
            connection.close()


def test_clients_that_do_not_read_keep_nobody_waiting(served: Served) -> None:
    question = b"GET /uplot.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    deaf = []
    try:
        for _ in range(MOST + 20):
            deaf.append(small := socket.socket())
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            small.connect(("127.0.0.1", served.port))
            small.sendall(question * 12)  # the system would keep ten of these answers, and the server one
        assert [served.ask("/healthz").status for _ in range(20)] == [200] * 20
    finally:
        for connection in deaf:
            connection.close()


def test_an_answer_that_is_taken_slowly_is_whole(served: Served) -> None:
    whole = served.ask("/uplot.js").body
    with socket.socket() as small:
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        small.settimeout(30)
        small.connect(("127.0.0.1", served.port))
        small.sendall(b"GET /uplot.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: small.recv(512), b""))
    assert answer.partition(b"\r\n\r\n")[2] == whole


def test_who_comes_from_an_address_of_many_gives_way_to_others(served: Served) -> None:
    """A line of Linux has all of 127.0.0.0/8 to itself."""
    with served.connected() as first:
        many = [
            socket.create_connection(("127.0.0.1", served.port), source_address=("127.0.0.2", 0)) for _ in range(300)
        ]
        try:
            first.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert first.recv(1024).startswith(b"HTTP/1.1 200 ")
        finally:
            for connection in many:
                connection.close()


def test_a_request_that_comes_byte_by_byte_is_cut(served: Served) -> None:
    """The first of a connection, the next one, and a body that nobody waits for. So is who says nothing at all."""
    silent = served.connected()
    head = b"Host: localhost\r\nX: "
    asked = (
        b"GET / HTTP/1.1\r\n" + head,
        b"HEAD /livez HTTP/1.1\r\n" + head + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n" + head + b"\r\n\r\n",
    )
    connections = [served.connected() for _ in asked]
    for connection, question in zip(connections, asked, strict=True):
        connection.sendall(question)
    for connection in connections[1:]:
        assert connection.recv(4096).startswith(b"HTTP/1.1 ")
    began = time.monotonic()
    while connections and time.monotonic() - began < LONGEST_HEAD + 60:
        connections = [each for each in connections if not hung_up(each)]
        select.select(connections, [], [], 0.5)
    assert not connections
    assert silent.recv(1) == b""
    silent.close()


def hung_up(connection: socket.socket) -> bool:
    """After one byte more."""
    try:
        connection.sendall(b"x")
        while select.select([connection], [], [], 0)[0]:
            if not connection.recv(4096):
                break
        else:
            return False
    except OSError:
        pass
    connection.close()
    return True


class Ends:
    """Of connections to a server of this process that has an application for a while."""

    def __init__(self, application: ASGIApp) -> None:
        self._config, self.state = uvicorn.Config(application, lifespan="off", log_config=None), ServerState()
        self._writers: list[asyncio.StreamWriter] = []
        self.one_is_over = asyncio.Event()

    async def __aenter__(self) -> Ends:
        over = self.one_is_over

        class Watched(BoundedProtocol):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                over.set()

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Watched(self._config, self.state, {}), "127.0.0.1")
        self.address = self._server.sockets[0].getsockname()
        return self

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self._writers.append(writer)
        return reader, writer

    async def asking(self, path: str) -> asyncio.StreamReader:
        reader, writer = await self.connected()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return reader

    async def __aexit__(self, *_: object) -> None:
        for writer in self._writers:
            writer.close()
        while self.state.connections:
            self.one_is_over.clear()
            await self.one_is_over.wait()
        self._server.close()


@pytest.mark.parametrize("given", [True, False])
async def test_an_answer_that_is_not_given_or_not_read_in_time_ends_its_connection(
    given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", 600.0)
    monkeypatch.setattr(connections, "LONGEST_EXCHANGE", 0.2)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if given:
            await PlainTextResponse("x" * (1 << 25))(scope, receive, send)
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.timeout(30), Ends(application) as ends:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            deaf.connect(ends.address)
            deaf.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await ends.one_is_over.wait()


async def test_of_questions_that_come_at_once_each_has_its_answer_or_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", 600.0)
    monkeypatch.setattr(connections, "LONGEST_EXCHANGE", 2.0)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/never":
            await PlainTextResponse("ok")(scope, receive, send)
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.timeout(30), Ends(application) as ends:
        reader, writer = await ends.connected()
        for path in (b"/first", b"/second", b"/never"):
            writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.read()).count(b"HTTP/1.1 200 OK\r\n") == 2


class Slow:
    """An application: `/large` is more than systems keep for who does not read, all else is answered when it may be."""

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Semaphore(0), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/large":
            await PlainTextResponse("x" * (1 << 25))(scope, receive, send)
            return
        self.asked.release()
        await self.may_answer.wait()
        await PlainTextResponse("ok")(scope, receive, send)


async def test_who_waits_for_an_answer_gives_way_to_nobody() -> None:
    application = Slow()
    async with asyncio.timeout(60), Ends(application) as ends:
        asking = []
        for _ in range(MOST_UNASKED + 2):
            asking.append(await ends.asking("/"))
            await application.asked.acquire()
        application.may_answer.set()
        assert {await each.readline() for each in asking} == {b"HTTP/1.1 200 OK\r\n"}


async def test_who_does_not_read_gives_way_only_when_no_other_place_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 4)
    application = Slow()
    async with asyncio.timeout(60), Ends(application) as ends:
        first = await ends.asking("/")
        await application.asked.acquire()
        deaf = await ends.asking("/large")
        assert await deaf.readline() == b"HTTP/1.1 200 OK\r\n"
        others = []
        for connected in (3, 3):  # the last place is for who comes next
            others.append(await ends.asking("/"))
            await application.asked.acquire()
            assert len(ends.state.connections) == connected
        application.may_answer.set()
        assert {await each.readline() for each in (first, *others)} == {b"HTTP/1.1 200 OK\r\n"}
        with suppress(ConnectionError):
            assert len(await deaf.read()) < 1 << 25


async def test_what_who_was_refused_sends_on_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONGEST_HEAD", 600.0)
    async with asyncio.timeout(60), Ends(Slow()) as ends:
        reader, writer = await ends.connected()
        writer.write(b"\0")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        tracemalloc.start()
        for _ in range(512):  # 32 MB, far more than the system keeps
            writer.write(bytes(1 << 16))
            await writer.drain()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < 1 << 22


class Waiting:
    """An application that answers when it may, and to whom its answers are not read before that may be, too."""

    def __init__(self) -> None:
        self.may_answer, self.is_read = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.is_read.wait()


class Asked:
    """A question, and its status once an answer begins."""

    def __init__(self, app: ASGIApp, path: str = "/api/live") -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.over = asyncio.create_task(self._ask(app, {"type": "http", "method": "GET", "path": path}))

    async def _ask(self, app: ASGIApp, scope: Scope) -> None:
        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status.set_result(message["status"])

        await app(scope, receive, send)


async def test_of_too_many_questions_at_once_some_are_refused_until_answers_begin() -> None:
    waiting = Waiting()
    crowd = Crowd(waiting)
    questions = [Asked(crowd) for _ in range(MOST_ASKED)]
    refused = Asked(crowd)
    async with asyncio.timeout(60):
        assert await refused.status == 503
    alive = Asked(crowd, "/livez")
    waiting.may_answer.set()
    assert {await each.status for each in (*questions, alive)} == {200}
    late = Asked(crowd)
    assert await late.status == 200  # though nobody has read the others
    waiting.is_read.set()
    await asyncio.gather(*(each.over for each in (*questions, refused, alive, late)))


async def test_a_question_that_has_failed_takes_no_place() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    crowd = Crowd(failing)
    for _ in range(MOST_ASKED + 1):
        with pytest.raises(ZeroDivisionError):
            await Asked(crowd).over
