"""The ends of the wire, on both loops: they never block, and leave no trace on what others share with us."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_proxy.relay.stdio import End, FileEnd, own_end, shared_end
from tests.agents.loops import LOOPS, Loop, on


async def ready(end: End) -> None:
    """Waits until the end says that it is."""
    event = asyncio.Event()
    end.watch(event.set)
    await event.wait()
    end.unwatch()


async def read_all(end: End) -> bytes:
    data = b""
    while True:
        await ready(end)
        try:
            chunk = end.read(65536)
        except BlockingIOError:
            continue
        if not chunk:
            end.close()
            return data
        data += chunk


def fill(end: End) -> int:
    """Writes until nothing is taken any more; how much was."""
    taken = 0
    while True:
        try:
            taken += end.write(b"x" * 65536)
        except BlockingIOError:
            return taken


@LOOPS
def test_a_pipe_is_read_and_written_without_making_it_non_blocking_for_others(loop: Loop) -> None:
    async def test() -> None:
        r, w = os.pipe()
        source, sink = shared_end(os.dup(r), writes=False), shared_end(os.dup(w), writes=True)
        await ready(sink)
        taken = fill(sink)
        await ready(source)
        assert os.get_blocking(r)
        assert os.get_blocking(w)
        with pytest.raises(BlockingIOError):
            sink.write(b"more")
        sink.close()
        os.close(w)
        assert len(await read_all(source)) == taken
        os.close(r)

    on(loop, test)


@LOOPS
def test_one_socket_serves_both_directions_and_stays_blocking(loop: Loop) -> None:
    async def test() -> None:
        ours, peer = socket.socketpair()
        with ours, peer:
            source = shared_end(os.dup(ours.fileno()), writes=False)
            sink = shared_end(os.dup(ours.fileno()), writes=True)
            with pytest.raises(BlockingIOError):
                source.read(1)
            peer.sendall(b"hello")
            await ready(source)
            assert source.read(65536) == b"hello"
            await ready(sink)
            fill(sink)
            assert os.get_blocking(ours.fileno())
            peer.shutdown(socket.SHUT_WR)
            assert await read_all(source) == b""
            sink.close()

    on(loop, test)


@LOOPS
def test_a_terminal_keeps_its_flags(loop: Loop) -> None:
    async def test() -> None:
        leader, follower = pty.openpty()
        source = shared_end(os.dup(follower), writes=False)
        os.write(leader, b"typed\n")
        await ready(source)
        assert source.read(65536) == b"typed\n"
        assert os.get_blocking(follower)
        source.close()
        os.close(leader)
        os.close(follower)

    on(loop, test)


@LOOPS
def test_a_file_is_read_to_its_end_and_dev_null_ends_at_once(loop: Loop) -> None:
    async def test() -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"line\n" * 100_000)
            file.seek(0)
            assert await read_all(shared_end(os.dup(file.fileno()), writes=False)) == b"line\n" * 100_000
        assert await read_all(shared_end(os.open("/dev/null", os.O_RDONLY), writes=False)) == b""

    on(loop, test)


@LOOPS
def test_a_file_takes_all_that_is_written(loop: Loop, tmp_path: Path) -> None:
    async def test() -> None:
        sink = shared_end(os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT), writes=True)
        assert isinstance(sink, FileEnd)
        assert sink.write(b"x" * 1_000_000) == 1_000_000
        sink.close()
        assert (tmp_path / "out").stat().st_size == 1_000_000

    on(loop, test)


@LOOPS
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_the_loss_of_the_reader_is_told_without_a_write(loop: Loop, kind: str) -> None:
    async def test() -> None:
        if kind == "pipe":
            theirs, fd = os.pipe()
        else:
            pair = socket.socketpair()
            theirs, fd = pair[0].detach(), pair[1].detach()
        sink = shared_end(fd, writes=True)
        lost = asyncio.Event()
        sink.watch_loss(lost.set)
        await ready(sink)
        assert not lost.is_set()
        os.close(theirs)
        await lost.wait()
        with pytest.raises(OSError, match="Broken pipe"):
            sink.write(b"to nobody")
        sink.close()

    on(loop, test)


@LOOPS
def test_a_pipe_that_cannot_be_reopened_is_given_back_as_it_was(loop: Loop, tmp_path: Path) -> None:
    async def test() -> None:
        os.mkfifo(tmp_path / "pipe")
        r = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        w = os.open(tmp_path / "pipe", os.O_WRONLY)
        os.close(r)  # the kernel opens no named pipe for writing that nobody reads
        sink = shared_end(os.dup(w), writes=True)
        assert not os.get_blocking(w)
        with pytest.raises(BrokenPipeError):
            sink.write(b"x")
        sink.close()
        assert os.get_blocking(w)
        os.close(w)

    on(loop, test)


@LOOPS
def test_a_pipe_of_our_own_never_blocks(loop: Loop) -> None:
    async def test() -> None:
        r, w = os.pipe()
        source, sink = own_end(r, writes=False), own_end(w, writes=True)
        with pytest.raises(BlockingIOError):
            source.read(1)
        fill(sink)
        sink.close()
        source.close()

    on(loop, test)


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def a_terminal() -> tuple[int, int]:
    leader, follower = pty.openpty()
    return follower, leader


def a_file() -> tuple[int, int]:
    return os.open("/dev/zero", os.O_RDWR), os.open("/dev/null", os.O_RDWR)


KINDS = pytest.mark.parametrize("kind", [a_pipe, a_socket, a_terminal, a_file])


@LOOPS
@KINDS
def test_an_end_is_ready_again_and_again_until_it_is_watched_no_more(
    loop: Loop, kind: Callable[[], tuple[int, int]]
) -> None:
    async def test() -> None:
        ours, theirs = kind()
        os.write(theirs, b"there is something to read\n")
        source = shared_end(ours, writes=False)
        calls, enough = 0, asyncio.Event()

        def called() -> None:
            nonlocal calls
            calls += 1
            if calls == 3:
                enough.set()

        source.watch(called)
        await enough.wait()
        source.unwatch()
        before = calls
        for _ in range(20):
            await asyncio.sleep(0)
        assert calls == before
        source.close()
        os.close(theirs)

    on(loop, test)


@LOOPS
@KINDS
@pytest.mark.parametrize("writes", [False, True])
def test_an_end_that_is_closed_while_it_is_watched_leaves_no_descriptor(
    loop: Loop, kind: Callable[[], tuple[int, int]], writes: bool
) -> None:
    async def test() -> None:
        await asyncio.sleep(0)  # the loop has what it keeps open
        before = descriptors()
        ours, theirs = kind()[:: -1 if writes else 1]
        end = shared_end(ours, writes=writes)
        end.watch(lambda: None)
        if writes:
            end.watch_loss(lambda: None)
        end.close()
        os.close(theirs)
        assert descriptors() <= before

    on(loop, test)


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))
