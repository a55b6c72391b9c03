"""Recorded sessions of real agents through the installed command: the wire is untouched, and the ledger is right."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from acp_proxy.ledger import Query, open_reader
from acp_proxy.ledger.places import journal_directories
from acp_proxy.report import formats, report
from acp_proxy.text.times import UTC_ZONE
from harness.recordings import CONTINUES, TRANSCRIPTS, truth_of
from tests.replay import Replay, play
from tests.replayed_end import recorded

SCHEMAS = Path(__file__).parent / "schema"
COMMAND = [str(Path(sys.executable).parent / "acp-proxy")]
MISPLACED = {  # the agent itself reports calls with another turn than that which caused them
    "opencode-1.18.33-concurrent": "the first of two prompts gets the usage of the second",
    "zed-claude-agent-acp-0.23.1-cancel": "usage comes a turn late",
    "zed-claude-agent-acp-0.23.1-errors": "usage comes a turn late",
    "zed-claude-agent-acp-0.23.1-concurrent": "the second of two prompts gets the sum of both",
}


def chains() -> Iterator[list[Path]]:
    """Recordings that share a ledger, in order."""
    for path in sorted(TRANSCRIPTS.glob("*/*.jsonl")):
        first = CONTINUES.get(path.stem)
        before = [path.with_stem(first)] if first else []
        if not any(CONTINUES.get(other.stem) == path.stem for other in path.parent.glob("*.jsonl")):
            yield [*before, path]


@dataclass(frozen=True, slots=True)
class Played:
    recordings: list[Path]
    replays: list[Replay]
    rows: list[dict[str, Any]]


def name(chain: list[Path]) -> str:
    return f"{chain[0].parent.name}-{'+'.join(path.stem for path in chain)}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """The installed command, with a ledger and an empty configuration in a directory of its own."""

    home: Path

    def words(self, command: str, *more: str) -> list[str]:
        config = self.home / "config.toml"
        config.touch()
        return [*COMMAND, command, "--config", str(config), "--ledger", f"sqlite:///{self.home / 'ledger.db'}", *more]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"XDG_STATE_HOME": str(self.home)}

    def play(self, recording: Path, seed: int | None = None) -> Replay:
        return play(self.words("run", "--"), recording, seed=seed, environment=self.environment)

    def turns(self) -> list[dict[str, Any]]:
        """What `report --by turn --json` prints, without a process for each recording."""
        url, journals = f"sqlite:///{self.home / 'ledger.db'}", journal_directories(self.environment)
        with closing(open_reader(url, journals=journals)) as ledger:
            printed = "".join(formats.as_json(report(ledger, "turn", Query(), UTC_ZONE)))
        return sorted(json.loads(printed)["rows"], key=lambda row: (row["started_at"], row["ended_at"], row["key"]))


def as_group(chain: list[Path]) -> Any:
    """One worker plays a chain once for all tests of it."""
    return pytest.param(chain, id=name(chain), marks=pytest.mark.xdist_group(name(chain)))


@pytest.fixture(scope="module", params=map(as_group, chains()))
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    proxy = Proxy(tmp_path_factory.mktemp("home"))
    replays = [proxy.play(recording) for recording in request.param]
    return Played(request.param, replays, proxy.turns())


def test_nothing_is_lost_changed_or_slipped_to_the_agent(played: Played) -> None:
    for replay in played.replays:
        assert replay.client.missing == replay.agent.missing == replay.agent.added == []
        assert replay.status == 0


def test_only_valid_usage_updates_of_our_own_are_added(played: Played) -> None:
    for recording, replay in zip(played.recordings, played.replays, strict=True):
        for line in replay.client.added:
            assert_is_usage_update_of_ours(json.loads(line), protocol_version(recording))


def assert_is_usage_update_of_ours(message: dict[str, Any], version: int) -> None:
    update = message["params"]["update"]
    assert (message["method"], update["sessionUpdate"]) == ("session/update", "usage_update")
    assert set(update["_meta"]["acp-proxy"]) >= {"source", "estimated"}
    validator(version).validate(message["params"])


@cache
def validator(version: int) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"acp-v{version}.schema.unstable.json").read_text())
    definition = {1: "SessionNotification", 2: "UpdateSessionNotification"}[version]
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


def protocol_version(recording: Path) -> int:
    lines = [line.raw for line in recorded(recording) if line.sender == "a2c" and b'"protocolVersion"' in line.raw]
    return int(json.loads(lines[0])["result"]["protocolVersion"])


def test_the_report_has_one_row_for_each_turn(played: Played) -> None:
    assert [row["session"] for row in rows_of_turns(played)] == [turn["session"] for turn in true_turns(played)]
    assert len({row["key"] for row in played.rows}) == len(played.rows)


def test_tokens_are_what_the_model_really_served(played: Played) -> None:
    if name(played.recordings) in MISPLACED:
        pytest.skip(MISPLACED[name(played.recordings)])
    for row, turn in zip(rows_of_turns(played), true_turns(played), strict=True):
        used = prompt_and_completion([row["tokens"]])
        match row["usage_source"]:
            case "agent" if sum(used):
                assert used in served(turn)
            case "partial":
                assert sum(used) <= sum(served(turn)[-1])
            case "none":
                assert used == (0, 0)
            case source:
                assert source == "estimated" or not sum(used)


def rows_of_turns(played: Played) -> list[dict[str, Any]]:
    """By session, then in order: prompts to different sessions may start in the same millisecond."""
    return sorted((row for row in played.rows if row["kind"] == "turn"), key=lambda row: (row["session"], row["key"]))


def true_turns(played: Played) -> list[dict[str, Any]]:
    """In the order of `rows_of_turns`. A prompt that names no session is no turn."""
    turns = [turn for recording in played.recordings for turn in truth_of(recording.relative_to(TRANSCRIPTS))]
    return sorted(turns, key=lambda turn: str(turn["session"]))


def served(turn: dict[str, Any]) -> list[tuple[int, int]]:
    """By the calls that came to their end, and by all that were paid. An agent's own commands have only side calls."""
    calls = [call for call in turn["calls"] if call["kind"] == "main"] or turn["calls"]
    ended = [call["tokens"] for call in calls if call["delivered"]]
    return [prompt_and_completion(ended), prompt_and_completion([call["tokens"] for call in calls])]


def prompt_and_completion(tokens: list[dict[str, int]]) -> tuple[int, int]:
    """What every agent tells apart; how finely each does is the business of the meter's own tests."""
    prompt = sum(each["input"] + each["cached_read"] + each["cached_write"] for each in tokens)
    return prompt, sum(each["output"] + each["thought"] for each in tokens)


def largest_of_each_agent() -> list[Path]:
    return [max(agent.glob("*.jsonl"), key=lambda path: path.stat().st_size) for agent in sorted(TRANSCRIPTS.iterdir())]


@pytest.mark.parametrize("recording", largest_of_each_agent(), ids=lambda path: name([path]))
def test_lines_that_arrive_in_pieces_pass_the_same(recording: Path, tmp_path: Path) -> None:
    replay = Proxy(tmp_path).play(recording, seed=len(recording.read_bytes()))
    assert replay.client.missing == replay.agent.missing == replay.agent.added == []
    for line in replay.client.added:
        assert_is_usage_update_of_ours(json.loads(line), protocol_version(recording))
