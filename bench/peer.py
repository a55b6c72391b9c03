"""The client's end of one relay in front of the bench agent: lines in and out, and what the relay's processes use."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

SESSION = "sess_0123456789abcdef"


class Died(Exception):  # noqa: N818  what happened to the relay
    """The relay or its agent went away, or said something else than was expected."""


class Peer:
    """A running relay. Its wire is used unbuffered, so that what is measured is the relay."""

    def __init__(
        self,
        command: list[str],
        *,
        seconds: float = 120,
        stdin: int | IO[bytes] = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="bench")
        self._pid_file = Path(self._directory.name, "pid")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        own = {"BENCH_AGENT_PIDFILE": str(self._pid_file), "PYTHONUNBUFFERED": "1"}
        self.began = time.perf_counter_ns()
        self.process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **own, **(environment or {})},
            start_new_session=True,
        )
        self.to_relay = self.process.stdin.fileno() if self.process.stdin else -1
        self.from_relay = self.process.stdout.fileno() if self.process.stdout else -1
        self._buffer = bytearray()
        self._id = 0
        self._late = threading.Timer(seconds, self._kill)
        self._late.daemon = True
        self._late.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._late.cancel()
        self._kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        self._directory.cleanup()

    def _kill(self) -> None:
        """The relay's group, which we made, and an agent that left it."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            if self.agent and self.agent != self.process.pid:
                os.kill(self.agent, signal.SIGKILL)

    # Messages

    def hello(self) -> Self:
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        self.call("session/new", {"cwd": "/", "mcpServers": []})
        return self

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send(self.request(method, params))
        while "method" in (message := json.loads(self.line())):
            pass
        return dict(message)

    def prompt(self, command: str, size: int = 0) -> bytes:
        """A prompt that makes the bench agent do `command`."""
        prompt = [{"type": "text", "text": f"bench {command}"}]
        return self.request("session/prompt", {"sessionId": SESSION, "prompt": prompt}, size)

    def ping(self, mode: str = "code") -> bytes:
        """A request that no relay needs to understand, 200 bytes long like its answer. In mode `usage` a usage_update
        comes before that."""
        return self.request("session/set_mode", {"sessionId": SESSION, "modeId": mode}, 200)

    def request(self, method: str, params: dict[str, Any], size: int = 0) -> bytes:
        """A line, padded to `size` bytes in `_meta`."""
        self._id += 1
        line = _encoded(self._id, method, params)
        if size > len(line) + 24:
            line = _encoded(self._id, method, params | {"_meta": {"pad": "x" * (size - len(line) - 19)}})
        return line

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.to_relay, view) :]
        except OSError as error:
            raise Died(str(error)) from error

    def line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer += self.read()
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def read(self, most: int = 1 << 20) -> bytes:
        data = os.read(self.from_relay, most)
        if not data:
            raise Died(self.stderr())
        return data

    def drain(self) -> tuple[int, int, int]:
        """Reads to the end of the turn. Returns bytes, lines, and when the first byte came (ns)."""
        size = lines = first = 0
        tail = b""
        while not (tail.endswith(b"\n") and b'"stopReason"' in tail):
            data = self.read()
            first = first or time.perf_counter_ns()
            size += len(data)
            lines += data.count(b"\n")
            tail = (tail + data)[-4096:]
        return size, lines, first

    def stderr(self) -> str:
        self._stderr.seek(0)
        return "ended: " + self._stderr.read()[-600:].decode(errors="replace")

    # What its processes use: all of its tree but the agent

    @property
    def agent(self) -> int:
        """The agent's process id, 0 while unknown."""
        text = proc(self._pid_file)
        return int(text) if text.isdigit() else 0

    def relay_processes(self) -> list[int]:
        agent, parents = self.agent, _parents()
        return [pid for pid in parents if pid != agent and _descends(pid, self.process.pid, agent, parents)]

    def cpu_ns(self) -> int:
        return self._sum_over_threads("schedstat", lambda text: int((text or "0").split()[0]))

    def context_switches(self) -> int:
        return self._sum_over_threads(
            "status", lambda text: sum(int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line)
        )

    def _sum_over_threads(self, file: str, read: Callable[[str], int]) -> int:
        tasks = [task for pid in self.relay_processes() for task in Path(f"/proc/{pid}/task").glob("*")]
        return sum(read(proc(task / file)) for task in tasks)

    def memory(self, key: str) -> float:
        """MB of VmRSS, VmHWM or the like."""
        lines = [line for pid in self.relay_processes() for line in proc(f"/proc/{pid}/status").splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith(key + ":")) / 1024

    def forget_peak(self) -> None:
        for pid in self.relay_processes():
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")


def proc(path: str | Path) -> str:
    """A file's text; empty when it is gone."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _encoded(id: int, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _parents() -> dict[int, int]:
    stats = {int(path.name): proc(path / "stat") for path in Path("/proc").iterdir() if path.name.isdigit()}
    return {pid: int(stat.rpartition(")")[2].split()[1]) for pid, stat in stats.items() if stat}


def _descends(pid: int, root: int, but_not: int, parents: dict[int, int]) -> bool:
    while pid > 1 and pid not in (root, but_not):
        pid = parents.get(pid, 0)
    return pid == root
