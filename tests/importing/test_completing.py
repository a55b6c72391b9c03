"""Relayed turns that were told in part become what their agents recorded: each once, and where it is certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row
from harness.rows import MINUTE, amended, row
from tests.books.readers import READERS
from tests.books.recorded import recordings
from tests.importing.homes import Home
from tests.importing.turns import by_session, calls_in, relayed, turns, used

SECOND = 10**9
SHELF = {"claude": "claude-code", "gemini": "gemini-cli", "qwen": "qwen-code"}
RELAYED_AS = {"claude": "@agentclientprotocol/claude-agent-acp", "codex": "@agentclientprotocol/codex-acp"}
# Copilot's turns are exact. Of the forks of Codex one went on while the other was used.
RECORDINGS = [
    (agent, recording.name)
    for agent in READERS
    for recording in recordings(agent)
    if agent != "copilot" and not (agent == "codex" and recording.name.startswith("forked"))
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home", tmp_path / "ledger.db")


@pytest.mark.parametrize("case", RECORDINGS, ids=" ".join)
def test_a_turn_becomes_the_sum_of_its_calls_and_is_counted_once(home: Home, case: tuple[str, str]) -> None:
    agent, recording = case
    home.put(agent, recording)
    everything = calls_in(home)
    sessions = by_session(everything)
    rows = [relayed(calls, name=RELAYED_AS.get(agent, "")) for calls in sessions.values()]
    home.append(*rows)
    (tally,) = home.imports(SHELF.get(agent, agent)).values()
    after = turns(home)
    assert tally.completed == sum(booked.entry != now.entry for booked, now in zip(rows, after, strict=True))
    assert {now.entry.usage_source for now in after} == {"agent"}
    assert used([*after, *home.rows()]) == used(everything)
    again = home.imports(SHELF.get(agent, agent))
    assert [each.completed for each in again.values()] == [0]
    assert turns(home) == after


@pytest.fixture
def tools(home: Home) -> list[Row]:
    """A session of Gemini CLI, whose relayed turns lack thinking, and what its calls were."""
    home.put("gemini", "tools")
    (calls, *_) = sorted(by_session(calls_in(home)).values(), key=len, reverse=True)
    return calls


def without_thinking(turn: Row, calls: list[Row]) -> Row:
    """As Gemini CLI tells it: cached input is not told apart."""
    usage = used(calls)
    told = Usage(input=usage.prompt, output=usage.output)
    return amended(turn, lines=(UsageLine(turn.entry.model, told),))


def test_each_of_two_turns_gets_its_own_calls(home: Home, tools: list[Row]) -> None:
    parts = tools[:2], tools[2:]
    rows = [without_thinking(relayed(part), part) for part in parts]
    home.append(*rows)
    assert home.imports()["gemini-cli"].completed == 2
    assert [each.entry.usage for each in turns(home)] == [used(part) for part in parts]


def test_a_turn_says_where_its_figures_are_from_and_is_priced_like_an_imported_call(
    home: Home, tools: list[Row]
) -> None:
    home.append(without_thinking(relayed(tools), tools))
    home.imports()
    (now,) = turns(home)
    assert now.entry.detail.startswith(f"from the agent's own files ({len(tools)} calls)")
    assert (now.entry.usage_source, now.entry.cost_source) == ("agent", "computed")
    assert now.entry.costs == (Money(sum(call.entry.costs[0].nano for call in tools), "USD"),)


def test_what_the_agent_itself_told_of_the_cost_stays(home: Home, tools: list[Row]) -> None:
    told = relayed(tools, cost_source="agent", lines=(UsageLine("gemini", Usage(input=1), Money.of("7", "USD")),))
    home.append(told)
    home.imports()
    (now,) = turns(home)
    assert now.entry.usage == used(tools)
    assert (now.entry.cost_source, now.entry.costs) == ("agent", (Money.of("7", "USD"),))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"usage_source": "agent"}, id="it was told in full"),
        pytest.param({"lines": (UsageLine("m", Usage(input=10**6)),)}, id="more was told than the book has"),
        pytest.param({"kind": "autonomous"}, id="it is no turn"),
        pytest.param({"session": "another"}, id="it is of another session"),
        pytest.param({"stop_reason": "cancelled"}, id="its last call may be in no book"),
    ],
)
def test_a_turn_stays_as_it_is_where(home: Home, tools: list[Row], changed: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"lines": (UsageLine("m", used(tools)),)}
    booked = relayed(tools, **whole | changed)
    home.append(booked)
    assert home.imports()["gemini-cli"].completed == 0
    assert turns(home) == [booked]


def test_prompts_that_ran_at_the_same_time_stay_as_they_are(home: Home, tools: list[Row]) -> None:
    first = relayed(tools)
    second = amended(first, id=row().entry.id, started_at=first.entry.started_at + 1)
    home.append(first, second)
    assert home.imports()["gemini-cli"].completed == 0


def test_a_turn_of_which_a_call_is_imported_already_stays_as_it_is(home: Home, tools: list[Row]) -> None:
    """As on a machine that shares the home, and knows nothing of the relay."""
    home.append(tools[0])
    home.append(relayed(tools))
    assert home.imports()["gemini-cli"].completed == 0


def test_a_cancelled_turn_is_known_better_but_only_in_part(home: Home, tools: list[Row]) -> None:
    home.append(relayed(tools, stop_reason="cancelled"))
    assert home.imports()["gemini-cli"].completed == 1
    (now,) = turns(home)
    assert (now.entry.usage, now.entry.usage_source) == (used(tools), "partial")


def test_a_cancelled_turn_of_claude_becomes_exact(home: Home) -> None:
    """Its books have calls that were cut short."""
    home.put("claude", "cancelled")
    calls = calls_in(home)
    home.append(relayed(calls, name=RELAYED_AS["claude"], stop_reason="cancelled", cost_source="agent"))
    home.imports()
    assert [(now.entry.usage, now.entry.usage_source) for now in turns(home)] == [(used(calls), "agent")]


def test_an_estimate_gives_way_to_what_was_used_though_it_is_less(home: Home, tools: list[Row]) -> None:
    high = relayed(tools, usage_source="estimated", lines=(UsageLine(None, Usage(input=10**6)),))
    home.append(high)
    home.imports()
    assert [now.entry.usage for now in turns(home)] == [used(tools)]


def test_a_turn_whose_book_may_not_be_written_to_its_end_waits(home: Home, tools: list[Row]) -> None:
    turn = relayed(tools)
    home.append(turn)
    assert home.imports(now=turn.entry.ended_at + 10 * SECOND)["gemini-cli"].completed == 0
    assert home.imports(now=turn.entry.ended_at + 2 * MINUTE)["gemini-cli"].completed == 1


UNTOLD = (UsageLine(None, Usage(input=1)),)


def test_a_turn_gets_no_calls_of_one_that_runs_while_it_is_completed(home: Home, tools: list[Row]) -> None:
    """Whose row is not there yet. Once it is, each has its own."""
    first, second = (relayed(part, usage_source="estimated", lines=UNTOLD) for part in (tools[:2], tools[2:]))
    home.append(first)
    assert home.imports()["gemini-cli"].completed == 0
    assert [now.entry for now in turns(home)] == [first.entry]
    home.append(second)
    for remembered in (home.path / ".local/state/acp-proxy/books").iterdir():
        remembered.unlink()
    assert home.imports()["gemini-cli"].completed == 2
    assert [now.entry.usage for now in turns(home)] == [used(tools[:2]), used(tools[2:])]


def test_a_turn_gets_no_calls_of_one_that_ended_a_moment_ago(home: Home, tools: list[Row]) -> None:
    first, second = (relayed(part, usage_source="estimated", lines=UNTOLD) for part in (tools[:2], tools[2:]))
    home.append(first, second)
    assert home.imports(now=second.entry.ended_at + MINUTE - 1)["gemini-cli"].completed == 1
    assert [now.entry.usage for now in turns(home)] == [used(tools[:2]), second.entry.usage]


def test_a_dry_run_says_how_many_turns_would_be_completed(home: Home, tools: list[Row]) -> None:
    turn = relayed(tools)
    home.append(turn)
    assert home.imports(dry_run=True)["gemini-cli"].completed == 1
    assert turns(home) == [turn]


def test_nothing_is_completed_where_the_configuration_says_so(home: Home, tools: list[Row]) -> None:
    file = home.path / ".config/acp-proxy/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[books]\ncomplete = false\n")
    home.append(relayed(tools))
    assert home.imports()["gemini-cli"].completed == 0


def test_nothing_is_completed_from_a_book_with_what_is_not_understood(home: Home, tools: list[Row]) -> None:
    """It may be one of the turn's calls."""
    for path in READERS["gemini"].files(home.path, home.environ):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes() + b'{"type": "gemini", "tokens": 7}\n\n')
    home.append(relayed(tools))
    tally = home.imports()["gemini-cli"]
    assert (tally.completed, tally.not_understood.total() > 0) == (0, True)
