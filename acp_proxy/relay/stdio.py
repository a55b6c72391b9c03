"""The ends of the wire: pipes, sockets, terminals, files. Reading and writing never block.

Never makes a descriptor non-blocking that another process shares: O_NONBLOCK belongs to the open file description,
and would leak to the shell or the editor that gave it to us.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol


class End(Protocol):
    """One end of a stream; it is only read or only written."""

    def read(self, size: int, /) -> bytes:
        """Raises BlockingIOError when nothing is there yet, other OSErrors when the peer is gone; b"" at the end."""

    def write(self, data: bytes | memoryview, /) -> int:
        """How many bytes were taken. Raises BlockingIOError when none can be, other OSErrors when the peer is gone."""

    def watch(self, ready: Callable[[], object]) -> None:
        """Calls `ready` from the loop whenever reading (or writing) would do something, until `unwatch`."""

    def unwatch(self) -> None: ...

    def watch_loss(self, lost: Callable[[], object]) -> None:
        """Calls `lost` when the other end is closed, where that can be known without writing."""

    def close(self) -> None: ...


def own_end(fd: int, *, writes: bool) -> End:
    """An end of a pipe that is ours alone."""
    os.set_blocking(fd, False)
    return PollableEnd(fd, writes=writes)


def shared_end(fd: int, *, writes: bool) -> End:
    """An end that we were given, whatever its kind. Takes over `fd`."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        if sys.platform == "linux":
            with suppress(OSError):  # a sandbox may refuse epoll
                return SocketEnd(fd, writes=writes)
        return BorrowedSocketEnd(fd, writes=writes)
    if stat.S_ISFIFO(mode) or os.isatty(fd):
        return _reopened(fd, writes=writes) or BorrowedEnd(fd, writes=writes)
    return FileEnd(fd)


def _reopened(fd: int, *, writes: bool) -> End | None:
    """The same pipe or terminal through a description of our own, where Linux lets us."""
    flags = (os.O_WRONLY if writes else os.O_RDONLY) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        again = os.open(f"/proc/self/fd/{fd}", flags)
    except OSError:  # no /proc, not our pipe, or its reader is gone
        return None
    os.close(fd)
    return PollableEnd(again, writes=writes)


class PollableEnd:
    """A pipe or a terminal."""

    def __init__(self, fd: int, *, writes: bool) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.fd = fd
        self.read: Callable[[int], bytes] = partial(os.read, fd)
        self.write: Callable[[bytes | memoryview], int] = partial(os.write, fd)
        self._add, self._remove = (
            (loop.add_writer, loop.remove_writer) if writes else (loop.add_reader, loop.remove_reader)
        )

    def watch(self, ready: Callable[[], object]) -> None:
        self._add(self.fd, ready)

    def unwatch(self) -> None:
        self._remove(self.fd)

    def watch_loss(self, lost: Callable[[], object]) -> None:
        # The end of a pipe that is only written is never readable, but always polled for errors (Linux).
        if sys.platform == "linux" and stat.S_ISFIFO(os.fstat(self.fd).st_mode):
            self._loop.add_reader(self.fd, lost)

    def close(self) -> None:
        self._loop.remove_reader(self.fd)
        self._loop.remove_writer(self.fd)
        os.close(self.fd)


class BorrowedEnd(PollableEnd):
    """One that could not be reopened: non-blocking while we use it, then as it was."""

    def __init__(self, fd: int, *, writes: bool) -> None:
        super().__init__(fd, writes=writes)
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)

    def close(self) -> None:
        if self._was_blocking:  # else it was lent so, or to our other end as well, which gives it back
            os.set_blocking(self.fd, True)
        super().close()


class BorrowedSocketEnd(BorrowedEnd):
    """A socket where there is no epoll. Both ends may be of one, and whichever closes first makes it block again."""

    def __init__(self, fd: int, *, writes: bool) -> None:
        super().__init__(fd, writes=writes)
        self._socket = both = socket.socket(fileno=fd)
        self.read = lambda size: both.recv(size, socket.MSG_DONTWAIT)
        self.write = lambda data: both.send(data, socket.MSG_DONTWAIT)  # Python ignores SIGPIPE

    def close(self) -> None:
        super().close()
        self._socket.detach()


if sys.platform == "linux":  # who has epoll

    class SocketEnd:
        """A socket, which cannot be reopened, but be asked not to block call by call.

        The loop polls an epoll around it: uvloop makes non-blocking what it polls.
        """

        def __init__(self, fd: int, *, writes: bool) -> None:
            self._loop = asyncio.get_running_loop()
            self.fd = fd
            self._poll, self._loss = select.epoll(), select.epoll()  # first: if refused, `fd` stays open
            self._socket = socket.socket(fileno=fd)
            self._poll.register(fd, select.EPOLLOUT if writes else select.EPOLLIN | select.EPOLLRDHUP)

        def read(self, size: int, /) -> bytes:
            return self._socket.recv(size, socket.MSG_DONTWAIT)

        def write(self, data: bytes | memoryview, /) -> int:
            return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

        def watch(self, ready: Callable[[], object]) -> None:
            self._loop.add_reader(self._poll.fileno(), ready)

        def unwatch(self) -> None:
            self._loop.remove_reader(self._poll.fileno())

        def watch_loss(self, lost: Callable[[], object]) -> None:
            self._loss.register(self._socket, 0)  # errors and the hang-up of both directions are always told
            self._loop.add_reader(self._loss.fileno(), lost)

        def close(self) -> None:
            for poll in (self._poll, self._loss):
                self._loop.remove_reader(poll.fileno())
                poll.close()
            self._socket.close()


class FileEnd:
    """A file or /dev/null: always ready, and unknown to epoll."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.fd = fd
        self._next: asyncio.Handle | None = None
        self.read = partial(os.read, fd)
        self.write = partial(os.write, fd)

    def watch(self, ready: Callable[[], object]) -> None:
        self._next = self._loop.call_soon(self._turn, ready)

    def _turn(self, ready: Callable[[], object]) -> None:
        self._next = self._loop.call_soon(self._turn, ready)
        ready()

    def unwatch(self) -> None:
        if self._next:
            self._next.cancel()
            self._next = None

    def watch_loss(self, lost: Callable[[], object]) -> None:
        """A file is never lost."""

    def close(self) -> None:
        self.unwatch()
        os.close(self.fd)
