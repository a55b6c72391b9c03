"""`python -m bench.delayed PORT SECONDS`: hands on what comes on another port of loopback, so much later each way.

Prints its port. What follows a piece does not wait for it: as on a link that is far, and not slow.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

_MOST = 2**20  # bytes on their way, each way


class _Way(asyncio.Protocol):
    """What comes from one end, to the other."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._under_way = 0
        self.here: asyncio.Transport | None = None
        self.there: _Way | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.here = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._under_way += len(data)
        if self._under_way > _MOST and self.here:
            self.here.pause_reading()
        asyncio.get_running_loop().call_later(self._delay, self._arrived, data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's)
        if self.there and self.there.here:
            asyncio.get_running_loop().call_later(self._delay, self.there.here.close)

    def _arrived(self, data: bytes) -> None:
        self._under_way -= len(data)
        if self.there and self.there.here and not self.there.here.is_closing():
            self.there.here.write(data)
        if self._under_way <= _MOST and self.here and not self.here.is_closing():
            self.here.resume_reading()


class _Client(_Way):
    def __init__(self, delay: float, port: int) -> None:
        super().__init__(delay)
        self._port = port
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast("asyncio.Transport", transport).pause_reading()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        await asyncio.sleep(2 * self._delay)  # as TCP greets
        _, self.there = await asyncio.get_running_loop().create_connection(
            lambda: _Way(self._delay), "127.0.0.1", self._port
        )
        self.there.there = self
        if self.here:
            self.here.resume_reading()


async def _serve(port: int, delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Client(delay, port), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2])))
