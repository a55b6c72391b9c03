"""acp-proxy inside of another program: a relay around an agent, and what was used as a list.

Nothing here reads a configuration file or writes to a ledger unless it is told to.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from msgspec import structs

from acp_proxy import relay
from acp_proxy.config import Config, without_files
from acp_proxy.core.traffic import Traffic
from acp_proxy.interceptor import Interceptor
from acp_proxy.library.usages import OnUsagesChange, Usage, Usages
from acp_proxy.log import LEVELS, Log
from acp_proxy.system.spawn import Started, not_started, take_wire
from acp_proxy.wiring import wired


class Relay:
    """`async with Relay(["my-agent"]) as relay: await relay.wait()` stands between a client and an agent.

    The client is at this process's stdin and stdout (which are then no longer `print`'s: that writes to
    stderr), or at the other end of `client`, a connected socket. `on_usages_change` is called with all usages of a
    session after each change of them, from the event loop, soon after the turn's last line went on; it may be a
    coroutine function. Its exceptions are logged, and nothing else.

    `ledger` is a URL to write rows to. `config` is a whole configuration, as `acp_proxy.config.load({}, os.environ)`
    gives it, with its ledger and budgets; without one nothing is read, priced by the catalog, and kept in memory.
    `interceptors` see what happens, and may refuse prompts.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        on_usages_change: OnUsagesChange | None = None,
        client: socket.socket | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        ledger: str | None = None,
        config: Config | None = None,
        interceptors: Iterable[Interceptor] = (),
        log_level: Literal["debug", "info", "warning", "error"] = "warning",
        grace: float = relay.GRACE,
    ) -> None:
        """`cwd` and `env` are the agent's, by default this process's. The relay closes `client`, once it is entered.

        `log_level` counts where no `config` tells one. `grace` is in seconds, from the client's last byte to SIGTERM,
        and on to SIGKILL. Raises ValueError, and ConfigError for a ledger URL that is none.
        """
        if not command or isinstance(command, str):
            raise ValueError(f"expected the agent's command as a list of words, not {command!r}")
        if log_level not in LEVELS:
            raise ValueError(f"expected {', '.join(LEVELS)} as log_level, not {log_level!r}")
        self._command = list(command)
        self._client = client
        self._cwd, self._env = cwd, env
        self._books = ledger is not None or config is not None
        self._config = _config(config, ledger)
        self._interceptors = list(interceptors)
        self._log = Log(self._config.log.level if config else log_level, self._config.log.file)
        self._usages = Usages(on_usages_change, self._log)
        self._grace = grace
        self._relayed: asyncio.Task[int] | None = None

    @property
    def usages(self) -> list[Usage]:
        """Everything that was used so far, in the order in which it ended."""
        return list(self._usages.usages)

    async def __aenter__(self) -> Self:
        """Start the agent, on the running loop. Raises NotStarted, and OSError for a client that is closed already."""
        with ExitStack() as if_that_fails:
            self._process = _start(self._command, self._cwd, self._env)
            if_that_fails.callback(_kill, self._process)
            started = _around(self._process, self._client)
            if_that_fails.callback(_close, started)
            traffic, interceptors = Traffic(), [self._usages, *self._interceptors]
            self._dispatcher = wired(
                self._config, self._command, self._log, interceptors, traffic=traffic, books=self._books
            )
            if_that_fails.pop_all()
        self._relay = relay.Relay(started, self._dispatcher, signals=False, grace=self._grace, traffic=traffic)
        self._relayed = asyncio.create_task(self._relay.run(), name="acp-proxy relay")
        return self

    async def wait(self) -> int:
        """Until the agent has exited and its output is delivered. The agent's exit status, 128 + N for a signal.

        Raises RuntimeError where the relay was not entered.
        """
        if self._relayed is None:
            raise RuntimeError("enter the relay first: async with Relay(…) as relay")
        return await asyncio.shield(self._relayed)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the agent if it still runs, and see that what it used is kept and told."""
        assert self._relayed is not None  # noqa: S101  it was entered
        asyncio.get_running_loop().call_soon(self._stop)  # not at once: it may not have begun yet
        try:
            self._process.returncode = await self._relayed
        finally:
            if self._process.returncode is None:  # cancelled; the loop waits for what is killed
                self._process.kill()
                self._process.returncode = -signal.SIGKILL
            self._dispatcher.finish()
            await self._dispatcher.aclose()

    def _stop(self) -> None:
        if self._relayed is not None and not self._relayed.done():
            self._relay.stop()


def _config(config: Config | None, ledger: str | None) -> Config:
    """Without one the defaults, and no file is read for them."""
    flags = {} if ledger is None else {"ledger": ledger}
    defaults = without_files(flags, {"HOME": str(Path.home())})
    if config is None:
        return defaults
    return config if ledger is None else structs.replace(config, ledger=defaults.ledger)


def _start(
    command: list[str], cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, env=env)
    except OSError as error:
        raise not_started(os.fsdecode(error.filename or command[0]), error) from error  # or `cwd` is not there


def _kill(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.kill()


def _close(started: Started) -> None:
    for descriptor in (started.to_agent, started.from_agent, started.from_client, started.to_client):
        os.close(descriptor)


def _around(process: subprocess.Popen[bytes], client: socket.socket | None) -> Started:
    """The descriptors around the agent, all of them for the relay to close."""
    assert process.stdin  # noqa: S101  both are pipes
    assert process.stdout  # noqa: S101  the other one
    if client is None:
        from_client, to_client = take_wire()
    else:
        to_client = os.dup(client.fileno())
        from_client = client.detach()
    with process.stdin as to_agent, process.stdout as from_agent:
        pipes = os.dup(to_agent.fileno()), os.dup(from_agent.fileno())
    return Started(
        pid=process.pid, to_agent=pipes[0], from_agent=pipes[1], from_client=from_client, to_client=to_client
    )
