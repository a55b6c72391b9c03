"""The relay inside of another program: real agents, what they used as a list, and listeners that fail."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import acp_proxy
from acp_proxy import config
from acp_proxy.core.money import Money
from acp_proxy.interceptor import Interceptor, Refusal
from acp_proxy.ledger import LedgerError, Query, open_ledger
from acp_proxy.library.usages import OnUsagesChange, Usages
from acp_proxy.log import Log
from tests.agents.client import alive, eventually
from tests.ends import Ends, answer, prompt, update
from tests.pace import slower

DOCS = Path(__file__).parent.parent.parent / "docs/library.md"
AGENT = [sys.executable, "-m", "acp_proxy.demo_agent"]
PROMPT = {"sessionId": "demo-session", "prompt": [{"type": "text", "text": "hi"}]}


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._id = 0

    async def ask(self, method: str, **params: Any) -> Any:
        """The response, with whatever came before it passed over."""
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.writer.write(json.dumps(request).encode() + b"\n")
        while True:
            message = json.loads(await self._reader.readline())
            if message.get("id") == self._id:
                return message

    async def open(self) -> None:
        await self.ask("initialize", protocolVersion=1)
        await self.ask("session/new", cwd="/", mcpServers=[])


async def closed(writer: asyncio.StreamWriter) -> None:
    """To the end: what its loop has not closed when the test is over would be found by another one."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def connected(
    on_usages_change: OnUsagesChange | None = None, **options: Any
) -> AsyncIterator[tuple[acp_proxy.Relay, Client]]:
    ours, theirs = socket.socketpair()
    async with acp_proxy.Relay(AGENT, client=theirs, on_usages_change=on_usages_change, **options) as relay:
        client = Client(*await asyncio.open_connection(sock=ours))
        await client.open()
        yield relay, client
        await closed(client.writer)


async def test_what_a_turn_used_is_listed_when_its_response_is_there() -> None:
    async with connected() as (relay, client):
        assert relay.usages == []
        answer = await client.ask("session/prompt", **PROMPT)
        (usage,) = relay.usages
        assert usage.total == answer["result"]["usage"]["totalTokens"]
        assert (usage.model, usage.kind, usage.session) == ("claude-sonnet-5", "turn", "demo-session")
        assert usage.to_openai() == {"prompt_tokens": 12242, "completion_tokens": 96, "total_tokens": 12338}
        assert usage.cost == {"USD": "0.031359"}


async def test_a_listener_gets_all_usages_after_every_change() -> None:
    told: asyncio.Queue[list[acp_proxy.Usage]] = asyncio.Queue()
    async with connected(told.put_nowait) as (relay, client):
        for count in (1, 2, 3):
            await client.ask("session/prompt", **PROMPT)
            async with asyncio.timeout(60):
                assert await told.get() == relay.usages
            assert len(relay.usages) == count


async def test_a_listener_is_called_within_100_ms_of_the_end_of_a_turn() -> None:
    """Most times: a busy machine takes its own time; a wait of ours would be in each of them."""
    now = asyncio.get_running_loop().time
    told: asyncio.Queue[float] = asyncio.Queue()
    took = []
    async with connected(lambda _: told.put_nowait(now())) as (_, client):
        for _ in range(10):
            await client.ask("session/prompt", **PROMPT)
            ended = now()
            async with asyncio.timeout(60):
                took.append(await told.get() - ended)
    assert sorted(took)[5] < 0.1 * slower()


async def test_a_compaction_is_told_and_stands_beside_the_turns() -> None:
    told: asyncio.Queue[list[acp_proxy.Usage]] = asyncio.Queue()
    usages = Usages(told.put_nowait, Log("error", None))
    ends = Ends([usages])
    ends.open_session("@agentclientprotocol/claude-agent-acp", "0.100.0")
    ends.client_says(prompt(2))
    ends.agent_says(update("usage_update", used=10, size=20, cost={"amount": 0.01, "currency": "USD"}))
    ends.agent_says(answer(2, stopReason="end_turn", usage={"inputTokens": 9, "outputTokens": 1, "totalTokens": 10}))
    assert [usage.kind for usage in await told.get()] == ["turn"]
    ends.agent_says(update("compaction_update", status="completed"))
    ends.agent_says(update("usage_update", used=5, size=20, cost={"amount": 0.03, "currency": "USD"}))
    assert [(usage.kind, usage.cost) for usage in await told.get()] == [
        ("turn", {"USD": "0.01"}),
        ("compaction", {"USD": "0.02"}),
    ]


async def test_a_listener_may_be_a_coroutine_function_and_is_waited_for_at_the_end() -> None:
    told = []

    async def listen(usages: list[acp_proxy.Usage]) -> None:
        await asyncio.sleep(0)
        told.append(len(usages))

    async with connected(listen) as (_, client):
        await client.ask("session/prompt", **PROMPT)
    assert told == [1]


async def test_a_listener_that_fails_is_logged_and_the_relay_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    def at_once(_: list[acp_proxy.Usage]) -> None:
        raise RuntimeError("no display")

    async def later(_: list[acp_proxy.Usage]) -> None:
        raise RuntimeError("no network")

    for listener in (at_once, later):
        async with connected(listener) as (relay, client):
            assert (await client.ask("session/prompt", **PROMPT))["result"]["stopReason"] == "end_turn"
            assert (await client.ask("session/prompt", **PROMPT))["result"]["stopReason"] == "end_turn"
            assert len(relay.usages) == 2
    logged = capfd.readouterr().err
    assert logged.count("no display") == logged.count("no network") == 2


async def test_the_exit_status_is_the_agents() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        async with acp_proxy.Relay([sys.executable, "-c", "raise SystemExit(7)"], client=theirs) as relay:
            assert await relay.wait() == 7


async def test_leaving_ends_an_agent_that_still_runs() -> None:
    ours, theirs = socket.socketpair()
    forever = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    with ours:
        async with acp_proxy.Relay([sys.executable, "-c", forever], client=theirs) as relay:
            reader, writer = await asyncio.open_connection(sock=ours)
            pid = int(await reader.readline())
            os.kill(pid, 0)
        assert await relay.wait() == 128 + 15
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await closed(writer)


async def test_who_leaves_at_once_ends_the_agent_just_so() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        async with acp_proxy.Relay(["cat"], client=theirs) as relay:
            pass
        assert await relay.wait() in (0, 128 + signal.SIGTERM)  # its stdin ends, and the signal comes at once
        assert relay.usages == []


@pytest.mark.skipif(sys.platform != "linux", reason="whether it lives is looked up in /proc")
async def test_who_gives_up_while_it_leaves_kills_the_agent_and_its_children_and_closes_the_connection() -> None:
    ours, theirs = socket.socketpair()
    stays = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); child = os.fork()\n"
        "if child: print(os.getpid(), child, flush=True)\n"
        "while True: signal.pause()"
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(60) as patience:
            async with acp_proxy.Relay([sys.executable, "-c", stays], client=theirs, grace=60):
                reader, writer = await asyncio.open_connection(sock=ours)
                pids = [int(pid) for pid in (await reader.readline()).split()]
                patience.reschedule(0)
    assert eventually(lambda: not any(map(alive, pids)))
    assert await reader.read() == b""
    await closed(writer)


def children() -> str:
    """Of this thread, as Linux lists them."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="children are looked up in /proc")
async def test_a_client_that_is_closed_leaves_no_agent_behind() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    before = children()
    with pytest.raises(OSError, match="Bad file descriptor"):
        async with acp_proxy.Relay(["sleep", "60"], client=theirs):
            pytest.fail("it has no client")
    assert children() == before


@pytest.mark.skipif(sys.platform != "linux", reason="children and descriptors are looked up in /proc")
async def test_a_ledger_that_nobody_can_open_leaves_neither_an_agent_nor_a_descriptor_behind() -> None:
    defaults = config.without_files({}, {"HOME": "/"})
    nowhere = structs.replace(defaults, ledger=structs.replace(defaults.ledger, url="postgresql://host:port/db"))
    ours, theirs = socket.socketpair()
    before, open_before = children(), descriptors()
    with pytest.raises(LedgerError, match="a port is a number"):
        async with acp_proxy.Relay(["sleep", "60"], client=theirs, config=nowhere):
            pytest.fail("it has no ledger")
    assert (children(), descriptors()) == (before, open_before - 1)  # the client's
    ours.close()


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-agent", 127), ("/etc/passwd/agent", 127), ("/etc/passwd", 126)]
)
async def test_an_agent_that_cannot_be_started_is_an_exception(command: str, status: int) -> None:
    with pytest.raises(acp_proxy.NotStarted) as told:
        async with acp_proxy.Relay([command]):
            pytest.fail("it cannot run")
    assert told.value.status == status


async def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(acp_proxy.NotStarted, match=f"{tmp_path}/gone"):
        async with acp_proxy.Relay(AGENT, cwd=tmp_path / "gone"):
            pytest.fail("it cannot run")


async def test_who_waits_without_having_entered_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="enter the relay first"):
        await acp_proxy.Relay(AGENT).wait()


def test_a_command_a_ledger_and_a_log_level_must_be_ones() -> None:
    with pytest.raises(ValueError, match="expected the agent's command"):
        acp_proxy.Relay([])
    with pytest.raises(ValueError, match="as a list of words, not 'my-agent --acp'"):
        acp_proxy.Relay("my-agent --acp")
    with pytest.raises(config.ConfigError, match="--ledger: expected a path, sqlite:///PATH"):
        acp_proxy.Relay(AGENT, ledger="mysql://db")
    with pytest.raises(ValueError, match="expected debug, info, warning, error as log_level, not 'loud'"):
        acp_proxy.Relay(AGENT, log_level="loud")  # type: ignore[arg-type]  # that is it


async def test_environment_and_directory_are_the_agents(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    says = [sys.executable, "-c", "import os; print(os.getcwd(), os.environ['MOOD'], flush=True)"]
    async with acp_proxy.Relay(says, client=theirs, cwd=tmp_path, env={**os.environ, "MOOD": "good"}) as relay:
        reader, writer = await asyncio.open_connection(sock=ours)
        assert (await reader.readline()).decode() == f"{tmp_path} good\n"
        await closed(writer)
        await relay.wait()


async def test_rows_are_kept_where_a_ledger_is_given_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with connected() as (_, client):
        await client.ask("session/prompt", **PROMPT)
    assert os.listdir(tmp_path) == []  # noqa: PTH208  iterdir would be said to block
    url = f"sqlite:///{tmp_path}/mine/ledger.db"
    async with connected(ledger=url) as (relay, client):
        await client.ask("session/prompt", **PROMPT)
    ledger = open_ledger(url, journals=())
    assert [row.entry.id for row in ledger.rows(Query())] == [usage.turn for usage in relay.usages]
    ledger.close()


async def test_a_configuration_brings_its_budgets(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[[budget]]\nname = "none"\nwindow = "day"\nlimit = { turns = 0 }\n')
    options = {"config": str(file), "ledger": f"sqlite:///{tmp_path}/ledger.db"}
    chosen = config.load(options, {"HOME": str(tmp_path)})
    async with connected(config=chosen) as (relay, client):
        answer = await client.ask("session/prompt", **PROMPT)
        assert "budget" in answer["result"]["_meta"]["acp-proxy"]
        assert relay.usages == []


async def test_an_interceptor_may_refuse_a_prompt() -> None:
    class Closed(Interceptor):
        request_methods = frozenset({"session/prompt"})

        async def admit(self, *_: object) -> Refusal:
            return Refusal(error={"code": -32603, "message": "closed"})

    async with connected(interceptors=[Closed()]) as (relay, client):
        assert (await client.ask("session/prompt", **PROMPT))["error"]["message"] == "closed"
        assert relay.usages == []


COUNTS = st.builds(acp_proxy.Usage, *[st.integers(0, 10**9)] * 5, model=st.sampled_from([None, "a", "b"]))


@given(st.lists(COUNTS, min_size=1, max_size=5))
def test_a_sum_adds_every_counter_and_keeps_what_is_the_same(usages: list[acp_proxy.Usage]) -> None:
    total = sum(usages, acp_proxy.Usage())
    assert total.total == sum(usage.total for usage in usages)
    assert total.to_openai() == {
        "prompt_tokens": sum(usage.input + usage.cached_read + usage.cached_write for usage in usages),
        "completion_tokens": sum(usage.output + usage.thought for usage in usages),
        "total_tokens": total.total,
    }
    models = {usage.model for usage in usages if usage != acp_proxy.Usage()}
    assert total.model == (models.pop() if len(models) == 1 else None)


def test_costs_add_up_by_currency() -> None:
    dollars, points = (acp_proxy.Usage(costs=(Money.of("1.5", currency),)) for currency in ("USD", "credits"))
    assert (dollars + points + dollars).cost == {"USD": "3", "credits": "1.5"}


def test_the_names_are_those_that_are_promised_and_no_others() -> None:
    assert all(getattr(acp_proxy, name) for name in acp_proxy.__all__)
    assert set(acp_proxy.__all__) <= set(dir(acp_proxy))  # what a prompt of Python completes
    with pytest.raises(AttributeError, match="has no attribute 'Proxy'"):
        _ = acp_proxy.Proxy


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_documentation_run(number: int, tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[number]
    agent = tmp_path / "my-agent"
    agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m acp_proxy.demo_agent\n')
    agent.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": PROMPT},
    ]
    done = subprocess.run(
        [sys.executable, "-c", example],
        input="".join(json.dumps(message) + "\n" for message in messages),
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    if number == 0:
        assert '"stopReason":"end_turn"' in done.stdout.replace(" ", "")
        assert "[Usage(input=412" in done.stderr
    else:
        assert "demo-agent" in done.stdout
        assert done.stdout.splitlines()[-1] == "{'prompt_tokens': 0, 'completion_tokens': 0, 'total_tokens': 0}"
