"""One direction between two real pipes, with an inspector that may hold lines back."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import random
import socket
import sys
import termios
from array import array
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns

import pytest

from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Traffic
from acp_proxy.core.wire.framing import STORED_AT_MOST
from acp_proxy.relay.outlet import HOLDING_AT_MOST, Outlet
from acp_proxy.relay.pump import PIPE_AT_MOST, READ, Pump
from acp_proxy.relay.stdio import own_end, shared_end
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


class Glancing(Forwarding):
    """Has the pump itself write whatever comes as whole lines."""

    def scan(self, sender: Side) -> Callable[[bytes], bool]:
        return lambda _: True


class Direction:
    """From a client's pipe to an agent's; or from another `source`, which is then all that the client says."""

    def __init__(self, inspector: Forwarding, source: int | None = None) -> None:
        self.ended, self.traffic = asyncio.Event(), Traffic()
        pipe, self.client = os.pipe()
        self.agent, sink = os.pipe()
        os.set_blocking(self.client, False)
        self.outlet = Outlet(own_end(sink, writes=True), lambda: self.pump.balance())
        inspector.attach(self.outlet, self.outlet)
        end = own_end(pipe, writes=False) if source is None else shared_end(source, writes=False)
        self.pump = Pump(Side.CLIENT, end, self.outlet, inspector, self.ended.set, self.traffic)
        self.pump.start()
        if source is not None:
            os.close(pipe)

    async def fill(self, done: Callable[[], bool], data: bytes = LINE * 16) -> int:
        """Writes as long as anything is taken and the loop has not settled; how many bytes."""
        written = 0
        while not done():
            with contextlib.suppress(BlockingIOError):
                written += os.write(self.client, data)
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
def test_one_chunk_in_64_is_timed_and_so_is_the_first_after_a_rest(loop: Loop) -> None:
    async def test() -> None:
        began = monotonic_ns()
        direction = Direction(Forwarding())
        flow = direction.traffic.from_client
        timed = []
        for number in range(140):
            if number == 10:
                direction.traffic.rearm()
            os.write(direction.client, LINE)
            await settled()
            assert flow.bytes == (number + 1) * len(LINE)
            timed.append(sum(flow.buckets))
            os.read(direction.agent, READ)
        assert timed == [1] * 10 + [2] * 64 + [3] * 64 + [4] * 2
        assert 0 < flow.nanoseconds < monotonic_ns() - began
        direction.close()

    on(loop, test)


@LOOPS
@pytest.mark.parametrize("inspector", [Forwarding, Glancing])
def test_a_reader_that_stops_pauses_the_pump_and_gets_all_when_it_goes_on(
    loop: Loop, inspector: type[Forwarding]
) -> None:
    async def test() -> None:
        direction = Direction(inspector())
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
@pytest.mark.parametrize("inspector", [Forwarding, Glancing])
def test_the_loss_of_the_reader_resumes_a_paused_pump_so_that_the_writer_is_not_stuck(
    loop: Loop, inspector: type[Forwarding]
) -> None:
    async def test() -> None:
        direction = Direction(inspector())
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
        assert direction.traffic.from_client.bytes == len(b"in time\n")
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
        assert direction.traffic.from_client.bytes == len(left)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_stream_that_never_runs_dry_is_cut_after_what_a_pipe_can_hold(loop: Loop) -> None:
    async def test() -> None:
        inspector = Holding()
        direction = Direction(inspector, os.open("/dev/zero", os.O_RDONLY))
        direction.pump.cut()
        assert (len(inspector.held), inspector.ends) == (PIPE_AT_MOST, 1)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_stream_that_ended_is_read_no_more_though_somebody_writes_again(loop: Loop, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def test() -> None:
        inspector = Holding()
        source = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        direction = Direction(inspector, source)
        (tmp_path / "pipe").write_bytes(LINE)
        await direction.ended.wait()
        direction.pump.balance()  # as when the agent takes what waited
        again = os.open(tmp_path / "pipe", os.O_WRONLY)
        os.write(again, LINE)
        await settled()
        assert bytes(inspector.held) == LINE
        assert in_pipe(again) == len(LINE)
        os.close(again)
        direction.close()

    on(loop, test)


@LOOPS
@pytest.mark.parametrize("kind", ["socket", "terminal"])
def test_a_client_that_breaks_off_has_ended(loop: Loop, kind: str) -> None:
    """Reading from it is an error then: a socket that was reset, a terminal that hung up."""

    async def test() -> None:
        inspector = Holding()
        if kind == "socket":
            (theirs, ours) = socket.socketpair()
            ours.send(b"never read")
            client, source = theirs.detach(), ours.detach()
        else:
            client, source = pty.openpty()
        direction = Direction(inspector, source)
        await settled()
        os.close(client)
        await direction.ended.wait()
        assert (bytes(inspector.held), inspector.ends) == (b"", 1)
        direction.close()

    on(loop, test)


@LOOPS
def test_a_pump_that_is_closed_leaves_no_descriptor(loop: Loop) -> None:
    async def test() -> None:
        r, w = os.pipe()
        direction = Direction(Forwarding(), r)
        direction.close()
        with pytest.raises(BrokenPipeError):
            os.write(w, b"nobody has the other end\n")
        os.close(w)

    on(loop, test)


class Watchful(Forwarding):
    """Keeps what it is shown. Huge lines pass as they come where they begin with `s`, else they are stored."""

    def __init__(self) -> None:
        self.shown: list[bytes] = []
        self.pieces: list[bytes] = []
        self.gave_up: list[int] = []

    def lines(self, sender: Side, run: bytes) -> None:
        assert not self.pieces
        self.shown += run.splitlines(keepends=True)
        super().lines(sender, run)

    def streams(self, sender: Side, head: bytes) -> bool:
        return head.startswith(b"s")

    def gives_up(self, sender: Side, size: int) -> bool:
        self.gave_up.append(size)
        return True

    def part(self, sender: Side, data: bytes, *, last: bool) -> None:
        self.pieces.append(data)
        if last:
            self.shown.append(b"".join(self.pieces))
            self.pieces = []
        self.to_agent.write(data)


@LOOPS
@pytest.mark.parametrize("seed", range(4))
def test_each_line_is_shown_once_and_whole_or_in_pieces_of_which_only_the_last_ends_it(loop: Loop, seed: int) -> None:
    chance = random.Random(seed)
    kinds = [b"short\n", LINE, b"s" * (READ - 1) + b"\n", b"s" * 3 * READ + b"\n", b"stored" * READ + b"\n"]
    kinds += [b"x" * (READ + 1) + b"\n", b"\n"]
    lines = [*chance.choices(kinds, k=40), b"unterminated"]

    async def test() -> None:
        inspector = Watchful()
        direction = Direction(inspector)
        os.set_blocking(direction.agent, False)
        data = b"".join(lines)
        while not direction.ended.is_set():
            with contextlib.suppress(BlockingIOError):
                while data:
                    data = data[os.write(direction.client, data[: chance.choice([1, 6, READ, READ, READ])]) :]
                os.close(direction.client)
                direction.client = os.open("/dev/null", os.O_RDONLY)
            await asyncio.sleep(0)
            with contextlib.suppress(BlockingIOError):
                os.read(direction.agent, 4 * READ)
        assert inspector.shown == lines
        direction.close()

    on(loop, test)


@LOOPS
def test_of_a_line_that_may_not_stream_no_more_is_stored_than_64_mib(loop: Loop) -> None:
    async def test() -> None:
        inspector = Watchful()
        direction = Direction(inspector)
        os.close(direction.agent)
        direction.agent = os.open("/dev/null", os.O_RDONLY)
        await direction.fill(lambda: bool(inspector.pieces), b"x" * READ)
        assert STORED_AT_MOST < inspector.gave_up[0] <= STORED_AT_MOST + READ
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
