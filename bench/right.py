"""Checks without a clock: odd lines come out byte for byte, and every kind of end and of stdin is survived."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable

from bench.peer import Died, Peer, proc
from bench.traffic import Figures

ODD_LINES = (
    b'{"jsonrpc":"2.0","method":"_x/a","params":{"f":1.0,"e":1E5,"big":123456789012345678901234567890}}\n',
    b'{ "jsonrpc" : "2.0" , "method" : "_x/a" , "params" : { "z":1, "a":2 } }\n',
    '{"jsonrpc":"2.0","method":"_x/a","params":{"t":"é\u2028 \\u00e9 \\/ \\ud83d\\ude00"}}\n'.encode(),
    b'{"method":"_x/a","params":{"dup":1,"dup":2},"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","method":"_x/a","params":{"lone":"\\ud800"}}\n',
    b'{"jsonrpc":"2.0","method":"_x/a","params":{"crlf":1}}\r\n',
    b'{"jsonrpc":"2.0","method":"_x/a","params":{"bad":"\xff\xfe"}}\n',
    b'{"jsonrpc":"2.0","id":"str-id","method":"_x/b","params":{},"_extra":null}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"future","x":[]}}}\n',
    b"plain text, not JSON\n",
)
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
DEAF = {"BENCH_AGENT_IGNORE_EOF": "1"}  # an agent that stays when its stdin ends


def fidelity(command: list[str]) -> Figures:
    """Odd lines to the agent and back, cut in two."""
    return {"byte-exact": sum(_passes(command, line) for line in ODD_LINES)}


def _passes(command: list[str], line: bytes) -> bool:
    with contextlib.suppress(Died, ValueError), Peer(command, seconds=4) as peer:
        peer.hello()
        peer.send(peer.prompt("echo n=1"))
        while b'"stopReason"' not in peer.line():
            pass
        peer.send(line[: len(line) // 2])
        time.sleep(0.01)
        peer.send(line[len(line) // 2 :])
        return peer.line() == line
    return False


def life(command: list[str]) -> Figures:
    """1 where it is right."""
    return {name: int(_holds(check, command)) for name, check in LIFE.items()}


def _holds(check: Callable[[list[str]], bool], command: list[str]) -> bool:
    try:
        return check(command)
    except (Died, OSError, subprocess.TimeoutExpired, ValueError):
        return False


def _exit_status(command: list[str]) -> bool:
    with Peer(command, seconds=8) as peer:
        peer.hello()
        peer.send(peer.prompt("exit code=3"))
        return peer.process.wait(3) == 3


def _half_close(command: list[str]) -> bool:
    with Peer(command, seconds=8) as peer:
        peer.hello()
        peer.send(peer.prompt("stream n=5000 size=300 mode=msg"))
        if peer.process.stdin:
            peer.process.stdin.close()
        time.sleep(0.3)
        return peer.drain()[1] >= 5001 and peer.process.wait(3) == 0


def _signal(number: signal.Signals, environment: dict[str, str]) -> Callable[[list[str]], bool]:
    def check(command: list[str]) -> bool:
        with Peer(command, seconds=8, environment=environment) as peer:
            peer.hello()
            agent = peer.agent
            os.kill(peer.process.pid, number)
            return _gone(agent, 2) and (number == signal.SIGKILL or _gone(peer.process.pid, 2))

    return check


def _reader_gone(command: list[str]) -> bool:
    with Peer(command, seconds=8) as peer:
        peer.hello()
        agent = peer.agent
        peer.send(peer.prompt("stream n=100000 size=300 mode=burst"))
        for stream in (peer.process.stdout, peer.process.stdin):
            if stream:
                stream.close()
        return _gone(agent, 3) and _gone(peer.process.pid, 3)


def _from_file(command: list[str]) -> bool:
    with tempfile.TemporaryFile() as file:
        file.write(INITIALIZE)
        file.seek(0)
        with Peer(command, seconds=4, stdin=file) as peer:
            return b"protocolVersion" in peer.line()


def _socket_pair(command: list[str]) -> bool:
    ours, its = socket.socketpair()
    with ours, its, _started_on(its, command) as process:
        try:
            its.close()
            ours.settimeout(4)
            ours.sendall(INITIALIZE)
            return b"protocolVersion" in ours.makefile("rb").readline()
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            process.kill()


def _started_on(end: socket.socket, command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=end.fileno(), stdout=end.fileno(), stderr=subprocess.DEVNULL)


def _flags_kept(command: list[str]) -> bool:
    """O_NONBLOCK belongs to the pipe, not to us."""
    reads, writes = os.pipe()
    try:
        with Peer(command, seconds=8, stdin=reads) as peer:
            peer.to_relay = writes
            peer.hello()
            return not fcntl.fcntl(reads, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(reads)
        os.close(writes)


LIFE: dict[str, Callable[[list[str]], bool]] = {
    "exit status": _exit_status,
    "half-close": _half_close,
    "TERM": _signal(signal.SIGTERM, {}),
    "TERM, deaf agent": _signal(signal.SIGTERM, DEAF),
    "INT, deaf agent": _signal(signal.SIGINT, DEAF),
    "HUP, deaf agent": _signal(signal.SIGHUP, DEAF),
    "KILL": _signal(signal.SIGKILL, {}),
    "KILL, deaf agent": _signal(signal.SIGKILL, DEAF),
    "reader gone": _reader_gone,
    "stdin is a file": _from_file,
    "a socket pair": _socket_pair,
    "flags kept": _flags_kept,
}


def _gone(pid: int, seconds: float) -> bool:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        stat = proc(f"/proc/{pid}/stat")
        if not stat or stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.005)
    return False
