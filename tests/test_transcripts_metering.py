"""Recordings of released agents, metered: against the model calls that really happened, and against the agents' cost.

`python -m tests.test_transcripts_metering` writes the rows of all recordings anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.catalog import Catalog
from acp_proxy.config.values import Price
from acp_proxy.core.entry import Entry
from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage
from harness.recordings import (
    CONTINUES,
    IN_PLACE,
    RECORDINGS,
    metered,
    metered_by,
    possible,
    told,
    truth_of,
    used,
)
from tests.cases import each_of

pytestmark = pytest.mark.xdist_group("metered")  # each recording once for all tests of it

ROWS = Path(__file__).parent / "data" / "metered_rows.txt"


def side_by_side(recording: Path) -> list[tuple[Entry, dict[str, Any]]]:
    """Each turn's row, and what really happened; turns of one session end in the order of their prompts."""
    rows = sorted((row for row in metered(recording).rows if row.kind == "turn"), key=lambda row: row.session)
    return list(zip(rows, sorted(truth_of(recording), key=lambda turn: str(turn["session"])), strict=True))


@each_of(RECORDINGS)
def test_each_prompt_makes_one_row_of_kind_turn(recording: Path) -> None:
    rows = [row for row in metered(recording).rows if row.kind == "turn"]
    assert len({row.id for row in rows}) == len(rows)
    assert sorted(row.session for row in rows) == sorted(turn["session"] for turn in truth_of(recording))


@each_of(IN_PLACE)
def test_each_turn_used_what_its_model_calls_used_or_at_least_that_is_said(recording: Path) -> None:
    for row, turn in side_by_side(recording):
        agent, happened = recording.parts[0], possible(turn["calls"])
        match row.usage_source:
            case "agent" if row.usage.total:
                assert told(row.usage, agent) in [told(usage, agent) for usage in happened], turn["text"]
            case "partial":
                assert row.usage.prompt <= happened[-1].prompt, turn["text"]
                assert row.usage.completion <= happened[-1].completion, turn["text"]
            case "none":
                assert row.usage == NOTHING


@each_of(IN_PLACE)
def test_no_turn_that_was_paid_is_silently_nothing(recording: Path) -> None:
    for row, turn in side_by_side(recording):
        if used(turn["calls"], "main").total and not row.usage.total:
            assert row.usage_source in ("none", "partial"), turn["text"]
            assert row.detail, turn["text"]


@each_of([path for path in IN_PLACE if path.stem != "concurrent"])
def test_an_estimate_that_knows_the_context_is_no_more_than_what_was_used_and_no_less_than_a_call(
    recording: Path,
) -> None:
    for row, turn in side_by_side(recording):
        happened = possible(turn["calls"])[-1].total
        if row.usage_source == "estimated" and "four characters" not in row.detail and happened:
            assert 0.9 * happened / len(turn["calls"]) <= row.usage.total <= 1.1 * happened, turn["text"]


@pytest.mark.parametrize("scenario", ["basic", "tools", "reload", "sessions"])
def test_where_each_call_tells_its_context_an_estimate_has_the_right_total(scenario: str) -> None:
    for row, turn in side_by_side(Path("zed-codex-acp-0.16.0", f"{scenario}.jsonl")):
        assert row.usage_source == "estimated"
        assert row.usage.total == used(turn["calls"], "main").total


@each_of(RECORDINGS)
def test_the_rows_of_a_session_cost_what_its_agent_says_to_the_nano(recording: Path) -> None:
    result = metered(recording)
    inherits = recording.parts[0].startswith(("opencode", "oh-my-pi"))
    before = CONTINUES.get(recording.stem)
    earlier = metered(recording.with_name(f"{before}.jsonl")).states if before else {}
    restarts = (
        recording.parts[0].startswith(("claude-agent-acp-0.49", "claude-agent-acp-0.91", "zed-claude"))
        or recording.stem == "restarted"
    )
    stands: dict[str, int] = {}
    costs: dict[str, int] = {}
    for report in result.reports:
        if report.cost is None:
            continue
        session, value = report.session, report.cost.nano
        if session not in stands:
            state, parent = earlier.get(session), result.parents.get(session)
            carried = state.agent_cost.nano if state and state.agent_cost and not restarts else 0
            stands[session] = stands.get(parent, 0) if parent and inherits else carried
        goes_on = value >= stands[session] and not recording.parts[0].startswith("agentpool")  # that of each turn
        costs[session] = costs.get(session, 0) + value - (stands[session] if goes_on else 0)
        stands[session] = value
    assert {session: result.booked(session) for session in costs} == costs


@pytest.mark.parametrize(
    "recording",
    [
        Path("claude-agent-acp-0.100.0/reload.jsonl"),
        Path("goose-anthropic-1.52.0/reload.jsonl"),
        Path("kilo-7.7.7/reload.jsonl"),
        Path("mistral-vibe-3.0.2/load.jsonl"),
        Path("oh-my-pi-18.2.0/reload.jsonl"),
        Path("opencode-1.18.33/load.jsonl"),
        Path("opencode-1.18.33/reload.jsonl"),
    ],
    ids=str,
)
def test_the_rows_of_two_processes_cost_what_an_agent_says_that_goes_on_counting(recording: Path) -> None:
    result = metered(recording)
    last = {report.session: report.cost for report in result.reports if report.cost is not None}
    continued = result.states.keys() - result.parents.keys()  # a fork may begin with its parent's cost
    assert continued
    assert {session: result.states[session].costs for session in continued} == {
        session: (last[session],) for session in continued
    }


@each_of([Path("codex-acp-2.6.0/switch.jsonl"), Path("qwen-code-0.24.4/switch.jsonl")])
def test_a_turn_in_which_another_model_was_chosen_is_one_of_the_models_that_its_calls_had(recording: Path) -> None:
    for row, turn in side_by_side(recording):
        main = [call for call in turn["calls"] if call["kind"] == "main"]
        models = {
            call["model"]: used([each for each in main if each["model"] == call["model"]], "main") for call in main
        }
        assert {(line.model or "").partition("(")[0]: line.usage for line in row.lines} == models, turn["text"]


def test_what_claude_spent_unseen_before_a_load_is_told_apart_by_the_catalogs_prices() -> None:
    result = metered_by(Catalog(), Path("claude-agent-acp-0.100.0/reload.jsonl"))
    unseen, turn, *_ = result.rows
    assert (unseen.kind, unseen.costs) == ("autonomous", (Money(15_624_000, "USD"),))
    assert (turn.kind, turn.costs, turn.cost_source) == ("turn", (Money(10_927_000, "USD"),), "agent")


def test_the_catalog_agrees_with_what_claude_says_its_calls_cost() -> None:
    for row in metered_by(Catalog(), Path("claude-agent-acp-0.100.0/basic.jsonl")).rows[:1]:
        (line,) = row.lines
        assert Catalog().price(line.model, line.usage, row.ended_at).cost == line.cost


def test_a_users_price_that_lacks_that_of_output_leaves_the_cost_that_claude_says() -> None:
    basic = Path("claude-agent-acp-0.100.0/basic.jsonl")
    priced = metered_by(Catalog({"claude-opus-5-5": Price("4")}), basic).rows
    assert [row.costs for row in priced] == [row.costs for row in metered_by(Catalog(), basic).rows] != []
    assert {row.cost_source for row in priced} <= {"agent", "parent"}


def lines_of(recording: Path) -> list[str]:
    return [
        " ".join(
            (
                row.kind,
                row.stop_reason or "-",
                f"{row.usage_source}/{row.cost_source}",
                *(f"{line.model} {tokens(line.usage)} {line.cost.text if line.cost else '-'}" for line in row.lines),
                f"context {row.context_used or '-'}/{row.context_size or '-'}",
            )
        )
        for row in metered(recording).rows
    ]


def tokens(usage: Usage) -> str:
    return f"{usage.input}/{usage.cached_read}/{usage.cached_write}/{usage.output}/{usage.thought}"


@cache
def written() -> dict[str, list[str]]:
    sections = ROWS.read_text().split("\n\n")
    return {name: rows for name, *rows in (section.splitlines() for section in sections if section.strip())}


@each_of(RECORDINGS)
def test_a_recording_makes_the_rows_that_were_reviewed(recording: Path) -> None:
    assert lines_of(recording) == written()[str(recording)]


if __name__ == "__main__":
    ROWS.write_text("\n\n".join("\n".join((str(path), *lines_of(path))) for path in RECORDINGS) + "\n")
