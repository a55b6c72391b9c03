"""Starts the agent. Imports nothing but `os`, `sys` and `_signal`: nothing heavy may come before the agent runs.

Never changes what the agent inherits: environment, directory, stderr, process group, ignored signals.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` is not imported yet
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal  # `signal` wraps it into enums, for 3 ms

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# What a relay between two sockets opens; newer versions of libffi keep one of them. A ledger takes more: where only
# these are left it is out of reach, and the relay says so.
_DESCRIPTORS = 21
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)  # all other dispositions are inherited, as nohup wants it


class NotStarted(Exception):  # noqa: N818  it reads as what happened
    """The agent could not be started; `status` is the shell's 127 (not found) or 126 (not executable)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Started:
    """A running agent and the descriptors around it, all close-on-exec. The agent is a child in our process group.

    `from_client` and `to_client` are what fd 0 and 1 were: those names now lead to /dev/null and to stderr, so that
    no library reads or writes the wire.
    """

    __slots__ = ("adopts", "from_agent", "from_client", "pid", "to_agent", "to_client")

    def __init__(
        self, *, pid: int, to_agent: int, from_agent: int, from_client: int, to_client: int, adopts: bool = False
    ) -> None:
        self.pid = pid
        self.to_agent = to_agent
        self.from_agent = from_agent
        self.from_client = from_client
        self.to_client = to_client
        self.adopts = adopts  # orphans of the agent's tree become our children


def spawn(agent: list[str]) -> Started:
    """Starts the agent with pipes of its own and our environment, directory and stderr.

    On Linux the agent gets SIGTERM when we are killed, and its orphans become our children. For the main thread of a
    program that has no other threads yet. Raises NotStarted.
    """
    agent_stdin, to_agent = os.pipe()
    from_agent, agent_stdout = os.pipe()
    prctl = _prctl()
    adopts = prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0  # first: an agent may leave orphans at once
    try:
        if prctl:
            pid = _fork(agent, agent_stdin, agent_stdout, prctl)
        else:
            pid = os.posix_spawnp(
                agent[0],
                agent,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, agent_stdin, 0), (os.POSIX_SPAWN_DUP2, agent_stdout, 1)],
                setsigdef=_IGNORED_BY_PYTHON,
            )
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # as in `_fork`
    except OSError as error:
        os.close(to_agent)
        os.close(from_agent)
        raise not_started(agent[0], error) from error
    finally:
        os.close(agent_stdin)
        os.close(agent_stdout)
    from_client, to_client = take_wire()
    return Started(
        pid=pid,
        to_agent=to_agent,
        from_agent=from_agent,
        from_client=from_client,
        to_client=to_client,
        adopts=adopts,
    )


def hold_standard_descriptors() -> None:
    """Opens /dev/null for closed fd 0, 1 and 2, so that no pipe of the agent gets these numbers. Raises NotStarted."""
    try:
        while (fd := os.open("/dev/null", os.O_RDWR)) <= 2:
            os.set_inheritable(fd, True)
    except OSError as error:  # as in a root directory that somebody made by hand
        raise NotStarted(126, f"agent not started: /dev/null: {error.strerror}") from error
    os.close(fd)


def look_for_descriptors() -> None:
    """Raises NotStarted if too few are free: without any, the relay's event loop would end the process."""
    free = list[int]()
    try:
        while len(free) < _DESCRIPTORS:
            free.append(os.dup(2))
    except OSError as error:
        reason = f"{len(free)} file descriptors are free, and {_DESCRIPTORS} are needed; ulimit -n allows more"
        raise NotStarted(126, f"agent not started: {reason}") from error
    finally:
        for descriptor in free:
            os.close(descriptor)


def become(agent: list[str]) -> NoReturn:
    """Replaces this process by the agent. Raises NotStarted."""
    for number in _IGNORED_BY_PYTHON:
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(agent[0], agent)  # noqa: S606  no shell is wanted
    except OSError as error:
        raise not_started(agent[0], error) from error


def _fork(agent: list[str], stdin: int, stdout: int, prctl: Callable[[int, int], int]) -> int:
    """The agent's pid. posix_spawn cannot tie it to our life; setpriv could, at the same 1.2 ms. Raises OSError."""
    failed, failure = os.pipe()
    parent = os.getpid()
    inherited = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # the end of an ignored child cannot be learned
    pid = os.fork()
    if not pid:
        try:
            prctl(_PR_SET_PDEATHSIG, _signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(0)  # we were killed before the line above
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            _signal.signal(_signal.SIGCHLD, inherited)
            for number in _IGNORED_BY_PYTHON:
                _signal.signal(number, _signal.SIG_DFL)
            os.execvp(agent[0], agent)  # noqa: S606  no shell is wanted
        except OSError as error:
            os.write(failure, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(failure)
    errno = os.read(failed, 16)  # ends without a byte when exec closed the other end
    os.close(failed)
    if errno:
        os.waitpid(pid, 0)
        raise OSError(int(errno), os.strerror(int(errno)))
    return pid


def _prctl() -> Callable[[int, int], int] | None:
    """Linux's prctl(2). `_ctypes` alone loads in a third of a millisecond, `ctypes` takes 3."""
    if sys.platform == "linux":
        try:
            import _ctypes

            address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None: what is loaded
            call = _ctypes.call_function
        except (ImportError, AttributeError, OSError):
            return None

        def prctl(option: int, value: int) -> int:
            result: int = call(address, (option, value, 0, 0, 0))
            return result

        return prctl
    else:  # noqa: RET505  what a type checker for macOS leaves out
        return None


def not_started(command: str, error: OSError) -> NotStarted:
    """The exception if the system refuses an agent's `command` with `error`: status 127 or 126, as a shell has it."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        hint = "; its arguments must be words of their own" if " " in command else ""
        return NotStarted(127, f"agent not found: {command}{hint}")
    return NotStarted(126, f"agent cannot be executed: {command}: {error.strerror}")


def take_wire() -> tuple[int, int]:
    """The previous fd 0 and 1, which are /dev/null and stderr from now on."""
    from_client, to_client = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return from_client, to_client
