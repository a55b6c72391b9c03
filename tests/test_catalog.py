"""The packaged prices and windows, against worked cases and the sources they are made of."""

import json
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.catalog import Catalog
from acp_proxy.config.values import Price
from acp_proxy.core import models, pricing
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import PriceRow
from acp_proxy.core.usage import Usage

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = json.loads((HERE / "data/prices_golden.json").read_text(encoding="utf-8"))["cases"]
RATES = {
    "input": "input",
    "output": "output",
    "cache_read": "cached_read",
    "cache_write_5m": "cached_write",
    "cache_write_1h": "cached_write_1h",
}
NOW = int(datetime(2026, 11, 20, 15, tzinfo=UTC).timestamp()) * 1_000_000_000


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def cost_of(catalog: Catalog, model: str, usage: Usage, moment: str, context: int | None = None) -> str | None:
    money = catalog.price(model, usage, at(moment), context).cost
    return None if money is None else money.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_worked_case_costs_exactly_what_was_worked_out(case: dict[str, Any], catalog: Catalog) -> None:
    billable, expected = case.get("billable", {}), case["expected"]
    one_hour = billable.get("cw1", 0)
    if one_hour:
        catalog = Catalog(cache_write="1h")
    usage = Usage(
        billable.get("inp", 0), billable.get("cr", 0), billable.get("cw5", 0) + one_hour, billable.get("out", 0)
    )
    moment = at(case["at"].removesuffix("Z"))
    context = case.get("largest_request_prompt_tokens")
    priced = catalog.price(case["reported_model"], usage, moment, context)

    assert (priced.cost and priced.cost.text) == expected["cost_usd"]
    assert priced.row == expected["provider_model"]
    assert not priced.estimated
    assert ("5-minute" in priced.detail) == ("cache_write_ttl_assumed_5m" in expected.get("flags", []))
    windows = expected.get("context_window_any_of", [expected["context_window"]])
    assert catalog.window(case["reported_model"]) in windows
    found = catalog.find(case["reported_model"])
    if found is None:
        assert catalog.is_alias(case["reported_model"])
        return
    texts = pricing.quote(found.row, moment, context, usage.prompt).rates.texts
    decimals = {name: text and Decimal(text) for name, text in expected["rates_usd_per_mtok"].items()}
    assert {name: (text := texts[ours]) and Decimal(text) for name, ours in RATES.items()} == decimals


@pytest.mark.parametrize(
    ("model", "day_before", "day", "before", "after"),
    [
        ("claude-sonnet-5-5", "2026-10-06T23:59:59", "2026-10-07", "0.2", "0.1"),
        ("gpt-5.6-sol", "2026-08-20T23:59:59", "2026-08-21", "0.5", "0.4"),
        ("gpt-5.6", "2026-08-20T23:59:59", "2026-08-21", "0.5", "0.4"),
        ("gemini-3.8-flash", "2026-12-31T23:59:59", "2027-01-01", "0.075", "0.15"),
        ("gemini-4-argon", "2026-11-30T23:59:59", "2026-12-01", "0.1", "0.2"),
    ],
)
def test_a_known_price_step_takes_effect_at_midnight_utc(
    catalog: Catalog, model: str, day_before: str, day: str, before: str, after: str
) -> None:
    usage = Usage(cached_read=1_000_000)
    assert cost_of(catalog, model, usage, day_before, context=1000) == before
    assert cost_of(catalog, model, usage, day, context=1000) == after


@pytest.mark.parametrize(
    ("model", "threshold", "base", "above"),
    [
        ("claude-haiku-5-5", 100_000, "0.1", "0.5"),
        ("gpt-6.1-sol", 272_000, "2", "4"),
        ("gpt-5.5", 272_000, "5", "10"),
        ("gemini-2.5-pro", 200_000, "1.25", "2.5"),
        ("qwen3-coder-plus", 32_000, "1", "1.8"),
        ("grok-4.7", 199_999, "2", "4"),
    ],
)
def test_a_long_context_costs_more_by_the_largest_request(
    catalog: Catalog, model: str, threshold: int, base: str, above: str
) -> None:
    usage = Usage(input=1_000_000)
    assert cost_of(catalog, model, usage, "2026-11-20", threshold) == base
    assert cost_of(catalog, model, usage, "2026-11-20", threshold + 1) == above
    unknown = catalog.price(model, usage, NOW)
    assert unknown.cost == Money.of(base, "USD")
    assert unknown.estimated


def test_deepseek_doubles_in_its_peak_hours_but_not_at_weekends(catalog: Catalog) -> None:
    usage = Usage(input=1_000_000)
    assert cost_of(catalog, "deepseek-v4-pro", usage, "2026-11-20T02:30") == "1.32"
    assert cost_of(catalog, "deepseek-v4-pro", usage, "2026-11-20T15:00") == "0.66"
    assert cost_of(catalog, "deepseek-v4-pro", usage, "2026-11-21T02:30") == "0.66"


@pytest.mark.parametrize(
    ("reported", "lab_row"),
    [
        ("us.anthropic.claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("eu.anthropic.claude-fable-5-1-v1:0", "anthropic/claude-fable-5-1"),
    ],
)
def test_a_regional_claude_costs_ten_percent_more(catalog: Catalog, reported: str, lab_row: str) -> None:
    usage = Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
    regional, listed = (catalog.price(model, usage, NOW).cost for model in (reported, lab_row))
    assert regional is not None
    assert listed is not None
    assert regional.nano * 10 == listed.nano * 11


@pytest.mark.parametrize("model", [None, "", "default", "no-such-model", "opencode/claude-opus-5-5", "x" * 100_000])
def test_an_unknown_model_has_no_price_and_no_window(catalog: Catalog, model: str | None) -> None:
    priced = catalog.price(model, Usage(input=1_000), NOW)
    assert (priced.cost, priced.row) == (None, None)
    assert catalog.window(model) is None


def test_a_window_hint_wins_over_the_rows_window(catalog: Catalog) -> None:
    assert catalog.window("claude-sonnet-4-5") == 200_000
    assert catalog.window("claude-sonnet-4-5[1m]") == 1_000_000
    assert catalog.window("no-such-model[1m]") is None
    aliased = Catalog({"claude-sonnet-5": Price(context=50_000)}, {"sonnet": "claude-sonnet-4-5[1m]"})
    assert aliased.window("sonnet") == 1_000_000
    assert Catalog(aliases={"sonnet": "claude-sonnet-4-5"}).window("sonnet[1m]") == 1_000_000
    assert aliased.window("claude-sonnet-5[1m]") == 50_000


def test_a_configured_price_wins_and_says_that_it_is_configured(catalog: Catalog) -> None:
    own = Price("1.20", "6", "0.12", context=200_000)
    configured = Catalog({"My-Gateway/Big-Model": own, "claude-opus-5-5": own})
    for model in ("my-gateway/big-model", "My-Gateway/Big-Model", "claude-opus-5.5[1m]", "anthropic/claude-opus-5-5"):
        priced = configured.price(model, Usage(input=1_000_000, output=1_000_000), NOW)
        assert (priced.cost, priced.configured) == (Money.of("7.2", "USD"), True)
    assert configured.window("my-gateway/big-model") == 200_000
    assert configured.price("claude-sonnet-5", Usage(input=1), NOW).configured is False
    assert catalog.find("my-gateway/big-model") is None


def test_a_configured_price_of_a_dated_model_leaves_its_siblings_alone() -> None:
    configured = Catalog({"openai/gpt-4o": Price("1", "1")})
    assert configured.price("gpt-4o", Usage(input=1), NOW).configured
    assert configured.price("gpt-4o-2024-08-06", Usage(input=1), NOW).configured
    assert not configured.price("gpt-4o-2024-05-13", Usage(input=1), NOW).configured
    assert not configured.price("openrouter/openai/gpt-4o", Usage(input=1), NOW).configured


@pytest.mark.parametrize(
    "reported", ["gpt-99[high]", "openai/gpt-99", "openai/gpt-99-2026-11-20/high", "openai:gpt-99"]
)
@pytest.mark.parametrize("key", ["openai/gpt-99", "gpt-99"])
def test_a_lab_model_that_the_catalog_lacks_can_be_configured_with_or_without_its_lab(key: str, reported: str) -> None:
    configured = Catalog({key: Price("1", "2")})
    assert configured.price(reported, Usage(input=1_000_000), NOW).cost == Money.of("1", "USD")
    assert configured.find(f"openrouter/{reported}") is None


def test_a_configured_window_alone_leaves_the_catalogs_price() -> None:
    configured = Catalog({"claude-opus-5-5": Price(context=123_456)})
    priced = configured.price("claude-opus-5-5", Usage(input=1_000_000), NOW)
    assert (priced.cost, priced.configured) == (Money.of("4", "USD"), False)
    assert configured.window("claude-opus-5-5") == 123_456


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5-20260101", "claude-opus-5-5/high", "global.anthropic.claude-opus-5-5-v1:0"]
)
def test_a_configured_window_alone_is_that_of_an_id_whose_price_stands_under_another_name(
    model: str, catalog: Catalog
) -> None:
    configured = Catalog({model: Price(context=123_456)})
    priced = configured.price(model, Usage(input=1_000_000), NOW)
    assert (priced.cost, priced.row) == (Money.of("4", "USD"), "anthropic/claude-opus-5-5")
    assert configured.window(model) == 123_456
    assert catalog.window(model) != 123_456


def test_a_configured_window_of_a_model_without_a_price_gives_it_none() -> None:
    configured = Catalog({"big-model": Price(context=123_456)})
    priced = configured.price("big-model", Usage(input=1), NOW)
    assert (priced.cost, priced.row, priced.configured) == (None, "big-model", False)
    assert configured.window("big-model") == 123_456


@pytest.mark.parametrize(
    "model",
    ["claude-opus-5-5", "gpt-5.5", "gemini-2.5-pro/high", "gpt-4o-2024-08-06", "us.anthropic.claude-opus-5-5-v1:0"],
)
def test_a_configured_price_alone_leaves_the_catalogs_name_window_and_lab(model: str, catalog: Catalog) -> None:
    configured = Catalog({model: Price("1", "2")})
    priced, listed = (each.price(model, Usage(input=1_000_000), NOW) for each in (configured, catalog))
    assert (priced.cost, priced.configured, priced.row) == (Money.of("1", "USD"), True, listed.row)
    assert configured.window(model) == catalog.window(model) is not None
    assert configured.lab(model) == catalog.lab(model)


def test_a_configured_price_of_a_model_that_the_catalog_lacks_has_its_own_name_and_no_window() -> None:
    configured = Catalog({"big-model": Price("1", "2")})
    assert configured.price("big-model", Usage(input=1), NOW).row == "big-model"
    assert configured.window("big-model") is None


def test_a_configured_price_without_one_for_cached_tokens_makes_their_cost_an_estimate() -> None:
    configured = Catalog({"big-model": Price("3", "9")})
    assert not configured.price("big-model", Usage(input=1), NOW).estimated
    assert configured.price("big-model", Usage(cached_read=1), NOW).estimated


def test_a_cost_that_is_unknown_is_no_estimate(catalog: Catalog) -> None:
    assert catalog.price("gpt-5.6-sol", Usage(input=10**6), NOW).estimated  # of which request it was is not known
    beyond = catalog.price("gpt-5.6-sol", Usage(input=10**18), NOW)
    assert (beyond.cost, beyond.estimated) == (None, False)


def test_why_a_cost_is_unknown_tells_whether_a_model_was_named(catalog: Catalog) -> None:
    assert catalog.price("no-such-model", Usage(input=1), NOW).detail == "model unknown"
    assert catalog.price(None, Usage(input=1), NOW).detail == "no model named"
    assert not catalog.is_alias(None)


def test_a_configured_alias_names_a_model() -> None:
    aliased = Catalog(aliases={"default": "anthropic/claude-opus-5-5", "Opus": "claude-opus-5-5"})
    assert not aliased.is_alias("default")
    assert aliased.price("default", Usage(input=1_000_000), NOW).row == "anthropic/claude-opus-5-5"
    assert aliased.price("opus[1m]", Usage(input=1_000_000), NOW).row == "anthropic/claude-opus-5-5"
    assert aliased.is_alias("sonnet")


@pytest.mark.parametrize(
    ("meant", "named"),
    [
        ("anthropic/claude-opus-5-5", "claude-opus-5-5"),
        ("openrouter/deepseek/deepseek-v3.2", "openrouter/deepseek/deepseek-v3.2"),
        ("my-gateway/big-model", "my-gateway/big-model"),
        ("openai/gpt-6.1-sol/high", "openai/gpt-6.1-sol/high"),
        ("bedrock/eu.anthropic.claude-opus-5-5-v1:0", "bedrock/eu.anthropic.claude-opus-5-5-v1:0"),
    ],
)
def test_the_model_that_an_alias_stands_for_has_the_price_of_the_alias(meant: str, named: str) -> None:
    own = ("my-gateway/big-model", "openai/gpt-6.1-sol/high", "bedrock/eu.anthropic.claude-opus-5-5-v1:0")
    aliased = Catalog(dict.fromkeys(own, Price("1", "2")), aliases={"default": meant})
    assert aliased.concrete("default") == named
    usage = Usage(input=1_000_000)
    assert aliased.price(named, usage, NOW) == aliased.price("default", usage, NOW)
    assert aliased.price(named, usage, NOW).cost


def test_what_is_longer_than_any_models_id_is_unknown_whoever_prices_it() -> None:
    longest = "m" * models.LONGEST
    priced = Catalog({longest: Price("1", "2"), f"{longest}m": Price("1", "2")})
    assert priced.find(longest)
    assert priced.find(f"{longest}m") is None


def test_aliases_that_name_each_other_are_unknown() -> None:
    circular = Catalog(aliases={"default": "auto", "auto": "default"})
    assert circular.price("default", Usage(input=1), NOW).cost is None
    assert circular.is_alias("default")


def test_every_row_is_readable_and_says_where_it_is_from(catalog: Catalog) -> None:
    rows = dict(catalog.rows)
    assert len(rows) > 450
    for name, row in rows.items():
        assert _faults(row) == [], name
        assert next((found for known in models.row_names(name) if (found := known) in rows), None) == name
    assert catalog.date >= date(2026, 11, 1)


def _faults(row: PriceRow) -> list[str]:
    dates = [step.since for step in row.steps[1:]]
    rates = [*(step.rates for step in row.steps), *(tier.rates for step in row.steps for tier in step.tiers)]
    return [
        fault
        for fault, found in {
            "no source": not row.source,
            "no window in tokens": row.window is not None and row.window < 1_000,
            "later steps without a date": None in dates,
            "dates out of order": dates != sorted(dates, key=lambda since: since or 0),
            "a price that never holds": len({step.since for step in row.steps}) < len(row.steps),
            "no input price": any(not each.input for each in rates),
            "no output price": any(not each.output for each in rates),
            "free caches": any(0 in (each.cached_read, each.cached_write) for each in rates),
            "cached input dearer than input": any((each.cached_read or 0) > (each.input or 0) for each in rates),
        }.items()
        if found
    ]


def test_who_makes_a_model_is_known_of_labs_and_not_of_who_only_sells_it(catalog: Catalog) -> None:
    makers = {
        "claude-opus-5-5[1m]": "anthropic",
        "openai/gpt-6.1-sol": "openai",
        "openrouter/anthropic/claude-opus-5.5": None,
        "nobody/knows-it": None,
    }
    assert {model: catalog.lab(model) for model in makers} == makers


def test_the_table_is_read_at_the_first_question_only() -> None:
    catalog = Catalog({"a": Price("1", "1")}, {"b": "a"})
    assert "_table" not in vars(catalog)
    catalog.window("claude-opus-5-5")
    assert "_table" in vars(catalog)


def test_the_packaged_table_is_what_sources_and_decisions_make() -> None:
    packaged = HERE.parent / "acp_proxy/catalog/catalog.json"
    assert packaged.read_text(encoding="utf-8") == build().catalog_text(decisions())


def test_a_disagreement_without_a_decision_stops_the_build() -> None:
    undecided = decisions().replace('rows = ["moonshotai/kimi-k2-turbo-preview"]', 'rows = ["moonshotai/nothing"]')
    with pytest.raises(build().DisagreementError) as stopped:
        build().catalog_text(undecided)
    unneeded, disagreement = str(stopped.value).splitlines()
    assert unneeded == "decisions.toml: take ['moonshotai/nothing']: nothing to decide any more"
    assert disagreement.startswith("moonshotai/kimi-k2-turbo-preview on ")
    assert "input 2.4 (model-prices) / 1.15 (genai-prices)" in disagreement


def decisions() -> str:
    return (HERE.parent / "scripts/catalog/decisions.toml").read_text(encoding="utf-8")


def build() -> Any:
    for source in ("genai_prices", "model_prices"):
        pytest.importorskip(source, reason="the dependency group `catalog` is not installed")
    scripts = str(HERE.parent / "scripts")
    if scripts not in sys.path:
        sys.path.insert(0, scripts)
    return import_module("catalog.build")
