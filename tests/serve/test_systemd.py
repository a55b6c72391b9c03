"""What systemd is told of `acp-proxy serve`, by a socket as it has one."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import pytest

from acp_proxy.serve.systemd import telling
from tests.serve.house import Home

OFTEN = "200000"  # microseconds
MINUTES = "300000000"


@contextmanager
def hearing(named: str) -> Iterator[tuple[str, socket.socket]]:
    """What NOTIFY_SOCKET says, and the socket."""
    # pytest's directories are longer than the address of a socket may be.
    with TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.settimeout(60)
        name = f"{named}{directory}/notify"
        ear.bind(name.replace("@", "\0"))
        yield name, ear


@pytest.mark.parametrize("named", ["", "@"], ids=["path", "abstract"])
def test_it_tells_that_it_answers_that_its_loop_turns_and_that_it_ends(home: Home, named: str) -> None:
    with (
        hearing(named) as (name, ear),
        home.serving(environ={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": OFTEN}) as served,
    ):
        assert ear.recv(100) == b"READY=1"
        assert served.ask("/healthz").status == 200
        assert [ear.recv(100) for _ in range(5)] == [b"WATCHDOG=1"] * 5
        assert served.end() == 0
        while (said := ear.recv(100)) == b"WATCHDOG=1":
            pass
        assert said == b"STOPPING=1"


def test_a_server_that_does_not_start_never_says_that_it_is_ready(home: Home) -> None:
    with hearing("") as (name, ear), socket.create_server(("127.0.0.1", 0)) as other:
        done = home.run("serve", "--port", str(other.getsockname()[1]), environ={"NOTIFY_SOCKET": name})
        assert done.returncode == 2
        ear.setblocking(False)
        with pytest.raises(BlockingIOError):
            ear.recv(100)


async def test_a_loop_that_hangs_says_nothing() -> None:
    with hearing("") as (name, ear):
        async with telling({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": OFTEN}):
            assert ear.recv(100) == b"READY=1"
            ear.settimeout(1)
            with pytest.raises(TimeoutError):
                ear.recv(100)  # blocks the loop


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": MINUTES, "WATCHDOG_PID": "1"},
        *({"WATCHDOG_USEC": text} for text in ("", "0", "-1", "1e6", "²", "9" * 5000)),
    ],
    ids=lambda environ: str(environ)[:40],
)
def test_signs_of_life_are_given_only_to_who_waits_for_them(home: Home, environ: dict[str, str]) -> None:
    with hearing("@") as (name, ear), home.serving(environ={"NOTIFY_SOCKET": name, **environ}) as served:
        assert served.ask("/healthz").status == 200
        assert served.end() == 0
        assert [ear.recv(100), ear.recv(100)] == [b"READY=1", b"STOPPING=1"]


async def test_the_process_that_systemd_means_gives_them() -> None:
    with hearing("@") as (name, ear):
        pid = str(os.getpid())
        async with telling({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": MINUTES, "WATCHDOG_PID": pid}):
            await asyncio.sleep(0)
            assert [ear.recv(100), ear.recv(100)] == [b"READY=1", b"WATCHDOG=1"]


@pytest.mark.parametrize(
    "name", ["", "@", "/", "relative", "/none/there", f"/{'long' * 100}", "vsock:2:1234", "@\udcff"]
)
def test_a_socket_that_cannot_be_told_anything_ends_nothing(home: Home, name: str) -> None:
    with home.serving(environ={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": OFTEN}) as served:
        assert served.ask("/healthz").status == 200
        assert served.end() == 0
        assert served.process.stderr
        assert served.process.stderr.read() == ""


def test_a_systemd_that_does_not_listen_is_no_reason_not_to_serve(home: Home) -> None:
    with hearing("") as (name, ear), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        others.setblocking(False)
        with suppress(BlockingIOError):
            while others.sendto(b"X=1", name):
                pass
        with home.serving(environ={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": MINUTES}) as served:
            assert served.ask("/healthz").status == 200
            assert served.end() == 0
        assert ear.recv(100) == b"X=1"
