"""Recordings, changed into what another recording of the same agent could hold: the rows must stay what they were."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Counters, Side
from acp_proxy.core.money import Money
from harness.recordings import MISPLACED, RECORDINGS, metered, possible, told, truth_of
from tests.cases import each_of
from tests.variations import (
    Line,
    before,
    chance,
    each_message,
    extended,
    figures,
    known_before,
    lines_of,
    loaded_again,
    mixed,
    named_apart,
    respelt,
    rows_of,
    scaled,
    with_id,
)

pytestmark = pytest.mark.xdist_group("varied")  # each recording is metered once for all tests of it

# An unknown agent that repeats the usage of the turn before when a turn fails says nothing by which that could be told.
# A total that is the sum of all counters is taken at its word, though theirs counts one of them twice.
TWICE = {"opencode-1.1.53/basic.jsonl", "pydantic-acp-1.10.0/basic.jsonl"}
UNKNOWN_AGENTS = [
    path for path in RECORDINGS if str(path) not in MISPLACED and str(path) not in TWICE and path.stem != "errors"
]
NAMES: list[dict[str, str] | None] = [  # None: `initialize` tells nothing of the agent
    {"name": "some-agent", "version": "1"},
    {"name": "some-agent", "version": "1", "title": "Some Agent"},
    None,
]
ALL_MEMBERS: dict[str, Any] = dict.fromkeys(("id", "method", "params", "result", "error"))
LOADED = [path for path in RECORDINGS if before(path)]


def expected(recording: Path) -> list[Any]:
    return figures(metered(recording).rows)


@each_of(RECORDINGS)
def test_ids_that_are_strings_change_no_figure(recording: Path) -> None:
    changed = each_message(lines_of(recording), lambda message: message | with_id(message, "id-"))
    assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_json_in_another_spelling_changes_no_figure(recording: Path) -> None:
    rows = rows_of(lines_of(recording), known_before(recording), respelt(chance(recording)))
    assert figures(rows) == expected(recording)


@each_of(RECORDINGS)
def test_members_that_are_written_though_they_are_null_change_no_figure(recording: Path) -> None:
    changed = each_message(lines_of(recording), lambda message: ALL_MEMBERS | message)
    assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_members_and_meta_that_nobody_knows_say_nothing(recording: Path) -> None:
    changed = each_message(lines_of(recording), extended)
    assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_clocks_may_stand_still_or_be_set_back_all_the_time(recording: Path) -> None:
    for of_clock in (0.0, -60.0):
        changed = [(side, of_clock * at, message) for side, at, message in lines_of(recording)]
        assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_what_an_agent_says_twice_counts_once(recording: Path) -> None:
    changed = itertools.chain.from_iterable([line] * (2 if _is_usage(line[2]) else 1) for line in lines_of(recording))
    assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_history_is_booked_once_however_often_it_is_told(recording: Path) -> None:
    earlier = before(recording)
    changed = loaded_again(lines_of(recording), lines_of(earlier) if earlier else ())
    assert figures(rows_of(changed, known_before(recording))) == expected(recording)


@each_of(RECORDINGS)
def test_agents_that_are_a_thousand_times_as_dear_are_booked_so(recording: Path) -> None:
    known = {session: _times(state, 1000) for session, state in known_before(recording).items()}
    changed = each_message(lines_of(recording), lambda message: scaled(message, 1000))
    rows = [row for row in rows_of(changed, known) if row.usage_source != "estimated"]
    assert [_sizes(row, 1) for row in rows] == [
        _sizes(row, 1000) for row in metered(recording).rows if row.usage_source != "estimated"
    ]


@each_of(RECORDINGS)
def test_an_agent_that_dies_anywhere_is_booked_no_more_than_one_that_lives(recording: Path) -> None:
    lines, known = lines_of(recording), known_before(recording)
    whole = _sums(metered(recording).rows)
    for end in chance(recording).sample(range(1, len(lines)), min(6, len(lines) - 1)):
        for session, (tokens, nano) in _sums(rows_of(lines[:end], known)).items():
            assert tokens <= whole[session][0], f"line {end}"
            assert nano <= whole[session][1], f"line {end}"


@each_of(LOADED)
def test_a_ledger_that_answers_late_changes_no_sum(recording: Path) -> None:
    known, lines = known_before(recording), lines_of(recording)
    for slow in range(1, len(lines) // 3, 5):
        assert _sums(rows_of(lines, known, slow=slow)) == _sums(metered(recording).rows), f"{slow} lines late"


@each_of(RECORDINGS)
def test_sessions_that_alternate_in_one_process_do_not_touch_each_other(recording: Path) -> None:
    of_agent = [
        path for path in RECORDINGS if path.parent == recording.parent and _version(path) == _version(recording)
    ]
    other = of_agent[(of_agent.index(recording) + 1) % len(of_agent)]
    paths = {"A": recording, "B": other}
    known = {name + suffix: state for suffix, path in paths.items() for name, state in known_before(path).items()}
    one, two = (named_apart(lines_of(path), suffix) for suffix, path in paths.items())
    rows = rows_of(mixed(one, two, chance(recording)), known)
    for suffix, path in paths.items():
        got = [row for row in figures(rows, suffix) if row[0] != "no-such-session"]
        assert got == [row for row in expected(path) if row[0] != "no-such-session"]


@each_of(UNKNOWN_AGENTS)
def test_of_an_agent_that_nobody_knows_nothing_is_exact_or_at_least_so_much_that_is_not(recording: Path) -> None:
    agent, truth = recording.parts[0], sorted(truth_of(recording), key=lambda turn: str(turn["session"]))
    for name in NAMES:
        rows = [row for row in rows_of(_under_another_name(lines_of(recording), name), {}) if row.kind == "turn"]
        for row, turn in zip(sorted(rows, key=lambda row: row.session), truth, strict=True):
            happened = possible(turn["calls"])
            if row.usage_source == "agent" and row.usage.total:
                assert told(row.usage, agent) in [told(usage, agent) for usage in happened], turn["text"]
            if row.usage_source == "partial":
                assert row.usage.prompt <= happened[-1].prompt, turn["text"]
                assert row.usage.completion <= happened[-1].completion, turn["text"]


@each_of(UNKNOWN_AGENTS)
def test_no_order_of_turns_makes_an_agent_that_nobody_knows_use_more_than_it_did(recording: Path) -> None:
    lines, earlier = list(_under_another_name(lines_of(recording), None)), before(recording)
    for changed in (
        lines,
        _first_turns_cancelled(lines),
        loaded_again(lines, lines_of(earlier) if earlier else ()),
        mixed(lines, named_apart(lines, "-other"), chance(recording)),
    ):
        booked = _sums(row for row in rows_of(changed, {}) if row.kind == "turn")
        for session in {turn["session"] for turn in truth_of(recording)}:
            happened = [possible(turn["calls"])[-1].total for turn in truth_of(recording) if turn["session"] == session]
            for each in (session, f"{session}-other"):
                assert booked[each][0] <= sum(happened), each


def _first_turns_cancelled(lines: Iterable[Line]) -> Iterator[Line]:
    """Each session's first prompt is cancelled, and nothing is told of what it used."""
    seen, firsts = set[str](), set[Any]()
    for side, at, message in lines:
        if message.get("method") == "session/prompt" and message["params"]["sessionId"] not in seen:
            seen.add(message["params"]["sessionId"])
            firsts.add(message["id"])
        if side is Side.AGENT and message.get("id") in firsts and "stopReason" in (message.get("result") or {}):
            message = message | {"result": {"stopReason": "cancelled"}}
        yield side, at, message


def _is_usage(message: dict[str, Any]) -> bool:
    return message.get("method") == "session/update" and message["params"]["update"]["sessionUpdate"] == "usage_update"


def _sums(rows: Iterable[Entry]) -> dict[str, tuple[int, int]]:
    """Tokens that the agent told and nano-units of money that are not guessed, by session."""
    sums = defaultdict[str, tuple[int, int]](lambda: (0, 0))
    for row in rows:
        if row.usage_source != "estimated":
            tokens, nano = sums[row.session]
            sums[row.session] = tokens + row.usage.total, nano + sum(cost.nano for cost in row.costs)
    return sums


def _sizes(row: Entry, by: int) -> tuple[Any, ...]:
    """The figures of a row, so many times as large."""
    lines = [
        (line.model, *(count * by for count in astuple(line.usage)), line.cost and line.cost.nano * by)
        for line in row.lines
    ]
    return (row.session, row.kind, row.usage_source, row.cost_source, row.detail, *lines)


def _times(state: SessionState, by: int) -> SessionState:
    def money(cost: Money) -> Money:
        return Money(cost.nano * by, cost.currency)

    told = state.counters
    return replace(
        state,
        costs=tuple(map(money, state.costs)),
        agent_cost=state.agent_cost and money(state.agent_cost),
        counters=told and Counters(*(count if count is None else count * by for count in astuple(told))),
    )


def _version(recording: Path) -> str:
    """Of the protocol: one connection has one."""
    return recording.stem[:2] if recording.stem.startswith("v2") else "v1"


def _under_another_name(lines: Iterable[Line], name: dict[str, str] | None) -> Iterator[Line]:
    for side, at, message in lines:
        result = message.get("result")
        if isinstance(result, dict):
            said = {member: result[member] for member in ("agentInfo", "info") if isinstance(result.get(member), dict)}
            names = {member: None if name is None else who | name for member, who in said.items()}
            message = message | {"result": result | names}
        yield side, at, message
