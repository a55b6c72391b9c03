"""A webhook on loopback: keeps what it is sent, and answers as it was told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

HANG, DRIP = b"", b"drip"


def answer(status: int, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status} X", "Content-Length: 0", *headers)
    return "\r\n".join((*lines, "", "")).encode()


@dataclass
class Receiver:
    """`answers` are given one by one, then 200. After `HANG` nothing is said and the connection stays.

    After `DRIP` an answer goes on for ever, some bytes at a time.
    """

    port: int = 0
    answers: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)  # path, headers, body
    got_one: asyncio.Event = field(default_factory=asyncio.Event)
    dripping: bool = False
    before_answer: Callable[[], None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/verysecret"

    @property
    def bodies(self) -> list[Any]:
        return [orjson.loads(body) for _, _, body in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")[:-2]
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                self.requests.append((first, headers, body))
                self.got_one.set()
                if self.before_answer:
                    self.before_answer()
                said = self.answers.pop(0) if self.answers else answer(200)
                if said == HANG:
                    await reader.read()  # until the other side has had enough
                while said == DRIP:
                    writer.write(b"X: y\r\n" if self.dripping else b"HTTP/1.1 200 X\r\n")
                    self.dripping = True
                    await writer.drain()
                    await asyncio.sleep(0.02)
                writer.write(said)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def until(self, requests: int) -> None:
        async with asyncio.timeout(30):
            while len(self.requests) < requests:
                self.got_one.clear()
                await self.got_one.wait()


@asynccontextmanager
async def receiving(*answers: bytes) -> AsyncIterator[Receiver]:
    receiver = Receiver(answers=list(answers))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
