"""One direction between two real pipes, with an inspector that may hold lines back."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys
import termios
from array import array
from collections.abc import Callable

from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Traffic
from acp_proxy.relay.outlet import HOLDING_AT_MOST, Outlet
from acp_proxy.relay.pump import READ, Pump
from acp_proxy.relay.stdio import own_end
from tests.agents.forwarding import Forwarding
from tests.agents.loops import LOOPS, Loop, on

LINE = b"x" * 999 + b"\n"


class Holding(Forwarding):
    """Keeps the client's lines back until it is told to let them go."""

    def __init__(self) -> None:
        self.held = bytearray()
        self.ends = 0

    def lines(self, sender: Side, run: bytes) -> None:
        self.held += run
        self.to_agent.hold_back(len(self.held))

    def ended(self, sender: Side) -> None:
        self.ends += 1

    def holding(self) -> int:
        return len(self.held)

    def release(self) -> bytes:
        run = bytes(self.held)
        self.held.clear()
        self.to_agent.hold_back(0)
        return run


class Direction:
    """From a client's pipe to an agent's."""

    def __init__(self, inspector: Forwarding) -> None:
        self.ended, self.traffic = asyncio.Event(), Traffic()
        source, self.client = os.pipe()
        self.agent, sink = os.pipe()
        os.set_blocking(self.client, False)
        self.outlet = Outlet(own_end(sink, writes=True), lambda: self.pump.balance())
        inspector.attach(self.outlet, self.outlet)
        self.pump = Pump(
            Side.CLIENT, own_end(source, writes=False), self.outlet, inspector, self.ended.set, self.traffic
        )
        self.pump.start()

    async def fill(self, done: Callable[[], bool]) -> int:
        """Writes as long as anything is taken and the loop has not settled; how many bytes."""
        written = 0
        while not done():
            with contextlib.suppress(BlockingIOError):
                written += os.write(self.client, LINE * 16)
            await asyncio.sleep(0)
        return written

    def close(self) -> None:
        os.close(self.client)
        self.pump.close()
        self.outlet.close()
        os.close(self.agent)


def in_pipe(fd: int) -> int:
    """Bytes that can be read."""
    size = array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]


async def settled(rounds: int = 50) -> None:
    """The loop has had every chance to do something more."""
    for _ in range(rounds):
        await asyncio.sleep(0)


@LOOPS
def test_a_client_is_read_no_further_while_too_much_of_it_waits_for_admission(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector)
        await direction.fill(lambda: inspector.holding() > HOLDING_AT_MOST)
        held = inspector.holding()
        os.write(direction.client, LINE)
        await settled()
        assert inspector.holding() == held <= HOLDING_AT_MOST + READ
        inspector.release()
        await direction.fill(lambda: inspector.holding() > READ)
        direction.close()

    on(loop, test)


@LOOPS
def test_lines_that_wait_for_admission_stop_nobody_once_the_agent_reads_no_more(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector)
        await direction.fill(lambda: direction.outlet.congested)
        direction.outlet.lose()
        assert not direction.outlet.congested
        held = inspector.holding()
        await direction.fill(lambda: inspector.holding() > held + READ)
        direction.close()

    on(loop, test)


@LOOPS
def test_one_chunk_in_eight_is_timed_and_so_is_the_first_after_a_rest(loop: Loop) -> None:
    async def test() -> None:
        direction = Direction(Forwarding())
        flow = direction.traffic.from_client
        timed = []
        for number in range(20):
            if number == 10:
                direction.traffic.rest()
            os.write(direction.client, LINE)
            await settled()
            assert flow.bytes == (number + 1) * len(LINE)
            timed.append(sum(flow.buckets))
            os.read(direction.agent, READ)
        assert timed == [1] * 8 + [2] * 2 + [3] * 8 + [4] * 2
        assert flow.nanoseconds > 0
        direction.close()

    on(loop, test)


@LOOPS
def test_a_reader_that_stops_pauses_the_pump_and_gets_all_when_it_goes_on(loop: Loop) -> None:
    async def test() -> None:
        direction = Direction(Forwarding())
        written = await direction.fill(lambda: direction.outlet.congested)
        there = in_pipe(direction.agent)
        await settled()
        assert in_pipe(direction.agent) == there
        assert 0 < written - there <= 3 * READ  # what waits, and what is still in the client's pipe
        read = 0
        while read < written:
            read += len(os.read(direction.agent, READ))
            await settled()
        assert not direction.outlet.congested
        direction.close()

    on(loop, test)


@LOOPS
def test_the_loss_of_the_reader_resumes_a_paused_pump_so_that_the_writer_is_not_stuck(loop: Loop) -> None:
    async def test() -> None:
        direction = Direction(Forwarding())
        await direction.fill(lambda: direction.outlet.congested)
        os.close(direction.agent)
        direction.agent = os.open("/dev/null", os.O_RDONLY)
        await direction.fill(lambda: direction.outlet.lost)
        assert await direction.fill(iter([False] * 100 + [True]).__next__) > 4 * READ
        direction.close()

    on(loop, test)


@LOOPS
def test_the_end_of_a_stream_is_told_once_after_its_last_line(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector)
        os.write(direction.client, b"whole\nunterminated")
        os.close(direction.client)
        direction.client = os.open("/dev/null", os.O_RDONLY)
        await direction.ended.wait()
        direction.pump.finish()
        assert (bytes(inspector.held), inspector.ends) == (b"whole\nunterminated", 1)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_cut_stream_ends_with_what_is_in_the_pipe_though_it_stays_open(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector)
        await settled()
        os.write(direction.client, b"in time\n")
        direction.pump.cut()
        assert (bytes(inspector.held), inspector.ends) == (b"in time\n", 1)
        direction.close()

    on(loop, test)


class Quick(Holding):
    """Has somebody write a little more whenever something was read."""

    pipe: int

    def lines(self, sender: Side, run: bytes) -> None:
        super().lines(sender, run)
        if len(self.held) < 4 * READ:
            os.write(self.pipe, LINE * 66)


@LOOPS
def test_a_cut_stream_ends_though_a_grandchild_writes_on_and_on(loop: Loop) -> None:
    async def test() -> None:
        inspector = Quick()
        direction = Direction(inspector)
        inspector.pipe = direction.client
        await settled()
        in_time = b"y" * (READ - 1) + b"\n"
        os.write(direction.client, in_time)
        direction.pump.cut()
        assert (bytes(inspector.held), inspector.ends) == (in_time, 1)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_cut_stream_ends_with_all_of_a_pipe_that_holds_more_than_a_read_brings(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector)
        await settled()
        if sys.platform == "linux":
            fcntl.fcntl(direction.client, fcntl.F_SETPIPE_SZ, 1 << 20)
        left = LINE * (300 if sys.platform == "linux" else 10)
        assert os.write(direction.client, left) == len(left)
        direction.pump.cut()
        assert (bytes(inspector.held), inspector.ends) == (left, 1)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_stream_that_is_cut_while_nobody_reads_arrives_as_a_whole(loop: Loop) -> None:
    async def test() -> None:
        direction = Direction(Forwarding())
        written = await direction.fill(lambda: direction.outlet.congested)
        direction.pump.cut()
        assert direction.ended.is_set()
        read = 0
        while read < written:
            read += len(os.read(direction.agent, READ))
            await settled()
        assert direction.outlet.delivered
        direction.close()

    on(loop, test)
