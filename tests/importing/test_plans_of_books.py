"""Windows of a plan that Codex writes down: found by an import, and by a relay after a turn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.config import load
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import PlanReported, TurnMetered
from acp_proxy.core.plans import PlanWindow
from acp_proxy.core.windows import HOUR
from acp_proxy.importing import command, plans
from acp_proxy.interceptors.plans_of_books import PlansOfBooks
from acp_proxy.ledger import open_ledger
from harness.rows import ALICE, NOON, row
from tests.books.rollouts import told

SESSION = "01a21f6a-ade6-7601-82db-5d4b1497b5b5"
CODEX = "@agentclientprotocol/codex-acp"


def home_with_a_book(directory: Path, *lines: bytes) -> dict[str, str]:
    book = directory / f".codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-{SESSION}.jsonl"
    book.parent.mkdir(parents=True)
    book.write_bytes(b"".join(lines))
    return {"HOME": str(directory), "USER": "alice"}


def imported(directory: Path, environ: dict[str, str], relayed: str | None = None) -> list[tuple[str, str]]:
    config = load({"ledger": f"sqlite:///{directory}/ledger.db"}, environ)
    with closing(open_ledger(config.ledger.url, journals=())) as ledger:
        if relayed is not None:
            ledger.note_plan(replace(ALICE, agent=relayed), [PlanWindow("five_hour", 1, None, None, None, NOON - HOUR)])
    command.main(command.Asked(), config, environ, NOON + HOUR)
    with closing(open_ledger(config.ledger.url, journals=())) as ledger:
        return [(state.agent, state.told.window) for state in ledger.plans("default")]


def test_an_import_keeps_what_the_latest_book_says(tmp_path: Path) -> None:
    environ = home_with_a_book(tmp_path, told(), told()[:40])
    assert imported(tmp_path, environ) == [("codex", "five_hour"), ("codex", "seven_day")]


def test_it_is_kept_under_the_name_that_a_relay_knows(tmp_path: Path) -> None:
    environ = home_with_a_book(tmp_path, told())
    assert imported(tmp_path, environ, CODEX) == [(CODEX, "five_hour"), (CODEX, "seven_day")]


@pytest.mark.parametrize("relayed", [CODEX, "codex-acp"])
def test_it_is_kept_under_the_name_of_a_relayed_agent_that_never_told_of_a_plan(tmp_path: Path, relayed: str) -> None:
    environ = home_with_a_book(tmp_path, told())
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        ledger.append([row(origin=replace(ALICE, agent=relayed), at=NOON - HOUR)])
    assert imported(tmp_path, environ) == [(relayed, "five_hour"), (relayed, "seven_day")]


def test_an_import_before_any_relay_leaves_later_ones_the_name_of_the_relay(tmp_path: Path) -> None:
    environ = home_with_a_book(tmp_path, told())
    assert {agent for agent, _ in imported(tmp_path, environ)} == {"codex"}
    book = next(tmp_path.glob(".codex/sessions/*/*/*/*.jsonl"))
    book.write_bytes(book.read_bytes() + told())
    assert ("codex-acp", "seven_day") in imported(tmp_path, environ, "codex-acp")


def test_books_of_an_api_key_say_nothing(tmp_path: Path) -> None:
    assert imported(tmp_path, home_with_a_book(tmp_path, told(primary=None, secondary=None))) == []


async def test_a_relay_tells_it_after_a_turn_and_only_what_is_new(tmp_path: Path) -> None:
    environ = home_with_a_book(tmp_path, told())
    reported: list[PlanReported] = []
    loop, answered = asyncio.get_running_loop(), asyncio.Event()

    def read(agent: str, session: str) -> Sequence[PlanWindow]:
        found = plans.windows_of_session(agent, session, environ)
        loop.call_soon_threadsafe(lambda: loop.call_soon(answered.set))
        return found

    def at_once(_: float, what: object) -> None:
        what()  # type: ignore[operator]

    looks = PlansOfBooks(
        read, lambda agent: agent == CODEX, lambda _: replace(ALICE, agent=CODEX), reported.append,
        later=at_once, soon=loop.call_soon_threadsafe, warn=print,
    )  # fmt: skip
    entry = row(session=SESSION).entry
    for _ in range(2):
        answered.clear()
        looks.on_event(TurnMetered(NOON, entry, SessionState(), False, False))
        await answered.wait()
        await asyncio.get_running_loop().run_in_executor(None, os.getpid)
    assert [[window.window for window in each.windows] for each in reported] == [["five_hour", "seven_day"]]
