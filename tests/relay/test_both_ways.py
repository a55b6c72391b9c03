"""Both directions at once between real pipes, with the dispatcher between them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import sys
from collections.abc import Sequence

import pytest

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Request
from acp_proxy.core.traffic import Traffic
from acp_proxy.interceptor import Interceptor, Refusal
from acp_proxy.relay.outlet import HOLDING_AT_MOST, Outlet
from acp_proxy.relay.pump import READ, Pump
from acp_proxy.relay.stdio import own_end
from tests.agents.loops import LOOPS, Loop, on
from tests.ends import Ends, answer, chunk, encoded, prompt, request


class Both:
    """Both directions between pipes of any size, as the relay has them, with the dispatcher between."""

    def __init__(self, capacities: random.Random, interceptors: Sequence[Interceptor] = ()) -> None:
        self._capacities = capacities
        self.dispatcher = Ends(interceptors).dispatcher
        from_client, self.client_says = self._pipe()
        self.client_hears, to_client = self._pipe()
        from_agent, self.agent_says = self._pipe()
        self.agent_hears, to_agent = self._pipe()
        self.to_client = Outlet(own_end(to_client, writes=True), lambda: self.from_agent.balance())
        self.to_agent = Outlet(own_end(to_agent, writes=True), lambda: self.from_client.balance())
        self.to_client.answers(self.to_agent)
        self.to_agent.answers(self.to_client)
        self.dispatcher.attach(self.to_client, self.to_agent)
        self.traffic = traffic = Traffic()
        self.from_client = Pump(
            Side.CLIENT,
            own_end(from_client, writes=False),
            self.to_agent,
            self.dispatcher,
            self.to_agent.finish,
            traffic,
        )
        self.from_agent = Pump(
            Side.AGENT,
            own_end(from_agent, writes=False),
            self.to_client,
            self.dispatcher,
            self.to_client.finish,
            traffic,
        )
        self.to_client.start()
        self.from_client.start()
        self.from_agent.start()

    def _pipe(self) -> tuple[int, int]:
        read, write = os.pipe()
        if sys.platform == "linux":
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, self._capacities.choice([4096, 8192, 65536, 1 << 20]))
        return read, write

    def close(self) -> None:
        self.from_client.close()
        self.from_agent.close()


async def says(fd: int, data: bytes, sizes: random.Random) -> None:
    """All of it in pieces of any size, and then no more."""
    os.set_blocking(fd, False)
    while data:
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data[: sizes.choice([1, 4096, 70_000, data.find(b"\n") + 1 or 1])]) :]
        await asyncio.sleep(0)
    os.close(fd)


async def reads(fd: int, sizes: random.Random) -> bytes:
    """All that comes, read in pieces of any size."""
    os.set_blocking(fd, False)
    heard = bytearray()
    while True:
        with contextlib.suppress(BlockingIOError):
            piece = os.read(fd, sizes.choice([10, 4096, 1 << 20]))
            if not piece:
                break
            heard += piece
        for _ in range(sizes.choice([0, 0, 0, 20])):
            await asyncio.sleep(0)
    os.close(fd)
    return bytes(heard)


def anything(chance: random.Random) -> bytes:
    """Lines of all kinds that the ways through the pump tell apart, in any order; perhaps the last one has no end."""
    kinds = [
        encoded(chunk("a word")) * 300,
        encoded(chunk("a word")),
        encoded(chunk("long" * 30_000)),
        encoded(request(7, "fs/read_text_file", path="a")),
        encoded(answer(7, content="x" * 6_000)) * 3,
        encoded(answer(7, content="x" * 66_000)),
        b'{"id":9,' + b" " * 140_000 + b"}\n",
        b"\xff" * 65_535 + b"\n",
        b"\n\r\n",
    ]
    return b"".join(chance.choices(kinds, k=25)) + chance.choice([b"", b'{"half":'])


@LOOPS
@pytest.mark.parametrize("seed", range(4))
def test_all_arrives_in_order_both_ways_at_once_whatever_pipes_hold_and_readers_take(loop: Loop, seed: int) -> None:
    chance = random.Random(seed)

    async def test() -> None:
        both = Both(chance)
        client, agent = anything(chance), anything(chance)
        _, _, to_agent, to_client = await asyncio.gather(
            says(both.client_says, client, chance),
            says(both.agent_says, agent, chance),
            reads(both.agent_hears, chance),
            reads(both.client_hears, chance),
        )
        assert to_agent == client
        assert to_client == agent
        assert (both.traffic.from_client.bytes, both.traffic.from_agent.bytes) == (len(client), len(agent))
        both.close()

    on(loop, test)


class Refuses(Interceptor):
    request_methods = frozenset({"session/prompt"})

    async def admit(self, sender: Side, request: Request) -> Refusal:
        return Refusal(result={"stopReason": "refusal", "_meta": {"why": "x" * 20_000}})


@LOOPS
def test_who_prompts_and_reads_no_answer_is_not_read_until_it_does(loop: Loop) -> None:
    chance = random.Random(7)

    async def test() -> None:
        both = Both(chance, [Refuses()])
        os.set_blocking(both.client_says, False)
        asked = idle = 0
        while idle < 200:
            try:
                asked += len(encoded(prompt(asked))) == os.write(both.client_says, encoded(prompt(asked)))
                idle = 0
            except BlockingIOError:
                idle += 1
            assert asked < 20_000
            await asyncio.sleep(0)
        assert asked > HOLDING_AT_MOST // 21_000
        os.set_blocking(both.client_hears, False)
        answered = 0
        while answered < asked:
            with contextlib.suppress(BlockingIOError):
                answered += os.read(both.client_hears, READ).count(b"\n")
            await asyncio.sleep(0)
        both.close()

    on(loop, test)
