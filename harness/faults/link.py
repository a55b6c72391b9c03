"""A connection to a database that can be slow, cut, or silent: on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

_CHUNK = 65536


class Link:
    """Hands on what comes on `port` of loopback to another one. What it does can be changed while it is used."""

    def __init__(self, to: int) -> None:
        self.port = 0
        self.delay = 0.0  # seconds, for each piece in each direction
        self.to = to  # a port, which later connections lead to
        self.journeys = 0  # how often whoever connects has said something after an answer, if it is one at a time
        self._asking = False
        self._loop = asyncio.new_event_loop()
        self._open = set[asyncio.StreamWriter]()
        self._flows = _set()
        self._forgotten: list[asyncio.Event] = []  # the loop alone does not keep who waits for one

    def cut(self) -> None:
        """End all connections; new ones are taken."""
        self._call(self._cut)

    def fall_silent(self) -> None:
        """Connections stay and are taken, and nothing is handed on, until `speak`."""
        self._call(self._flows.clear)

    def speak(self) -> None:
        self._call(self._flows.set)

    def forget(self) -> None:
        """As a router does: connections stay, and what goes into them comes nowhere. New ones are handed on."""
        self._call(self._forget)

    def remember(self) -> None:
        """What was forgotten comes where it was sent to, although nobody may wait for an answer any more."""
        self._call(self._remember)

    def _call(self, what: Callable[[], object]) -> None:
        """In the link's thread; returns when it is done."""
        done = threading.Event()

        def call() -> None:
            what()
            done.set()

        self._loop.call_soon_threadsafe(call)
        done.wait(10)

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def _forget(self) -> None:
        self._flows.clear()
        self._forgotten.append(self._flows)
        self._flows = _set()

    def _remember(self) -> None:
        for flows in self._forgotten:
            flows.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:  # the database is not there
            writer.transport.abort()
            return
        self._open |= {writer, to_writer}
        with contextlib.suppress(asyncio.CancelledError):  # at the end, which is no error to report
            flows = self._flows
            there = self._hand_on(reader, to_writer, flows, asks=True)
            await asyncio.gather(there, self._hand_on(to_reader, writer, flows, asks=False))
        self._open -= {writer, to_writer}

    async def _hand_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event, *, asks: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                self.journeys += asks and not self._asking
                self._asking = asks
                await asyncio.sleep(self.delay)
                await flows.wait()
                writer.write(data)
        writer.close()

    def run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._loop.call_soon(ready.set)
        self._loop.run_forever()
        server.close()
        self._cut()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._settled())
        self._loop.close()

    async def _settled(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@contextlib.contextmanager
def linked(port: int) -> Iterator[Link]:
    link, ready = Link(port), threading.Event()
    thread = threading.Thread(target=link.run, args=(ready,), name="link")
    thread.start()
    ready.wait(10)
    try:
        yield link
    finally:
        link.stop()
        thread.join(10)
