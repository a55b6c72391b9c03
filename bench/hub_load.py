"""`python -m bench.hub_load PORT SECONDS < TOKENS`: proxies without a pause, one for each token, in one process.

Each has a connection of its own, and asks as a relay does: for admission, and with the row when it may go. What a
relay is besides is left out, so that the two cores are the hub's. When it is ready it says so, and begins at an empty
line. Prints how many turns had their rows acknowledged in time.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.connection import written
from acp_proxy.ledger.hub.wire import Call
from acp_proxy.ledger.owners import Owner
from bench.accounts import HOLD, accounts

_OF_A_SESSION = 20  # turns
_WARM = 3  # turns before it begins


class Proxy:
    """One of many; `number` is that of its user."""

    def __init__(self, number: int, token: str) -> None:
        self.turns = 0
        self._token = token
        self._origin = Origin("default", f"user{number}", "core", "web", f"host{number}", "agent", None, None)
        self._owner = Owner.this()
        self._wants = [wire.Want(account, HoldSize(HOLD, 1)) for account in accounts(10**6)[:1]]
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]

    async def connect(self, port: int) -> None:
        self._streams = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(_WARM):
            await self.turn()

    async def turn(self) -> None:
        name, session, now = str(uuid4()), f"session{self.turns // _OF_A_SESSION}", time.time_ns()
        turn = OpenTurn(name, self._origin, session, now, self._owner, "opus")
        admission = wire.Admission(turn, self._wants, now, now + EXPIRY, knows_policy=True)
        admitted = msgspec.json.decode(await self._asked(wire.ADMIT, admission), type=wire.Admitted)
        assert admitted.binding is None  # noqa: S101  # it measures admissions
        lines = (UsageLine("opus", Usage(input=1000), Money(10**7, "USD")),)
        entry = Entry(name, session, "turn", now, time.time_ns(), "end_turn", lines, "agent", "computed")
        rows = wire.Rows([Row(self._origin, entry)], in_order=True, whole=True)
        appended = msgspec.json.decode(await self._asked(wire.APPEND, rows), type=wire.Appended)
        assert appended.new == 1  # noqa: S101  # and rows
        self.turns += 1

    async def go_on(self, ends: float) -> int:
        before = self.turns
        while time.monotonic() < ends:
            await self.turn()
        return self.turns - before - 1

    async def _asked(self, call: Call[Any, Any], question: object) -> bytes:
        path, body = written(call, question)
        reader, writer = self._streams
        head = (
            f"{call.method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body or b'')}\r\n\r\n"
        )
        writer.write(head.encode() + (body or b""))
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length: ")[2].partition(b"\r")[0])
        found = await reader.readexactly(length)
        if not answer.startswith(b"http/1.1 200"):
            raise SystemExit(f"hub_load: {answer[:30]!r}: {found!r}")
        return found


async def _load(port: int, seconds: float, tokens: Sequence[str]) -> int:
    proxies = [Proxy(number, token) for number, token in enumerate(tokens)]
    for each in proxies:
        await each.connect(port)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    ends = time.monotonic() + seconds
    return sum(await asyncio.gather(*(each.go_on(ends) for each in proxies)))


def main() -> None:
    import uvloop

    _, port, seconds = sys.argv
    tokens = list(iter(lambda: sys.stdin.readline().strip(), ""))
    sys.stdout.write(f"{uvloop.run(_load(int(port), float(seconds), tokens))}\n")


if __name__ == "__main__":
    main()
