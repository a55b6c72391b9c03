"""Where lines to one side go, between real pipes: who is paused by what is not read, and what a closed one leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from acp_proxy.relay.outlet import HOLDING_AT_MOST, Outlet
from acp_proxy.relay.pump import READ
from acp_proxy.relay.stdio import own_end
from tests.agents.loops import LOOPS, Loop, on

LINE = b"x" * (READ // 2 - 1) + b"\n"  # a pipe holds two of them


class Pair:
    """Both outlets of a relay. What goes to the client answers what comes from it and goes to the agent."""

    def __init__(self) -> None:
        self.client, to_client = os.pipe()
        self.agent, to_agent = os.pipe()
        self.went_on = 0  # how often the client's pump was told that it may
        self.to_client = Outlet(own_end(to_client, writes=True), lambda: None)
        self.to_agent = Outlet(own_end(to_agent, writes=True), self._goes_on)
        self.to_client.answers(self.to_agent)
        self.to_agent.answers(self.to_client)

    def _goes_on(self) -> None:
        self.went_on += 1

    def close(self) -> None:
        self.to_client.close()
        self.to_agent.close()
        os.close(self.client)
        os.close(self.agent)


@LOOPS
def test_who_reads_all_that_we_say_is_read_however_much_that_is(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        for _ in range(2 * HOLDING_AT_MOST // len(LINE)):
            pair.to_client.insert(LINE)
            assert os.read(pair.client, READ) == LINE
        pair.to_client.insert(LINE)
        assert not pair.to_agent.congested
        pair.close()

    on(loop, test)


@LOOPS
def test_who_is_owed_too_much_is_not_read_until_it_has_been_said(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        pair.to_client.owe(HOLDING_AT_MOST)
        assert not pair.to_agent.congested
        pair.to_client.owe(HOLDING_AT_MOST + 1)
        assert (pair.to_agent.congested, pair.went_on) == (True, 0)
        pair.to_client.owe(0)
        assert (pair.to_agent.congested, pair.went_on) == (False, 1)
        pair.close()

    on(loop, test)


@LOOPS
def test_what_waits_and_what_is_owed_are_weighed_together(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        for _ in range(3):
            pair.to_client.insert(LINE)  # the third has to wait
        pair.to_client.owe(HOLDING_AT_MOST - len(LINE) + 1)
        assert pair.to_agent.congested
        pair.close()

    on(loop, test)


@LOOPS
def test_what_waits_is_no_less_in_the_way_for_what_is_held_back_or_owed_beside_it(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        for _ in range(3):
            pair.to_agent.write(LINE)
        pair.to_agent.hold_back(1)
        assert pair.to_agent.congested
        pair.to_client.owe(HOLDING_AT_MOST + 1)
        pair.to_client.owe(0)
        assert pair.to_agent.congested
        os.set_blocking(pair.agent, False)
        while not pair.to_agent.delivered:
            with contextlib.suppress(BlockingIOError):
                os.read(pair.agent, READ)
            await asyncio.sleep(0)
        assert (pair.to_agent.congested, pair.to_agent.moved) == (False, 3 * len(LINE))
        told = pair.went_on
        for _ in range(50):
            await asyncio.sleep(0)
        assert pair.went_on == told  # what is free to be written to is not asked for any more
        pair.close()

    on(loop, test)


@LOOPS
def test_who_reads_no_more_for_good_is_paused_for_nothing_that_it_has_not_read(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        pair.to_client.owe(HOLDING_AT_MOST + 1)
        pair.to_client.lose()
        assert (pair.to_agent.congested, pair.went_on) == (False, 1)
        pair.to_client.owe(HOLDING_AT_MOST + 2)
        assert not pair.to_agent.congested
        pair.close()

    on(loop, test)


@LOOPS
def test_a_closed_outlet_writes_nothing_to_whatever_is_opened_under_its_number(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        for _ in range(3):
            pair.to_client.write(LINE)
        waited = not pair.to_client.delivered
        pair.to_client.close()
        pair.to_agent.close()
        assert (waited, pair.to_client.delivered) == (True, True)  # it is given up
        assert written_elsewhere(pair.to_client, pair.to_agent) == b""
        pair.close()

    on(loop, test)


@LOOPS
def test_an_outlet_that_is_closed_as_more_is_read_for_it_stays_closed(loop: Loop) -> None:
    async def test() -> None:
        pair, closed = Pair(), asyncio.Event()

        def refill() -> None:
            pair.to_agent.close()
            closed.set()

        pair.to_agent.refill = refill
        for _ in range(3):
            pair.to_agent.write(LINE)
        os.read(pair.agent, READ)
        await closed.wait()
        assert written_elsewhere(pair.to_agent) == b""
        pair.close()

    on(loop, test)


def written_elsewhere(*outlets: Outlet) -> bytes:
    """What closed outlets write to files that were opened since, and have the lowest numbers that are free."""
    others = [end for _ in range(4) for end in socket.socketpair()]
    for outlet in outlets:
        outlet.write(b"to nobody\n")
    found = b""
    for end in others:
        with end, contextlib.suppress(BlockingIOError):
            found += end.recv(100, socket.MSG_DONTWAIT)
    return found


@LOOPS
def test_what_cannot_be_written_is_told_once(loop: Loop) -> None:
    async def test() -> None:
        pair = Pair()
        os.close(pair.agent)
        pair.agent = os.open("/dev/null", os.O_RDONLY)
        pair.to_agent.write(b"to nobody\n")
        pair.to_agent.lose()
        await asyncio.sleep(0)
        assert (pair.to_agent.lost, pair.went_on) == (True, 1)
        pair.close()

    on(loop, test)
