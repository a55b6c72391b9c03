"""A database that goes away and comes back under a server that runs: told, waited for, and nothing seems to fall."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack

from acp_proxy.ledger import open_ledger
from acp_proxy.serve.connections import MOST
from harness.postgres import running
from harness.rows import line, row
from tests.pace import slower
from tests.serve.house import Home, Served


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline


def cost(served: Served) -> str:
    text = served.ask("/metrics").body.decode()
    (amount,) = re.findall(r"^acp_proxy_cost_total\{.*\} (\S+)$", text, re.MULTILINE)
    return str(amount)


def is_up(served: Served) -> bool:
    return b"\nacp_proxy_ledger_up 1\n" in served.ask("/metrics").body


def test_a_ledger_that_is_away_is_told_until_it_is_back(home: Home) -> None:
    with running() as server:
        url = server.create("ledger")
        ledger = open_ledger(url, journals=())
        ledger.append([row(line("opus", "1.25"), at=time.time_ns())])
        ledger.close()
        with home.serving("--ledger", url) as served:
            before = served.json("/api/spend")
            assert before["total"]["cost"] == {"USD": "1.25"}
            assert (is_up(served), cost(served)) == (True, "1.25")
            server.stop()
            until(lambda: not is_up(served))
            assert cost(served) == "1.25"
            assert served.ask("/healthz").status == 503
            assert served.ask("/livez").status == 200
            answer = served.ask("/api/spend")
            assert (answer.status, list(answer.json)) == (503, ["error"])
            assert "secret" not in answer.json["error"]
            server.start()
            until(lambda: served.ask("/healthz").status == 200)
            until(lambda: is_up(served))
            assert served.json("/api/spend")["total"] == before["total"]
            served.end()
            assert served.process.stderr
            log = served.process.stderr.read()
            assert "secret" not in log
            assert re.findall(r"event=(\S+)", log) == ["ledger.unavailable", "ledger.answers"]


def test_a_server_that_many_wait_for_is_alive(home: Home) -> None:
    """Whoever asks whether it is ends it otherwise, in the middle of what others wait for."""
    with running() as server, home.serving("--ledger", server.create("ledger")) as served, ExitStack() as waiting:
        server.signal(signal.SIGSTOP)
        for _ in range(MOST + 20):
            client = waiting.enter_context(served.connected())
            client.sendall(b"GET /api/spend HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert [served.ask("/livez").status for _ in range(20)] == [200] * 20
        assert served.ask("/api/spend").status == 503
        server.signal(signal.SIGCONT)
        until(lambda: served.ask("/healthz").status == 200)


def test_it_ends_in_time_with_an_answer_to_who_waits_for_its_ledger(home: Home) -> None:
    with running() as server, home.serving("--ledger", server.create("ledger")) as served, served.connected() as client:
        assert is_up(served)
        server.signal(signal.SIGSTOP)
        client.sendall(b"GET /api/spend HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert served.ask("/livez").status == 200  # and so the other question has come as well
        began = time.monotonic()
        assert served.end() == 0
        assert time.monotonic() - began < 6 * slower()
        assert client.recv(1024).startswith(b"HTTP/1.1 503 ")
        assert served.process.stderr
        assert "Traceback" not in served.process.stderr.read()
        server.signal(signal.SIGCONT)
