"""What `acp-proxy prices` answers."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from acp_proxy import prices
from acp_proxy.catalog import Catalog
from acp_proxy.config.values import Price
from acp_proxy.core.usage import Usage
from acp_proxy.prices import Tokens

NOW = int(datetime(2026, 11, 20, 15, tzinfo=UTC).timestamp()) * 1_000_000_000
SOL = Tokens(Usage(input=4_000, cached_read=50_000, output=1_500))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def cost(catalog: Catalog, model: str, tokens: Tokens, at: int = NOW, context: int | None = None) -> dict[str, Any]:
    answer = json.loads(prices.cost(catalog, model, tokens, at, context, as_json=True))
    assert isinstance(answer, dict)
    return answer


def test_a_cost_as_json_has_the_model_its_row_window_rates_and_exact_cost(catalog: Catalog) -> None:
    answer = cost(catalog, "gpt-6.1-sol[high]", SOL)
    assert answer["model"] == "gpt-6.1-sol[high]"
    assert answer["resolved"] == "openai/gpt-6.1-sol"
    assert answer["context"] == 1_050_000
    assert answer["rates"] == {
        "input": "2",
        "output": "10",
        "cached_read": "0.1",
        "cached_write": "2.5",
        "cached_write_1h": None,
    }
    assert answer["cost"] == {"USD": "0.028"}
    assert not answer["estimated"]


@pytest.mark.parametrize("model", ["default", "no-such-model"])
def test_what_is_unknown_is_null_or_empty_and_never_zero(catalog: Catalog, model: str) -> None:
    answer = cost(catalog, model, SOL)
    assert (answer["model"], answer["resolved"], answer["context"]) == (model, None, None)
    assert (answer["rates"], answer["cost"]) == ({}, {})


def test_an_unknown_model_shown_as_json_has_neither_row_nor_rates(catalog: Catalog) -> None:
    answer = json.loads(prices.show(catalog, "no-such-model", NOW, as_json=True))
    assert answer.pop("model") == "no-such-model"
    assert answer == {"resolved": None, "context": None, "rates": {}, "cost": {}, "since": None, "source": None}


def test_a_cost_as_json_says_what_had_to_be_assumed() -> None:
    own = Catalog({"big-model": Price("3", "9")})
    assumed = cost(own, "big-model", Tokens(Usage(input=1_000_000, cached_read=1_000_000)))
    assert (assumed["cost"], assumed["estimated"]) == ({"USD": "6"}, True)
    assert assumed["notes"] == ["no price for cached_read: as input"]
    certain = cost(own, "big-model", Tokens(Usage(input=1_000_000)))
    assert (certain["cost"], certain["estimated"], certain["notes"]) == ({"USD": "3"}, False, [])


def test_tokens_written_for_an_hour_are_part_of_the_one_request(catalog: Catalog) -> None:
    below, above = (Tokens(Usage(input=60_000), cached_write_1h=amount) for amount in (40_000, 40_001))
    assert cost(catalog, "claude-haiku-5-5", below)["notes"] == []
    assert cost(catalog, "claude-haiku-5-5", above)["notes"] == ["price above 100,000 tokens of context"]


def test_without_a_context_the_tokens_are_one_request(catalog: Catalog) -> None:
    tokens = Tokens(Usage(input=100_001, output=1_000))
    assert cost(catalog, "claude-haiku-5-5", tokens)["cost"] == {"USD": "0.0525005"}
    assert cost(catalog, "claude-haiku-5-5", tokens, context=52_000)["cost"] == {"USD": "0.0105001"}


def test_the_moment_decides_between_dated_prices(catalog: Catalog) -> None:
    tokens = Tokens(Usage(cached_read=1_000_000))
    before = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
    old, new = cost(catalog, "claude-sonnet-5-5", tokens, before), cost(catalog, "claude-sonnet-5-5", tokens)
    assert (old["cost"], new["cost"]) == ({"USD": "0.2"}, {"USD": "0.1"})
    assert (old["since"], new["since"]) == ("2026-09-28", "2026-10-07")


def test_what_tokens_cost_before_the_first_known_price_is_told_as_an_estimate(catalog: Catalog) -> None:
    long_ago = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
    answer = cost(catalog, "claude-opus-5-5", SOL, long_ago)
    assert (answer["cost"], answer["estimated"]) == (cost(catalog, "claude-opus-5-5", SOL)["cost"], True)
    assert answer["notes"] == ["no price is known before 2026-09-22: as from then on"]
    assert prices.cost(catalog, "claude-opus-5-5", SOL, long_ago).endswith(f"; {answer['notes'][0]}\n")


def test_a_list_says_of_how_many_models_the_first_known_price_is_later(catalog: Catalog) -> None:
    long_ago = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
    listed = prices.list_prices(catalog, long_ago, "anthropic/claude-opus-5-5")
    assert listed.endswith("; for 1 the first price, which is later\n")
    assert "the first price" not in prices.list_prices(catalog, NOW)


def test_both_kinds_of_cache_write_may_be_given(catalog: Catalog) -> None:
    tokens = Tokens(Usage(cached_write=1_000_000), cached_write_1h=1_000_000)
    assert cost(catalog, "claude-opus-5-5", tokens)["cost"] == {"USD": "13"}
    assert cost(Catalog(cache_write="1h"), "claude-opus-5-5", tokens)["cost"] == {"USD": "16"}


def test_a_cost_as_text_shows_how_it_is_made_up(catalog: Catalog) -> None:
    text = prices.cost(catalog, "claude-opus-5.5", Tokens(Usage(1_000, 45_000, 5_000, 1_200, 300)), NOW)
    assert text.splitlines() == [
        "$0.068  anthropic/claude-opus-5-5",
        " 1,000  input         ×    4",
        " 1,500  output        ×   20",
        "45,000  cached read   ×  0.2",
        " 5,000  cached write  ×    5",
        "US dollars per million tokens; cache writes at the 5-minute price",
    ]


def test_a_cost_as_text_of_a_price_that_is_partly_unknown_says_so() -> None:
    own = Catalog({"big-model": Price("3")})
    assert prices.cost(own, "big-model", Tokens(Usage(input=2_000, output=10)), NOW).splitlines() == [
        "cost unknown  big-model",
        "2,000  input   ×        3",
        "   10  output  ×  unknown",
        "US dollars per million tokens; no price for output",
    ]
    assert prices.cost(own, "big-model", Tokens(Usage(input=2_000)), NOW).splitlines() == [
        "$0.006  big-model",
        "2,000  input  ×  3",
        "US dollars per million tokens",
    ]


def test_a_cost_as_text_multiplies_what_was_charged() -> None:
    text = prices.cost(Catalog(cache_write="1h"), "claude-opus-5-5", Tokens(Usage(cached_write=1_000)), NOW)
    assert "1,000  cached write  ×  8" in text


def test_show_tells_window_steps_tiers_and_source(catalog: Catalog) -> None:
    text = prices.show(catalog, "gpt-5.6-sol[high]", NOW)
    assert text.startswith("gpt-5.6-sol[high] is openai/gpt-5.6-sol\ncontext 1,050,000 tokens\n")
    assert "since 2026-08-21 " in text
    assert "  above 272,000 a request " in text
    assert f"from genai-prices 0.2.3, model-prices 0.0.5; catalog of {catalog.date}\n" in text


def test_show_tells_what_is_announced_and_what_depends_on_the_hour(catalog: Catalog) -> None:
    assert "from 2027-01-01 " in prices.show(catalog, "gemini-3.8-flash", NOW)
    assert "times 2 on weekdays 01–04, 06–10 UTC" in prices.show(catalog, "deepseek-v4-pro", NOW)


def test_show_as_json_says_since_when_and_from_where(catalog: Catalog) -> None:
    answer = json.loads(prices.show(catalog, "claude-sonnet-5-5[1m]", NOW, as_json=True))
    assert answer["rates"]["cached_read"] == "0.1"
    assert answer["context"] == 1_000_000
    assert answer["cost"] == {}
    assert answer["since"] == "2026-10-07"
    assert answer["source"] == "genai-prices 0.2.3, model-prices 0.0.5"


def test_show_tells_a_price_of_the_users_own() -> None:
    own = Catalog({"my-gateway/big-model": Price("1.20", "6", context=200_000)})
    text = prices.show(own, "my-gateway/big-model", NOW)
    assert "context 200,000 tokens" in text
    assert text.endswith("from configuration\n")


def test_show_names_a_model_once_that_is_given_by_its_rows_name() -> None:
    own = Catalog({"my-gateway/big-model": Price("1.20", "6")})
    assert prices.show(own, "my-gateway/big-model", NOW).splitlines() == [
        "my-gateway/big-model",
        "context unknown",
        "       input  output  cached read  cached write  1 h write",
        "price    1.2       6            -             -          -",
        "US dollars per million tokens; thinking costs what output costs",
        "from configuration",
    ]


def test_an_unknown_model_is_told_with_what_sets_it_and_what_is_similar(catalog: Catalog) -> None:
    text = prices.show(catalog, "gpt-6.1-so", NOW)
    assert text.startswith('gpt-6.1-so: not in the catalog; [prices."gpt-6.1-so"] gives it a price')
    assert '; [prices."my \\"big\\" m"] gives it a price' in prices.show(catalog, 'my "big" m', NOW)
    assert "openai/gpt-6.1-sol" in text
    assert prices.cost(catalog, "gpt-6.1-so", SOL, NOW) == text
    assert '[aliases] "opus" = "…"' in prices.show(catalog, "opus", NOW)


def test_an_alias_that_leads_to_no_price_is_told_with_what_it_names() -> None:
    aliased = Catalog(aliases={"default": "gpt-6.1-so", "opus": "sonnet"})
    unknown, alias = (prices.show(aliased, model, NOW) for model in ("default", "opus[1m]"))
    assert unknown.startswith('default is gpt-6.1-so by [aliases]: not in the catalog; [prices."gpt-6.1-so"] gives it')
    assert "openai/gpt-6.1-sol" in unknown
    assert alias.startswith("opus[1m] is sonnet by [aliases]: no fixed model, so no price; ")


def test_escape_sequences_in_a_model_id_do_not_reach_the_terminal(catalog: Catalog) -> None:
    for text in (
        prices.show(catalog, "\x1b[31mred\x07", NOW),
        prices.cost(catalog, "\x1b[31mred\x07", SOL, NOW),
        prices.list_prices(catalog, NOW, "\x1b[31mred\x07"),
    ):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_list_shows_every_row_or_those_whose_name_has_the_text(catalog: Catalog) -> None:
    lines = prices.list_prices(catalog, NOW).splitlines()
    assert len(lines) == 2 + sum(1 for _ in catalog.rows)
    few = prices.list_prices(catalog, NOW, "OPUS-5-5").splitlines()
    assert any(line.startswith("anthropic/claude-opus-5-5 ") for line in few)
    assert all("opus-5-5" in line for line in few[1:-1])
    assert (
        prices.list_prices(catalog, NOW, "no-such-model") == "no model in the catalog has 'no-such-model' in its name\n"
    )


def test_a_list_fits_its_terminal_and_keeps_whole_names(catalog: Catalog) -> None:
    for width, titles in ((120, 7), (80, 5), (60, 3)):
        text = prices.list_prices(catalog, NOW, "opus-5-5", width=width, environ={"NO_COLOR": "1"})
        lines = text.splitlines()
        assert max(map(len, lines)) <= width
        assert len(re.split(" {2,}", lines[0].strip())) == titles
        assert any(line.startswith("openrouter/anthropic/claude-opus-5-5 ") for line in lines)
        assert lines[-1].startswith("US dollars per million tokens")


def test_a_list_in_a_very_narrow_terminal_cuts_names_and_still_has_prices(catalog: Catalog) -> None:
    *lines, _, note, more = prices.list_prices(
        catalog, NOW, "opus-5-5", width=40, environ={"NO_COLOR": "1"}
    ).splitlines()
    assert {len(line) for line in lines} == {40}
    assert lines[0].split() == ["model", "input", "output"]
    assert all(line.split()[-2:] == ["4", "20"] for line in lines if "anthropic/" in line)
    assert f"{note} {more}".startswith("US dollars per million tokens; catalog of 20")


def test_what_a_model_with_a_price_for_long_contexts_costs_fits_80_columns(catalog: Catalog) -> None:
    assert max(map(len, prices.show(catalog, "gpt-5.4", NOW).splitlines())) <= 80


def test_list_as_json_is_an_array_of_the_same_objects(catalog: Catalog) -> None:
    listed = json.loads(prices.list_prices(catalog, NOW, "anthropic/claude-opus-5-5", as_json=True))
    shown = json.loads(prices.show(catalog, "anthropic/claude-opus-5-5", NOW, as_json=True))
    assert shown in listed
    assert all(row["model"] == row["resolved"] for row in listed)


def test_a_list_has_the_users_prices_and_windows_as_show_has_them() -> None:
    own = Catalog(
        {
            "gpt-5.5": Price("1", "2"),
            "claude-opus-5.5": Price(context=500_000),
            "claude-opus-5-5-20270101": Price("3", "4"),
            "my-gateway/big-model": Price("1.20", "6"),
        }
    )
    listed = {row["model"]: row for row in json.loads(prices.list_prices(own, NOW, as_json=True))}
    for model in ("openai/gpt-5.5", "anthropic/claude-opus-5-5", "claude-opus-5-5-20270101", "my-gateway/big-model"):
        assert listed.pop(model) == json.loads(prices.show(own, model, NOW, as_json=True))
    assert (
        listed.items()
        <= {row["model"]: row for row in json.loads(prices.list_prices(Catalog(), NOW, as_json=True))}.items()
    )
    text = prices.list_prices(own, NOW, "big-model")
    assert text.splitlines()[1].split() == ["my-gateway/big-model", "-", "1.2", "6", "-", "-", "-"]
    assert text.endswith(f"catalog of {own.date} and prices of the configuration\n")


@pytest.mark.parametrize("search", ["claude-opus-5.5", "Opus-5.5", "gpt-6-1-sol"])
def test_a_list_is_searched_whether_a_version_has_dots_or_dashes(catalog: Catalog, search: str) -> None:
    row = "openai/gpt-6.1-sol " if "sol" in search else "anthropic/claude-opus-5-5 "
    assert any(line.startswith(row) for line in prices.list_prices(catalog, NOW, search).splitlines())
