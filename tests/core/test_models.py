"""Which names a reported model id stands for."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from acp_proxy.core import models

ROWS = frozenset(
    {
        "anthropic/claude-opus-5-5",
        "anthropic/claude-sonnet-4-5",
        "anthropic/claude-opus-4-1",
        "anthropic/claude-3-5-sonnet",
        "bedrock-regional/claude-sonnet-4-5",
        "bedrock-regional/claude-sonnet-5",
        "bedrock-regional/openai.gpt-6-sol",
        "bedrock-global/openai.gpt-6-sol",
        "openai/gpt-5.5",
        "openai/gpt-4o",
        "openai/gpt-4o-2024-05-13",
        "openai/gpt-5.1-codex-max",
        "openai/weird/high",
        "google/gemini-2.5-pro",
        "alibaba/qwen3-coder-plus",
        "alibaba/qwen3.8-max",
        "minimax/minimax-m2.7",
        "openrouter/anthropic/claude-opus-5-5",
        "github-copilot/gpt-5.5",
    }
)
BARE = frozenset(row.partition("/")[2] for row in ROWS)
PIECES = [
    *"ab-./@()[],:|$ \né\ud800",
    *(
        "claude-",
        "gpt-5.5",
        "opus-5.5",
        "[1m]",
        "[high]",
        "/max",
        "-20250929",
        "-2026-04-23",
        "arn:",
        "us.",
        "anthropic.",
    ),
    *("openai/", "$runtime|", "(openai)", ",thinking", "-v1:0", "auto"),
    *sorted(ROWS),
]
IDS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=6).map("".join))


def resolve(model: str) -> str | None:
    return next((name for name in models.row_names(model) if name in ROWS), None)


@pytest.mark.parametrize(
    ("reported", "row"),
    [
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("claude-opus-5-5[1m]", "anthropic/claude-opus-5-5"),
        ("Claude-Opus-5.5[1M]", "anthropic/claude-opus-5-5"),
        ("gpt-5.5[high]", "openai/gpt-5.5"),
        ("gpt-5.5[high][1m]", "openai/gpt-5.5"),
        ("gpt-5.5/xhigh", "openai/gpt-5.5"),
        ("openai/gpt-5.5/low", "openai/gpt-5.5"),
        ("openai/weird/high", "openai/weird/high"),
        ("gpt-5.1-codex-max", "openai/gpt-5.1-codex-max"),
        ("qwen3.8-max", "alibaba/qwen3.8-max"),
        ("qwen/qwen3.8-max", "alibaba/qwen3.8-max"),
        ("qwen3-coder-plus(openai)", "alibaba/qwen3-coder-plus"),
        ("$runtime|openai|qwen3-coder-plus(openai)", "alibaba/qwen3-coder-plus"),
        ("claude-opus-5-5,thinking", "anthropic/claude-opus-5-5"),
        ("MiniMax-M2.7", "minimax/minimax-m2.7"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "anthropic/claude-sonnet-4-5"),
        ("google-vertex-anthropic/claude-sonnet-4-5@default", "anthropic/claude-sonnet-4-5"),
        ("gpt-5.5-2026-04-23", "openai/gpt-5.5"),
        ("gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"),
        ("gpt-4o-2024-08-06", "openai/gpt-4o"),
        ("models/gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock-regional/claude-sonnet-4-5"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock-regional/claude-sonnet-4-5"),
        ("amazon-bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock-regional/claude-sonnet-4-5"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock-regional/claude-sonnet-4-5",
        ),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic/claude-sonnet-4-5"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "anthropic/claude-opus-4-1"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic/claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-5-v1:0", "bedrock-regional/claude-sonnet-5"),
        ("us.openai.gpt-6-sol", "bedrock-regional/openai.gpt-6-sol"),
        ("global.openai.gpt-6-sol", "bedrock-global/openai.gpt-6-sol"),
        ("openrouter/anthropic/claude-opus-5.5", "openrouter/anthropic/claude-opus-5-5"),
        ("github-copilot/gpt-5.5", "github-copilot/gpt-5.5"),
        ("anthropic:claude-opus-5.5", "anthropic/claude-opus-5-5"),
        ("gemini:gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("openrouter:anthropic/claude-opus-5.5", "openrouter/anthropic/claude-opus-5-5"),
    ],
)
def test_an_id_stands_for_one_row(reported: str, row: str) -> None:
    assert resolve(reported) == row


@pytest.mark.parametrize(
    "reported",
    [
        "claude-opus-5-5-fast",
        "claude-opus-5",
        "my-claude-opus-5-5",
        "gpt-5.5-pro",
        "gpt-5",
        "gpt-5.5-0423",
        "gpt-5.5-2026-13-23",
        "gpt-5.5-20269999",
        "gpt-5.5[fast]",
        "gpt-5.5[200k]",
        "gpt-5.5[]",
        "gpt-5.5/fast",
        "azure/gpt-5.5",
        "opencode/claude-opus-5-5",
        "ollama/gpt-5.5",
        "anthropic-coding-plan/claude-opus-5-5",
        "github-copilot/claude-opus-5-5",
        "my-gateway/openai/gpt-5.5",
        "custom:gpt-5.5",
        "openai-codex:gpt-5.5",
        "gpt-5.5:latest",
        "mistral:7b",
        "openai/weird:high",
        "openai/claude-opus-5-5",
        "amazon-bedrock/claude-sonnet-4-5",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123",
        "",
        " ",
        "x" * 10_000,
        "(a" * 10_000,
    ],
)
def test_another_product_and_another_seller_are_unknown(reported: str) -> None:
    assert resolve(reported) is None


@pytest.mark.parametrize(
    "reported",
    [
        *(
            "default",
            "auto",
            "auto-gemini-3",
            "Opus",
            "opus[1m]",
            "sonnet",
            "sonnet[1m]",
            "haiku",
            "fable",
            "fable[1m]",
            "opusplan",
            "best",
            "pro",
        ),
        *("flash", "coder-model", "coder-model(qwen-oauth)", "kimi-for-coding", "<synthetic>", "openrouter/auto"),
        "vision-model(qwen-oauth)",
        "default/high",
    ],
)
def test_an_alias_names_no_row(reported: str) -> None:
    assert models.is_alias(reported)
    assert list(models.row_names(reported)) == []


@pytest.mark.parametrize(
    "reported", ["claude-opus-5-5", "gemini-2.5-pro", "gemini-2.5-flash", "gpt-5.5-pro", "opus[fast]", ""]
)
def test_a_fixed_model_is_no_alias(reported: str) -> None:
    assert not models.is_alias(reported)


def test_an_id_may_be_as_long_as_a_name_in_the_ledger() -> None:
    assert resolve("gpt-5.5".rjust(300)) == "openai/gpt-5.5"
    assert resolve("gpt-5.5".rjust(301)) is None


@pytest.mark.parametrize(
    ("claude", "more"),
    [
        ("claude-opus-4", False),
        ("claude-opus-4-1", False),
        ("claude-opus-4-4", False),
        ("claude-opus-4-5", True),
        ("claude-sonnet-4-10", True),
        ("claude-sonnet-5", True),
        ("claude-opus-5-1-fast", True),
        ("claude-3-5-sonnet", False),
        ("gpt-5.5", False),
    ],
)
def test_a_claude_costs_more_by_region_from_4_5_on(claude: str, more: bool) -> None:
    assert models.costs_more_by_region(claude) is more


def test_the_name_of_a_labs_row_has_two_parts_and_that_of_a_gateways_row_one() -> None:
    assert models.lab_and_model("openai/gpt-5.5") == ("openai", "gpt-5.5")
    assert models.lab_and_model("openai/weird/high") == ("openai", "weird/high")
    assert models.lab_and_model("openrouter/anthropic/claude-opus-5-5") == (
        None,
        "openrouter/anthropic/claude-opus-5-5",
    )


def test_a_row_has_one_spelling_and_may_be_said_without_its_lab() -> None:
    assert models.canonical("Anthropic/Claude-Opus-5.5") == "anthropic/claude-opus-5-5"
    assert models.canonical("OpenAI/GPT-5.5") == "openai/gpt-5.5"
    assert models.without_lab("OpenAI/GPT-5.5") == "gpt-5.5"
    assert models.without_lab("x-ai/grok-5") == "grok-5"
    assert models.without_lab("openrouter/anthropic/claude-opus-5.5") == "openrouter/anthropic/claude-opus-5-5"
    for name in ("gpt-5.5", "openai"):
        assert models.without_lab(name) == name


def test_only_1m_hints_at_a_window() -> None:
    assert models.window_hint("claude-sonnet-4-5[1m]") == 1_000_000
    assert models.window_hint("claude-sonnet-4-5[1M][high]") == 1_000_000
    assert models.window_hint("gpt-5.5[high]") is None


@given(IDS)
@example("$runtime|")
@example("/max")
def test_reading_an_id_never_fails_and_a_row_resolves_to_itself(model: str) -> None:
    names = list(models.row_names(model))
    assert all(name == name.lower() for name in names)
    models.is_alias(model)
    row = resolve(model)
    assert row is None or resolve(row) == row


@given(st.sampled_from(sorted(ROWS)), st.text("abcz0123456789-.", min_size=1, max_size=12))
def test_an_id_that_only_begins_or_ends_like_a_row_is_another_one(row: str, more: str) -> None:
    """A date is the one ending that may be dropped, and the lab the one beginning."""
    name = row.partition("/")[2]
    assume(f"{name}{more}" not in BARE and not re.search(r"-20\d\d-?\d\d-?\d\d$", f"{name}{more}"))
    assert resolve(f"{name}{more}") is None
    assert resolve(f"x{more}{name}") is None
