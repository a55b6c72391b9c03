"""Clients that are slow, at a hub that goes on answering others."""

from __future__ import annotations

import json
import select
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import msgspec
import pytest

from acp_proxy.hub import api
from acp_proxy.ledger.hub import wire
from acp_proxy.system.decoding import json_decoder
from harness.daemons import until
from harness.rows import row
from tests.hub.api.conftest import Ask

SLOW = 40  # more than the threads that a hub answers with


def test_bodies_that_come_byte_by_byte_hold_up_nobody(ask: Ask, address: str) -> None:
    """Their requests are under way, and each has sent one byte more, when others are answered; then they are, too."""
    where = urlsplit(address)
    body = json.dumps({"rows": []}).encode()
    head = (
        f"POST /v1/rows HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer developer\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection((where.hostname, where.port), timeout=60)) for _ in range(SLOW)
        ]
        for connection in slow:
            connection.sendall(head.encode())
        for number, byte in enumerate(body):
            for connection in slow:
                connection.sendall(bytes([byte]))
            if number < len(body) - 1:
                status, answer = ask("developer", wire.APPEND, wire.Rows([row(id=f"quick-{number}")]))
                assert (status, json_decoder(wire.Appended).decode(answer).new) == (200, 1)
        for connection in slow:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_an_answer_that_nobody_reads_holds_up_nobody(ask: Ask, address: str) -> None:
    where = urlsplit(address)
    many = [row(id=f"many-{number}") for number in range(2000)]
    assert ask("developer", wire.APPEND, wire.Rows(many))[0] == 200
    body = b'{"query":{}}'
    head = (
        f"POST /v1/rows/search HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer developer\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect((where.hostname, where.port))
            connection.sendall(head.encode() + body)
            assert connection.recv(16).startswith(b"HTTP/1.1 200 ")
        assert ask("developer", wire.CLOCK, wire.Nothing())[0] == 200
        assert ask("developer", wire.APPEND, wire.Rows([row(id="last")]))[0] == 200


def test_bodies_that_do_not_end_take_no_more_memory_than_all_may_have(
    ask: Ask, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are told to come again, and are answered when who sent half of one is gone."""
    monkeypatch.setattr(api, "MOST_UNDER_WAY", 100_000)
    where = urlsplit(address)
    head = (
        f"POST /v1/rows HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer developer\r\n"
        f"Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n"
    )

    def status() -> int:
        found: int = ask("developer", wire.RECENT_COSTS, wire.Resembling("default", "a" * 50_000, "USD"))[0]
        return found

    with socket.create_connection((where.hostname, where.port), timeout=60) as half:
        half.sendall(head.encode() + b" " * 90_000)
        until(lambda: status() == 503, "others are refused")
    until(lambda: status() == 200, "others are answered")


def test_a_million_rows_in_one_call_are_refused_before_they_have_come(address: str) -> None:
    where = urlsplit(address)
    head = (
        f"POST /v1/rows HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer developer\r\n"
        f"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    rows = b",".join([msgspec.json.encode(row(id="many"))] * 100)
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(head.encode() + b'9\r\n{"rows":[\r\n')
        for _ in range(10_000):
            if select.select([connection], [], [], 0)[0]:
                break
            connection.sendall(b"%x\r\n%s,\r\n" % (len(rows) + 1, rows))
        else:
            raise AssertionError("all of them came")
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
