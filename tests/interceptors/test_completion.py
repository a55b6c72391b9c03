"""A turn is completed while its relay goes on: with a real one, and an agent that records more than it tells."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.events import CostsCorrected, TurnMetered
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.interceptors.completion import Completion
from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerUnavailableError,
    NoLedgerError,
    Query,
    Row,
    open_ledger,
)
from harness.rows import ALICE, NOON, amended, line, row
from tests.agents import client as peer
from tests.agents.client import python, running, send, send_and_close
from tests.ledger.warned import Warnings
from tests.machine import Machine

# Tells as Gemini CLI does, without its thinking, and records that.
AGENT = """
import datetime, json, os, pathlib, sys
session = "0de0cc3e-5da3-400f-a2f9-b86d0ed66a82"
chats = pathlib.Path(os.environ["HOME"], ".gemini/tmp/work/chats")
chats.mkdir(parents=True)
book = (chats / f"session-2026-11-27T12-10-{session[:8]}.jsonl").open("a")
def note(**record): print(json.dumps(record), file=book, flush=True)
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
note(sessionId=session, kind="main")
calls = 0
for text in sys.stdin:
    asked = json.loads(text)
    match asked.get("method"):
        case "initialize":
            who = {"name": "gemini-cli", "version": "0.61.0"}
            say(id=asked["id"], result={"protocolVersion": 1, "agentInfo": who})
        case "session/new": say(id=asked["id"], result={"sessionId": session})
        case "session/prompt":
            calls += 1
            now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
            used = {"input": 10000, "cached": 8000, "output": 100, "thoughts": 900}
            note(id=f"m{calls}", timestamp=now, type="gemini", model="gemini-3.8-flash", tokens=used)
            told = {"input_tokens": 10000, "output_tokens": 100}
            quota = {"token_count": told, "model_usage": [{"model": "gemini-3.8-flash", "token_count": told}]}
            say(id=asked["id"], result={"stopReason": "end_turn", "_meta": {"quota": quota}})
"""
RECORDED = Usage(input=2000, cached_read=8000, output=100, thought=900)


class Client:
    def __init__(self, process: Any) -> None:
        self._process = process
        self._id = 0
        self.shown: list[Any] = []  # costs, with where they are from

    def ask(self, method: str, **params: Any) -> Any:
        self._id += 1
        asked = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        send(self._process.stdin, json.dumps(asked).encode() + b"\n")
        while (message := self.hear()).get("id") != self._id:
            pass
        return message["result"]

    def hear(self) -> Any:
        message = json.loads(peer.line(self._process.stdout))
        if message.get("method") == "session/update":
            update = message["params"]["update"]
            self.shown.append((update["_meta"]["acp-proxy"]["source"], update["cost"]["amount"]))
        return message

    def prompt(self) -> None:
        """In a session that was begun."""
        self.ask("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": "hello"}])

    def begin(self) -> None:
        self.ask("initialize", protocolVersion=1)
        self.session = self.ask("session/new", cwd="/", mcpServers=[])["sessionId"]

    def leave(self) -> None:
        send_and_close(self._process.stdin, b"")
        self._process.wait()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def relay(machine: Machine) -> Any:
    return running(sys.executable, "-m", "acp_proxy", "run", "--", *python(AGENT), env=machine.environ)


def rows(machine: Machine) -> list[Row]:
    with closing(open_ledger(machine.url, journals=())) as ledger:
        return list(ledger.rows(Query()))


def test_the_row_has_what_was_recorded_and_the_editor_is_shown_the_new_cost(machine: Machine) -> None:
    with relay(machine) as process:
        client = Client(process)
        client.begin()
        client.prompt()
        while len(client.shown) < 2:  # the second without being asked
            client.hear()
        (row,) = rows(machine)
        assert (row.entry.usage, row.entry.usage_source) == (RECORDED, "agent")
        (cost,) = row.entry.costs
        assert client.shown[-1] == ("ledger", float(cost.text))
        assert client.shown[0][1] != client.shown[1][1]
        client.prompt()
        client.leave()
    first, second = rows(machine)
    assert first == row
    total = first.entry.costs[0].plus(second.entry.costs[0])
    assert client.shown[-1] == ("meter", float(total.text))


TOLD_IN_PART = row(line(cost="0.1"), usage_source="partial")


class Looks:
    """An interceptor whose looks find these ledgers, one after the other, whenever the next one is made."""

    def __init__(self, *found: LedgerError | list[tuple[Row, Row]]) -> None:
        self._found = iter(found)
        self._due: list[Callable[[], object]] = []
        self._done = SimpleQueue[Callable[[], object]]()
        self.announced: list[CostsCorrected] = []
        self.warned = Warnings()
        completion = Completion(
            self._complete,
            lambda _: True,
            lambda _: ALICE,
            self.announced.append,
            later=lambda _, look: self._due.append(look),
            soon=self._done.put,
            clock=lambda: NOON,
            warn=self.warned,
        )
        completion.on_event(
            TurnMetered(NOON, TOLD_IN_PART.entry, SessionState(), reported_usage=False, reported_cost=False)
        )

    def _complete(self, origin: Origin, session: str) -> list[tuple[Row, Row]]:
        found = next(self._found)
        if isinstance(found, LedgerError):
            raise found
        return found

    def make(self) -> int:
        """All that are due; how many there were."""
        made = 0
        while self._due:
            self._due.pop()()
            self._done.get(timeout=60)()
            made += 1
        return made


def test_a_ledger_that_is_busy_or_still_being_made_is_tried_again() -> None:
    whole = amended(TOLD_IN_PART, lines=(line(cost="0.4"),), usage_source="agent")
    looks = Looks(NoLedgerError("is being made"), LedgerUnavailableError("locked"), [(TOLD_IN_PART, whole)])
    assert looks.make() == 3
    assert [each.by for each in looks.announced] == [(Money.of("0.3", "USD"),)]
    assert looks.warned.told == []


@pytest.mark.parametrize(
    ("error", "tries"), [(LedgerUnavailableError("locked"), 3), (LedgerForbiddenError("no permission"), 1)]
)
def test_a_ledger_that_cannot_be_used_is_told_once_where_that_is_final(error: LedgerError, tries: int) -> None:
    looks = Looks(*[error] * 9)
    assert looks.make() == tries
    assert looks.warned.told == [("books.not_completed", {"error": f"{type(error).__name__}: {error}"})]


def test_an_import_completes_what_the_relay_had_no_time_for_and_nothing_twice(machine: Machine) -> None:
    with relay(machine) as process:
        client = Client(process)
        client.begin()
        client.prompt()
        client.leave()
    (row,) = rows(machine)
    assert row.entry.usage_source == "partial"
    done = machine.run("import", "--json")
    (agent,) = json.loads(done.stdout)["agents"]
    assert (agent["calls"], agent["turns_completed"], agent["too_recent"]) == (0, 0, 1)


def test_a_relay_that_may_not_read_books_leaves_its_turns_as_they_were_told(tmp_path: Path) -> None:
    """When another, whose turn ended later, has completed that one."""
    off, on = Machine(tmp_path / "off"), Machine(tmp_path / "on")
    configuration = off.home / ".config/acp-proxy/config.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[books]\ncomplete = false\n", encoding="utf-8")
    with relay(off) as first, relay(on) as second:
        untouched, completed = Client(first), Client(second)
        for client in (untouched, completed):
            client.begin()
            client.prompt()
        while len(completed.shown) < 2:
            completed.hear()
        assert [row.entry.usage_source for row in rows(on)] == ["agent"]
        assert [row.entry.usage_source for row in rows(off)] == ["partial"]
        for client in (untouched, completed):
            client.leave()
    assert [row.entry.usage_source for row in rows(off)] == ["partial"]
    assert len(untouched.shown) == 1
