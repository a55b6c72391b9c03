"""A client and an agent as processes of their own, `python -m harness.faults.parties`, so that each can be killed.

Both note what they saw in a file the moment they saw it. Every turn has a session of its own, so that a row tells
which turn it is; nothing here knows the relay or the ledger.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

CHUNKS = 20  # lines of a turn, numbered
COST = "0.25"  # of a turn, in USD; a binary fraction, for the agent writes it as a number
AT_ONCE = int(os.environ.get("TURNS_AT_ONCE", "4"))


class Notes:
    """Lines in a file, each there as a whole as soon as `add` returns, whatever happens to its process next."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def add(self, *words: object) -> None:
        os.write(self._file, " ".join(map(str, words)).encode() + b"\n")


def agent(notes: Notes) -> None:
    notes.add("agent", os.getpid())
    name = os.urandom(4).hex()
    sessions = 0
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        match asked["method"]:
            case "initialize":
                who = {"name": "claude-agent-acp", "version": "0.61.0"}
                _answer(asked["id"], protocolVersion=1, agentInfo=who)
            case "session/new":
                sessions += 1
                _answer(asked["id"], sessionId=f"{name}-{sessions}")
            case "session/prompt":
                session = asked["params"]["sessionId"]
                notes.add("reached", session)
                for number in range(CHUNKS):
                    text = {"type": "text", "text": str(number)}
                    _update(session, sessionUpdate="agent_message_chunk", content=text)
                cost = {"amount": float(COST), "currency": "USD"}
                _update(session, sessionUpdate="usage_update", used=1000, size=200_000, cost=cost)
                _answer(asked["id"], stopReason="end_turn")


def _answer(id: object, **result: object) -> None:
    _write({"jsonrpc": "2.0", "id": id, "result": result})


def _update(session: str, **update: object) -> None:
    _write({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})


def _write(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Client:
    """Prompts `turns` times, some at once, and notes what was acknowledged and what came in a wrong order.

    Before the last `kept` of them it waits for the file `go_on`, which says how many are kept then.
    """

    def __init__(self, notes: Notes, wire: IO[bytes], turns: int, kept: int, go_on: Path) -> None:
        self._notes = notes
        self._wire = wire
        self._left = turns
        self._kept = kept
        self._go_on = go_on
        self._running = 0
        self.waits = 0  # turns that could begin, but are kept
        self._ids = itertools.count(1)
        self._asked: dict[int, str] = {}  # what was asked, or the session of a prompt
        self._next = dict[str, int]()  # the number of the chunk that is due, by session
        self.ask("initialize", "initialize", protocolVersion=1)

    def ask(self, what: str, method: str, **params: object) -> None:
        number = next(self._ids)
        self._asked[number] = what
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._wire.write(json.dumps(message).encode() + b"\n")
        self._wire.flush()

    def hear(self, message: dict[str, Any]) -> bool:
        """Whether there is more to come."""
        match message:
            case {"id": id, "result": result}:
                self._answered(self._asked.pop(id, "what nobody asked"), result)
            case {"method": "session/update", "params": {"sessionId": session, "update": update}}:
                self._updated(session, update)
            case _:
                self._notes.add("fault", "unexpected", json.dumps(message)[:200])
        return self._running > 0 or self._left > 0

    def _answered(self, asked: str, result: dict[str, Any]) -> None:
        if asked == "initialize":
            for _ in range(AT_ONCE):
                self._open()
        elif asked == "new":
            session = result["sessionId"]
            self._next[session] = 0
            self._notes.add("asked", session)
            text = [{"type": "text", "text": "go"}]
            self.ask(session, "session/prompt", sessionId=session, prompt=text)
        elif asked in self._next:
            self._ended(asked, result)
        else:
            self._notes.add("fault", "an answer to", asked)

    def look(self) -> None:
        """Whether those that wait may begin."""
        if not self.waits:
            return
        with contextlib.suppress(OSError):
            self._kept = int(self._go_on.read_text())
        waiting, self.waits = self.waits, 0
        for _ in range(waiting):
            self._open()

    def _open(self) -> None:
        if 0 < self._left <= self._kept:
            self.waits += 1
        elif self._left:
            self._left -= 1
            self._running += 1
            self.ask("new", "session/new", cwd="/", mcpServers=[])

    def _ended(self, session: str, result: dict[str, Any]) -> None:
        self._running -= 1
        if "_meta" in result:
            self._notes.add("refused", session)
        else:
            if self._next[session] != CHUNKS:
                self._notes.add("fault", "lost", CHUNKS - self._next[session], "lines of", session)
            self._notes.add("acked", session)
        self._open()

    def _updated(self, session: str, update: dict[str, Any]) -> None:
        text = update.get("content", {}).get("text", "")
        if update["sessionUpdate"] != "agent_message_chunk" or not text.isdigit():
            if text:  # what the relay says on its own account
                self._notes.add("said", session, " ".join(text.split())[:200])
                self._notes.add("when", time.time(), " ".join(text.split())[:200])
            return
        if int(text) != self._next[session]:
            self._notes.add("fault", "line", text, "came for", self._next[session], "in", session)
        self._next[session] = int(text) + 1


def client(notes: Notes, turns: int, kept: int, go_on: Path, relay: list[str]) -> None:
    with subprocess.Popen(relay, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        notes.add("client", os.getpid())
        notes.add("relay", process.pid)
        if process.stdin and process.stdout:
            try:
                one = Client(notes, process.stdin, turns, kept, go_on)
                for line in _lines(process.stdout, one):
                    if not one.hear(json.loads(line)):
                        break
                process.stdin.close()
            except BrokenPipeError:
                notes.add("broken", "pipe")
            process.stdout.read()
        notes.add("ended", process.wait())


def _lines(wire: IO[bytes], one: Client) -> Iterator[bytes]:
    """As they come; meanwhile it is looked after turns that wait."""
    data = b""
    while True:
        while not select.select([wire], [], [], 0.05 if one.waits else None)[0]:
            one.look()
        more = os.read(wire.fileno(), 65536)
        if not more:
            return
        *lines, data = (data + more).split(b"\n")
        yield from lines


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent", path]:
            agent(Notes(Path(path)))
        case ["client", path, turns, kept, *relay]:
            client(Notes(Path(path)), int(turns), int(kept), Path(f"{path}.go-on"), relay)
