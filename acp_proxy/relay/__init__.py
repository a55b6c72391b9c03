"""The I/O shell: two pumps between the client and the agent, and the rules for the end of the relay.

Never parses a line, waits only for its two peers, and is idle while neither sends anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Exit, Traffic
from acp_proxy.relay.outlet import Outlet
from acp_proxy.relay.process import AgentProcess
from acp_proxy.relay.pump import Pump
from acp_proxy.relay.stdio import own_end, shared_end
from acp_proxy.system.spawn import NotStarted, Started

if TYPE_CHECKING:
    from acp_proxy.relay.inspector import Inspector

GRACE = 2.0  # seconds from the last byte to SIGTERM, and on to SIGKILL, as in the SDKs
DRAIN = 1.0  # seconds for what the agent left in its pipe; a grandchild may hold it open for ever
FLUSH = 0.5  # seconds for a client to take the rest when a signal ends us
TICK = 0.1  # seconds between two looks at whether bytes still move
TURN_OF_A_THREAD = 1e-4  # seconds; with Python's 5 ms reads would wait so long while the ledger's thread is at work


def run(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Runs the program on uvloop, or on the loop of asyncio. Raises NotStarted where neither can be."""
    _look_for_sockets()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(main())


def _look_for_sockets() -> None:
    """Each loop wakes itself by a pair. Without, that of uvloop fails as it runs, and then cannot even be closed."""
    try:
        for end in socket.socketpair():
            end.close()
    except OSError as error:
        raise NotStarted(126, f"not relayed: the event loop needs socketpair: {error.strerror}") from error


def _new_loop() -> asyncio.AbstractEventLoop:
    with contextlib.suppress(ImportError, OSError):  # a sandbox may refuse epoll or eventfd, and asyncio's does without
        from uvloop import new_event_loop

        return new_event_loop()
    return asyncio.new_event_loop()


class Relay:
    """`run` once, on the loop's main thread when `signals` are to be taken. `grace` is in seconds."""

    def __init__(
        self,
        started: Started,
        inspector: Inspector,
        *,
        signals: bool = True,
        grace: float = GRACE,
        traffic: Traffic | None = None,
    ) -> None:
        self._started = started
        self._grace = grace
        self._inspector = inspector
        self._signals = signals
        self._traffic = traffic or Traffic()
        self._signalled = self._over = False
        self._stirred = asyncio.Event()

    async def run(self) -> int:
        """Relays until the agent has exited and its output is delivered, or the client is gone and the agent ended.

        Returns the agent's exit status, 128 + N for a signal. Cancelled, it kills the agent and all that it started.
        """
        self._open()
        try:
            with self._taking_signals():
                if self._signals:  # the process is ours
                    gc.freeze()
                    sys.setswitchinterval(TURN_OF_A_THREAD)
                self._to_client.start()
                self._from_client.start()
                self._from_agent.start()
                await self._until(lambda: self._agent_exited or self._client_is_leaving)
                stopped = self._client_is_leaving
                if not self._agent_exited:
                    await self._see_off()
                self._from_client.stop()
                await self._deliver()
        except BaseException:  # cancelled: the agent is not waited for any more
            self._agent.signal_tree(signal.SIGKILL)
            raise
        finally:
            self._over = True
            self._close()
        status = self._agent.status if self._agent.status is not None else 128 + signal.SIGKILL
        self._traffic.exits["stopped" if stopped else _how(status)] += 1
        return status

    def stop(self) -> None:
        """End the agent as if a signal had come; `run` returns when it is over. Does nothing then."""
        if not self._over:
            self._signal()

    def _open(self) -> None:
        started = self._started
        self._agent = AgentProcess(started.pid, adopts=started.adopts, exited=self._stirred.set)
        self._to_client = Outlet(shared_end(started.to_client, writes=True), self._agent_may_go_on)
        self._to_agent = Outlet(own_end(started.to_agent, writes=True), self._client_may_go_on)
        self._to_client.answers(self._to_agent)
        self._to_agent.answers(self._to_client)
        client, agent = shared_end(started.from_client, writes=False), own_end(started.from_agent, writes=False)
        traffic, inspector = self._traffic, self._inspector
        inspector.attach(self._to_client, self._to_agent)
        self._from_client = Pump(Side.CLIENT, client, self._to_agent, inspector, self._client_ended, traffic)
        self._from_agent = Pump(Side.AGENT, agent, self._to_client, inspector, self._agent_ended, traffic)

    def _close(self) -> None:
        self._agent.close()
        for each in (self._from_client, self._from_agent, self._to_client, self._to_agent):
            each.close()

    # What happened on the wire.

    def _client_may_go_on(self) -> None:
        """The agent took what waited, or takes no more; or lines that were held for admission went."""
        self._from_client.balance()
        if self._from_client.ended:
            self._client_ended()

    def _agent_may_go_on(self) -> None:
        self._from_agent.balance()
        if self._client_is_leaving or self._agent_exited:
            self._stirred.set()

    def _client_ended(self) -> None:
        if not self._inspector.holding():
            self._to_agent.finish()
        self._stirred.set()

    def _agent_ended(self) -> None:
        self._to_client.finish()
        self._stirred.set()

    def _signal(self) -> None:
        self._signalled = True
        self._to_agent.close()
        self._stirred.set()

    # When it is over.

    @property
    def _agent_exited(self) -> bool:
        return self._agent.status is not None

    @property
    def _client_is_leaving(self) -> bool:
        return self._from_client.ended or self._to_client.lost or self._signalled

    async def _see_off(self) -> None:
        """The ladder: the end of stdin, SIGTERM, SIGKILL."""
        await self._quiet()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._agent.is_gone():
                return
            self._agent.signal_tree(number)
            await self._agent.gone(within=self._grace)

    async def _quiet(self) -> None:
        """Returns when no byte has moved or was held for the time of grace, or the agent exited, or a signal came.

        Looks are counted: where the machine stands still the clock goes on, and the agent had none of that time.
        """
        moved, looks = self._moved, 0
        while looks * TICK < self._grace:
            if self._to_client.lost:  # what the client may still say has no one to answer to
                self._from_client.finish()
                self._to_agent.close()
            if await self._until(lambda: self._agent_exited or self._signalled, TICK):
                return
            looks += 1
            if (self._moved != moved or self._inspector.holding()) and not self._to_client.lost:
                moved, looks = self._moved, 0

    @property
    def _moved(self) -> int:
        """Bytes that were read or, where they had to wait, written."""
        came = self._traffic.from_client.bytes + self._traffic.from_agent.bytes
        return came + self._to_client.moved + self._to_agent.moved

    async def _deliver(self) -> None:
        """Delivers the agent's remaining output while the client reads; a signal ends that."""
        if not await self._until(lambda: self._from_agent.ended, FLUSH if self._signalled else DRAIN):
            self._from_agent.cut()
        await self._until(lambda: self._delivered or self._signalled)
        await self._until(lambda: self._delivered, FLUSH)

    @property
    def _delivered(self) -> bool:
        return self._to_client.lost or (self._from_agent.ended and self._to_client.delivered)

    async def _until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Whether the condition came true in time; looked at whenever something stirs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._stirred.clear()
                    await self._stirred.wait()
        return condition()

    @contextlib.contextmanager
    def _taking_signals(self) -> Iterator[None]:
        """SIGTERM, SIGINT and SIGHUP end the agent; one that came ignored stays ignored (nohup, a shell's `&`)."""
        loop = asyncio.get_running_loop()
        numbers = [
            number
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            if self._signals and signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in numbers:
            loop.add_signal_handler(number, self._signal)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def _how(status: int) -> Exit:
    if status > 128:
        return "signal"
    return "failed" if status else "ok"
