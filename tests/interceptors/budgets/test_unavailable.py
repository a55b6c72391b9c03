"""What becomes of prompts while the ledger is out of reach."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.budgets import EXPIRY
from tests.ends import SESSION, answer, prompt, request
from tests.interceptors.budgets.house import PATIENT, House, daily, house, usd

SHORT = {"timeout": 0.05}  # where no prompt is asked that is to be answered in time
SMALL = usd("0.1").amount

Asked = Callable[..., Awaitable[bool]]


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Somebody else writes, and does not come to an end."""
    connection = sqlite3.connect(root / "ledger.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.fixture
def out_of_time(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """As `House.prompt`, and there is no more time for an answer as soon as the ledger is asked."""

    async def ask(made: House, id: int, session: str = SESSION) -> bool:
        loop = asyncio.get_running_loop()
        now = loop.time
        made.ends.client_says(prompt(id, session=session))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "time", lambda: now() + 2 * PATIENT)
        await made.until(lambda: made.reached(id) or made.answer_to(id) is not None)
        return made.reached(id)

    return ask


@contextmanager
def held_by_another(root: Path) -> Iterator[Callable[[], None]]:
    """Another process has the file for itself, until what is yielded is called."""
    hold = "c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", f"import sqlite3, sys; {hold}", str(root / "ledger.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        yield process.stdin.close


async def test_closed_refuses_and_leaves_nothing_held(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), options={**SHORT, "on_unavailable": "closed"}) as made:
        await made.settled()
        with locked(tmp_path):
            assert not await made.prompt(2)
            assert "out of reach" in made.texts()[0]
        await made.settled()
        assert (made.held(), made.rows()) == (0, [])
        assert made.decisions()["fail_closed"] == 1


async def test_a_prompt_that_has_time_outlasts_a_ledger_that_is_away_for_a_moment(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), options={"on_unavailable": "closed"}) as made:
        await made.settled()
        with locked(tmp_path):
            decided = asyncio.ensure_future(made.prompt(2))
            assert await asyncio.to_thread(made.warnings.wait, "ledger.unavailable")
        assert await decided


async def test_open_lets_go_and_books_the_turn_when_the_ledger_is_back(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), options={**SHORT, "on_unavailable": "open"}) as made:
        await made.settled()
        with locked(tmp_path):
            assert await made.prompt(2)
            made.finish(2, "0.2")
        await made.settled()
        assert (made.held(), len(made.rows())) == (0, 1)
        assert made.decisions()["fail_open"] == 1


async def test_a_budget_that_is_not_checked_says_so_once(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), options={**SHORT, "on_unavailable": "open"}) as made:
        await made.settled()
        with locked(tmp_path):
            for number in (2, 3):
                assert await made.prompt(number)
                made.finish(number)
        (text,) = made.texts()
        assert text.startswith('Not checked: budget "daily", because its ledger is out of reach.')


@pytest.mark.parametrize("policy", ["open", "local"])
async def test_a_model_without_a_price_is_refused_also_without_the_ledger(tmp_path: Path, policy: str) -> None:
    budget = daily("1", hold=SMALL, on_unpriced="deny", thresholds=())
    async with house(tmp_path, budget, options={**SHORT, "on_unavailable": policy}) as made:
        await made.settled()
        assert await made.prompt(2)
        with locked(tmp_path):
            made.finish(2)  # all that it held is left
            made.ends.client_says(request(3, "session/set_model", sessionId=SESSION, modelId="a-model-without-a-price"))
            made.ends.agent_says(answer(3))
            assert not await made.prompt(4)
            assert "allows no model without a known price" in made.texts()[-1]
        await made.settled()
        assert made.decisions()["fail_closed"] == 1


async def test_a_budget_may_say_otherwise_than_its_ledger(tmp_path: Path) -> None:
    options = {**SHORT, "on_unavailable": "open"}
    async with house(tmp_path, daily("1", on_unavailable="closed"), options=options) as made:
        await made.settled()
        with locked(tmp_path):
            assert not await made.prompt(2)


async def test_local_without_anything_held_refuses(tmp_path: Path) -> None:
    async with house(tmp_path, daily("1"), options=SHORT) as made:
        await made.settled()
        with locked(tmp_path):
            assert not await made.prompt(2)
            assert "nothing is left of what was set aside" in made.texts()[-1]


async def test_local_goes_on_with_what_ended_turns_left_and_not_beyond(tmp_path: Path, out_of_time: Asked) -> None:
    async with house(tmp_path, daily("1", hold=SMALL, thresholds=())) as made:
        await made.settled()
        assert await made.prompt(2)
        with locked(tmp_path):
            made.finish(2, "0.05")  # 0.05 of 0.1 is left, and still held in the ledger
            assert await out_of_time(made, 3)
            made.finish(3, "0.095")
            assert not await out_of_time(made, 4)  # 0.005 is less than the least that is begun with
        for _ in range(3):  # what comes late is given back
            await made.settled()
        assert made.held() == 0
        assert sorted(cost.text for row in made.rows() for cost in row.entry.costs) == ["0.045", "0.05"]


async def test_local_goes_on_with_what_a_long_turn_left_as_well(tmp_path: Path, out_of_time: Asked) -> None:
    """Its hold would have expired, had the ledger not been told that it goes on."""
    async with house(tmp_path, daily("1", hold=SMALL, thresholds=()), beat=0.01) as made:
        await made.settled()
        assert await made.prompt(2)
        made.clock.now += EXPIRY + SECOND
        async with asyncio.timeout(30):
            while not made.held():  # until the next beat
                await made.settled()
        await made.settled()
        with locked(tmp_path):
            made.finish(2, "0.05")
            assert await out_of_time(made, 3)


async def test_local_lets_two_prompts_not_take_the_same(tmp_path: Path, out_of_time: Asked) -> None:
    async with house(tmp_path, daily("1", hold=SMALL, thresholds=())) as made:
        await made.settled()
        assert await made.prompt(2)
        with locked(tmp_path):
            made.finish(2, "0.05")
            assert await out_of_time(made, 3)
            assert not await out_of_time(made, 4, "another")


async def test_closed_refuses_whatever_ended_turns_left(tmp_path: Path, out_of_time: Asked) -> None:
    budget = daily("1", hold=SMALL, thresholds=(), on_unavailable="closed")
    async with house(tmp_path, budget) as made:
        await made.settled()
        assert await made.prompt(2)
        with locked(tmp_path):
            made.finish(2, "0.05")
            assert not await out_of_time(made, 3)
            assert "is left" not in made.texts()[-1]


async def test_a_budget_that_only_warns_hides_none_that_refuses(tmp_path: Path) -> None:
    warns = replace(daily("1", mode="warn"), name="warns")
    async with house(tmp_path, warns, daily("1"), options=SHORT) as made:
        await made.settled()
        with locked(tmp_path):
            assert not await made.prompt(2)


async def test_a_ledger_that_failed_several_times_is_not_asked_each_time(tmp_path: Path, out_of_time: Asked) -> None:
    async with house(tmp_path, daily("1"), options={"on_unavailable": "open"}) as made:
        await made.settled()
        with locked(tmp_path):
            for number in (2, 3, 4):
                assert await out_of_time(made, number)
            began = asyncio.get_running_loop().time()
            assert await made.prompt(5)
            assert asyncio.get_running_loop().time() - began < PATIENT


async def test_budgets_that_only_warn_never_refuse(tmp_path: Path) -> None:
    options = {**SHORT, "on_unavailable": "closed"}
    async with house(tmp_path, daily("1", mode="warn"), options=options) as made:
        await made.settled()
        with locked(tmp_path):
            assert await made.prompt(2)


async def test_the_first_prompt_waits_longer_while_the_ledger_is_opened(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as let_go:
        async with house(tmp_path, daily("1"), options={**SHORT, "opening": PATIENT}) as made:
            decided = asyncio.ensure_future(made.prompt(2))
            await asyncio.wait([decided], timeout=2 * SHORT["timeout"])
            assert not decided.done()
            let_go()
            assert await decided
            await made.settled()
            with locked(tmp_path):
                assert not await made.prompt(3)  # one that was open has no more than the timeout


async def test_the_first_prompt_does_not_wait_for_ever(tmp_path: Path) -> None:
    with held_by_another(tmp_path):
        async with house(tmp_path, daily("1"), options={**SHORT, "opening": 0.1}) as made:
            assert not await made.prompt(2)


async def test_no_prompt_waits_any_longer_for_a_ledger_that_could_not_be_opened(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()
    async with house(tmp_path, daily("1"), options={**SHORT, "opening": PATIENT}) as made:
        began = asyncio.get_running_loop().time()
        assert not await made.prompt(2)
        assert asyncio.get_running_loop().time() - began < PATIENT


async def test_closed_refuses_although_the_proxy_was_stopped_while_it_waited(
    tmp_path: Path, out_of_time: Asked
) -> None:
    """Whoever stops a process for a while has all of its timeouts come at once."""
    async with house(tmp_path, daily("1"), options={**SHORT, "on_unavailable": "closed"}) as made:
        await made.settled()
        with locked(tmp_path):
            assert not await out_of_time(made, 2)
            assert made.ends.agent.data == b""
            assert "out of reach" in made.texts()[0]
        await made.settled()
        assert made.held() == 0
