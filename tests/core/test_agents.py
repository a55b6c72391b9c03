from __future__ import annotations

import pytest

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.agents.lookup import how_it_counts, profile_of
from acp_proxy.core.agents.profile import UNKNOWN
from acp_proxy.core.agents.table import BY_TITLE


@pytest.mark.parametrize(
    ("name", "version", "scope"),
    [
        ("@agentclientprotocol/claude-agent-acp", "0.100.0", "turn"),
        ("@zed-industries/claude-agent-acp", "0.23.1", "turn"),
        ("@agentclientprotocol/codex-acp", "2.6.0", "turn"),
        ("@agentclientprotocol/codex-acp", "2.1.1", "last_call"),
        ("@agentclientprotocol/codex-acp", "2.2.1", "turn"),
        ("codex-acp", "0.16.0", "none"),
        ("gemini-cli", "0.61.0", "turn"),
        ("qwen-code", "0.24.4", "call"),
        ("OpenCode", "1.18.33", "last_call"),
        ("Kilo", "7.7.9", "last_call"),
        ("goose", "1.52.0", "last_call"),
        ("OpenCode", "1.1.34", "none"),
        ("OpenCode", "1.1.53", "last_call"),
        ("OpenCode", "1.2.11", "last_call"),
        ("Copilot", "1.0.75", "none"),
        ("Copilot", "1.0.79", "session"),
        ("Copilot", "1.0.102", "session"),
        ("@mistralai/mistral-vibe", "2.0.2", "none"),
        ("@mistralai/mistral-vibe", "2.6.1", "session"),
        ("@mistralai/mistral-vibe", "2.7.0", "none"),
        ("@mistralai/mistral-vibe", "2.26.1", "session"),
        ("@mistralai/mistral-vibe", "3.0.2", "session"),
        ("hermes-agent", "0.19.0", "session"),
        ("OpenHands CLI ACP Agent", "1.16.0", "session"),
        ("fast-agent-acp", "0.10.46", "turn"),
        ("pi-acp", "0.0.34", "none"),
        ("Kimi Code CLI", "1.51.0", "none"),
        ("Kimi Code CLI", "2.1.0", "none"),
        ("cline", "3.0.65", "none"),
        ("nanocoder", "1.30.0", "turn"),
        ("pydantic-acp", "1.10.0", "turn"),
        ("code-puppy", "0.0.946", "turn"),
        ("oh-my-pi", "18.2.0", "turn"),
        ("box-agent", "0.9.7", "turn"),
        ("agentpool", "2.9.18", "turn"),
        ("openclaw-acp", "2026.9.2", "none"),
        ("nooa-acp", "0.0.10", "none"),
        ("@zed-industries/claude-code-acp", "0.16.2", "none"),
        ("crow-cli", "0.1.48", "last_call"),
        ("dirac", "0.4.19", "none"),
        ("dirac", "0.4.37", "session"),
        ("glm-acp-agent", "1.0.0", "last_call"),
        ("codebuddy", "2.163.0", "call"),
    ],
)
def test_each_released_agent_counts_in_its_own_scope(name: str, version: str, scope: str) -> None:
    profile = profile_of(name, version)
    assert profile.known
    assert profile.tokens.scope == scope


@pytest.mark.parametrize(
    ("version", "cost"),
    [
        ("0.100.0", "carried"),
        ("0.101.3-beta.1", "carried"),
        ("v1.2", "carried"),
        ("0.100", "carried"),
        ("0.100-rc.1", "carried"),
        ("0.92.0", "carried"),
        ("0.92", "carried"),
        ("0.91.9", "restarts"),
        ("0.49.0", "restarts"),
        ("0.9.9", "restarts"),
        (None, "carried"),
        ("nightly", "carried"),
    ],
)
def test_a_version_not_seen_counts_like_the_newest_at_or_below_it_else_like_the_oldest(
    version: str | None, cost: str
) -> None:
    assert profile_of("@agentclientprotocol/claude-agent-acp", version).cost.counter == cost


@pytest.mark.parametrize("name", [None, "", "Goose", "claude-agent-acp", "goose-fork"])
def test_a_name_matches_exactly_or_not_at_all(name: str | None) -> None:
    assert profile_of(name, "1.52.0") == UNKNOWN


def test_an_agent_that_calls_itself_by_its_framework_counts_as_that() -> None:
    for title, name in BY_TITLE.items():
        assert profile_of("my-agent", None, title=title) == profile_of(name, None)
        assert profile_of("my-agent", None, title=title).known
        assert profile_of("goose", None, title=title) == profile_of("goose", None)
    assert profile_of("my-agent", None, title="my agent") == UNKNOWN


def test_the_configuration_decides_how_an_unknown_agent_counts() -> None:
    profile = profile_of("my-agent", "1", {"my-agent": ProfileOverride("session", "includes_cache")})
    assert (profile.tokens.scope, profile.overlap.input, profile.known) == ("session", "includes_cache", True)


def test_the_configuration_overrides_only_what_it_says() -> None:
    profile = profile_of("goose", "1.52.0", {"goose": ProfileOverride(scope="turn"), "other": ProfileOverride("call")})
    found = (profile.tokens.scope, profile.overlap.input, profile.tokens.after_failure)
    assert found == ("turn", "includes_cache", "repeats")
    assert not profile.overlap.decided


def test_only_a_carried_cost_goes_on_in_a_new_process() -> None:
    agents = {"goose": "carried", "OpenCode": "carried", "@zed-industries/claude-agent-acp": "restarts"}
    assert {name: profile_of(name, None).cost.counter for name in agents} == agents


def test_the_line_for_people_says_what_is_never_reported() -> None:
    assert "titles" in how_it_counts(profile_of("OpenCode", "1.18.33"))
    assert "not in the table" in how_it_counts(UNKNOWN)
