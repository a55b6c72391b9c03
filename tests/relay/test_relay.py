"""The relay between a real client and a real agent: bytes, backpressure, kinds of stdin and stdout, the loop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.relay import Relay
from acp_proxy.relay.outlet import HOLDING_AT_MOST
from acp_proxy.system.spawn import Started
from tests.agents.client import (
    LIMIT,
    PLAIN,
    alive,
    line,
    pid_from,
    python,
    relayed,
    running,
    send,
    send_and_close,
    still_runs,
)
from tests.agents.forwarding import Forwarding
from tests.agents.loops import LOOPS, Loop, on

ECHO = ("cat",)
DEAF = "import signal; signal.pause()"
SAYS_ITS_PID = "import os, signal; os.write(1, b'%d\\n' % os.getpid());"


# Bytes.


@pytest.fixture(scope="module")
def echo() -> Iterator[Any]:
    """One relay for all examples: each sends lines, and reads as many bytes as it sent."""
    with relayed(*ECHO) as relay:
        yield relay


_ODD = [b"\r\n", b"\r", b"\n\n", b"\0", b"\xef\xbb\xbf{", b'{"id":1}\r\n', b" \t\n", b'{"method":"m"}{}\n', b"\x80\n"]


@settings(max_examples=60)
@given(st.lists(st.lists(st.binary(max_size=100) | st.sampled_from(_ODD), max_size=3).map(b"".join), max_size=6))
def test_any_bytes_in_any_chunks_come_back_as_they_were(echo: Any, chunks: list[bytes]) -> None:
    for chunk in [*chunks, b"\n"]:
        send(echo.stdin, chunk)
    expected = b"".join(chunks) + b"\n"
    got = b""
    while len(got) < len(expected):
        got += echo.stdout.read(len(expected) - len(got))
    assert got == expected


def test_a_last_line_without_a_newline_is_delivered_as_it_is() -> None:
    with relayed(*ECHO) as relay:
        assert relay.communicate(b"one\nunterminated")[0] == b"one\nunterminated"
        assert relay.returncode == 0


def test_a_line_of_a_hundred_megabytes_passes_both_ways_unchanged() -> None:
    data = os.urandom(1 << 16).replace(b"\n", b"_") * 1600 + b"\n"
    with relayed(*ECHO) as relay:
        assert relay.communicate(data)[0] == data


def test_stdout_carries_the_agents_bytes_alone_and_stderr_is_the_agents_own() -> None:
    with relayed("sh", "-c", "echo out; echo err >&2") as relay:
        assert relay.communicate() == (b"out\n", b"err\n")


# Backpressure.


def test_two_peers_that_only_write_at_first_do_not_block_each_other() -> None:
    flood = b"x" * 999 + b"\n"
    agent = python(
        f"import os\nfor _ in range(3000): os.write(1, {flood!r})\nn = 0\n"
        "while d := os.read(0, 65536): n += len(d)\nos.write(1, b'%d\\n' % n)"
    )
    with relayed(*agent) as relay:
        writer = threading.Thread(target=send_and_close, args=(relay.stdin, flood * 100))
        writer.start()
        got = relay.stdout.read(3_000_000)
        while len(got) < 3_000_000:
            got += relay.stdout.read(3_000_000 - len(got))
        assert line(relay.stdout) == b"100000\n"
        writer.join()


# Writes as long as it may, says how much whenever it has not been able to for a while, and ends at the first line, or
# when nothing keeps it from writing.
WRITES = """
import os, select
os.set_blocking(1, False)
n = said = 0
while n < 4 << 20 and not (ready := select.select([0], [1], [], 0.5))[0]:
    if ready[1]:
        n += os.write(1, b"x" * 4095 + b"\\n")
    elif n != said:
        said = n
        os.write(2, b"%d\\n" % n)
os.write(2, b"in all %d\\n" % n)
"""


def test_a_reader_that_stops_stops_the_writer_behind_the_relay() -> None:
    """After at most what two pipes and the relay's slack hold."""
    with relayed(*python(WRITES)) as relay:
        said = line(relay.stderr)
        while int(said.split()[-1]) < 128 << 10:  # the relay has not had its turn yet
            said = line(relay.stderr)
        send(relay.stdin, b"enough\n")
        while said and not said.startswith(b"in all "):
            said = line(relay.stderr)
        written = int(said.split()[-1])
        assert written <= 512 << 10
        assert len(relay.stdout.readall()) == written


class Holding(Forwarding):
    """Keeps the client's lines back until it is told to let them go."""

    def __init__(self) -> None:
        self.held = b""
        self.client_left = asyncio.Event()

    def lines(self, sender: Side, run: bytes) -> None:
        if sender is Side.CLIENT:
            self.held += run
            self.to_agent.hold_back(len(self.held))
        else:
            super().lines(sender, run)

    def ended(self, sender: Side) -> None:
        if sender is Side.CLIENT:
            self.client_left.set()

    def holding(self) -> int:
        return len(self.held)

    def release(self) -> None:
        self.to_agent.write(self.held)
        self.held = b""
        self.to_agent.hold_back(0)


@LOOPS
def test_the_agents_stdin_stays_open_for_lines_that_wait_for_admission(loop: Loop) -> None:
    started, ours, theirs, agent = started_cat()

    async def test() -> None:
        inspector = Holding()
        relay = asyncio.create_task(Relay(started, inspector, signals=False).run())
        os.write(ours, b"a prompt\n")
        os.close(ours)
        await inspector.client_left.wait()
        inspector.release()
        assert await relay == 0
        assert os.read(theirs, 100) == b"a prompt\n"

    on(loop, test)
    os.close(theirs)
    agent.returncode = 0  # the relay has waited for it


@LOOPS
def test_an_agent_is_given_its_time_from_when_it_gets_what_has_waited_for_admission(loop: Loop) -> None:
    started, ours, theirs, agent = started_cat()

    async def test() -> None:
        inspector = Holding()
        relay = asyncio.create_task(Relay(started, inspector, signals=False, grace=0.1).run())
        os.write(ours, b"a prompt\n")
        os.close(ours)
        await inspector.client_left.wait()
        assert await asyncio.wait([relay], timeout=0.5) == (set(), {relay})
        inspector.release()
        assert await relay == 0
        assert os.read(theirs, 100) == b"a prompt\n"

    on(loop, test)
    os.close(theirs)
    agent.returncode = 0


class Talking(Forwarding):
    """Says a lot to the client for each of its lines."""

    def lines(self, sender: Side, run: bytes) -> None:
        for _ in range(run.count(b"\n")):
            self.to_client.insert(b"x" * 65_535 + b"\n")


@LOOPS
def test_a_client_that_does_not_read_what_we_say_is_not_read_either(loop: Loop) -> None:
    started, ours, theirs, agent = started_cat()

    async def test() -> None:
        relay = asyncio.create_task(Relay(started, Talking(), signals=False).run())
        os.set_blocking(ours, False)
        asked = idle = 0
        while idle < 200:
            try:
                asked += os.write(ours, b"x" * 4095 + b"\n")
                idle = 0
            except BlockingIOError:
                idle += 1
            assert asked < 4 << 20
            await asyncio.sleep(0)
        assert asked >= 4096 * (HOLDING_AT_MOST >> 16)
        os.close(ours)
        os.close(theirs)
        assert await relay == 0

    on(loop, test)
    agent.returncode = 0  # the relay has waited for it


def started_cat() -> tuple[Started, int, int, subprocess.Popen[bytes]]:
    """An agent that says what it hears; where the client writes and reads; and the agent itself."""
    (client_in, ours), (theirs, client_out), (agent_in, to_agent), (from_agent, agent_out) = (
        os.pipe() for _ in range(4)
    )
    with os.fdopen(agent_in) as stdin, os.fdopen(agent_out) as stdout:
        agent = subprocess.Popen(["cat"], stdin=stdin, stdout=stdout)
    started = Started(
        pid=agent.pid, to_agent=to_agent, from_agent=from_agent, from_client=client_in, to_client=client_out
    )
    return started, ours, theirs, agent


# Kinds of stdin and stdout.


def test_stdin_may_be_a_file_and_stdout_another(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"line\n" * 50_000 + b"end")
    with (
        (tmp_path / "in").open("rb") as stdin,
        (tmp_path / "out").open("wb") as stdout,
        relayed(*ECHO, stdin=stdin, stdout=stdout) as relay,
    ):
        assert relay.wait() == 0
    assert (tmp_path / "out").read_bytes() == b"line\n" * 50_000 + b"end"


def test_stdin_may_be_dev_null() -> None:
    with relayed(*ECHO, stdin=subprocess.DEVNULL) as relay:
        assert relay.wait() == 0


def test_stdin_and_stdout_may_be_closed() -> None:
    with running("sh", "-c", 'exec "$@" <&- >&-', "sh", *PLAIN, "--", "sh", "-c", "cat; echo gone; exit 3") as relay:
        assert relay.wait() == 3


def test_one_socket_may_be_both_stdin_and_stdout() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, relayed(*ECHO, stdin=theirs, stdout=theirs) as relay:
        ours.settimeout(LIMIT)
        ours.sendall(b"over one socket\n")
        assert ours.recv(100) == b"over one socket\n"
        assert os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)
        assert relay.wait() == 0


def test_pipes_that_the_client_shares_stay_blocking() -> None:
    r, w = os.pipe()
    with os.fdopen(r, "rb") as stdin, os.fdopen(w, "wb", buffering=0) as ours, relayed(*ECHO, stdin=stdin) as relay:
        ours.write(b"hello\n")
        assert line(relay.stdout) == b"hello\n"
        assert os.get_blocking(stdin.fileno())
        assert os.get_blocking(ours.fileno())
        ours.close()
        assert relay.wait() == 0


def test_a_named_pipe_whose_writer_has_left_is_read_and_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with running("sh", "-c", f'exec "$@" < {tmp_path}/pipe', "sh", *PLAIN, "--", *ECHO) as relay:
        (tmp_path / "pipe").write_bytes(b"left behind\n")
        assert relay.stdout.readall() == b"left behind\n"
        assert relay.wait() == 0


# The loop.


def test_asyncios_own_loop_will_do_where_uvloop_is_missing() -> None:
    with running(*PLAIN, "--asyncio", "--grace", "0.2", "--", *python(SAYS_ITS_PID + DEAF)) as relay:
        pid = pid_from(relay.stdout)
        send(relay.stdin, b"x" * 1000)
        relay.stdout.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(pid)


def test_an_idle_relay_does_not_wake_up() -> None:
    """Not once in a second of several; what it still has to do on a slow machine it does in those before."""
    with relayed(*ECHO) as relay:
        send(relay.stdin, b"hello\n")
        assert line(relay.stdout) == b"hello\n"
        assert any(_switches_in_a_second(relay) == 0 for _ in range(20))


def _switches_in_a_second(relay: Any) -> int:
    before = switches(relay.pid)
    still_runs(relay, 1.0)
    return switches(relay.pid) - before


def switches(pid: int) -> int:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if "ctxt_switches" in row)
