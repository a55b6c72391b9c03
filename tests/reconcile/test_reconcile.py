"""A month of recorded sessions beside its bill: every omission is found and named, and nothing that is none."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.bills import By, File, date_of, read
from acp_proxy.catalog import Catalog
from acp_proxy.config.values import Price
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import CacheWrite
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY as A_DAY
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.reconcile import reconcile
from acp_proxy.system.errors import UsageError
from harness.rows import MINUTE, amended, line, row
from tests.bills.made import FORMS, Call, anthropic, openai
from tests.reconcile.month import (
    CATALOG,
    DAYS,
    FIRST,
    UNCERTAIN,
    calls_of,
    certain,
    priced,
    reconciled,
    rows,
    whole_month,
    without,
)

NAMES_WHAT_IS_MISSING = {"before_ledger", "day_unseen", "model_unseen", "tokens_unseen"}


@pytest.mark.parametrize("by", ["day", "model", "user", "key"])
def test_a_bill_of_what_the_ledger_has_is_seen_whole(tmp_path: Path, by: By) -> None:
    people = {"key-alice": "alice", "key-bob": "bob"}
    found = reconciled(tmp_path, rows(), anthropic(whole_month(calls_of(rows()))), by=by, people=people)
    assert certain(found) == []
    assert found.total.bill.tokens == found.total.ledger.tokens > 0
    for each in found.lines:
        if each.key != "none":
            assert each.bill.tokens == each.ledger.tokens, each.key


def test_only_models_of_the_bills_provider_are_compared(tmp_path: Path) -> None:
    found = reconciled(tmp_path, rows(), openai(whole_month(calls_of(rows(), "openai"))), "openai")
    assert certain(found) == []
    assert {each.key for each in found.lines} == {"gpt-6.1-sol", "gpt-6-astra"}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_each_form_of_a_bill_tells_the_same(tmp_path: Path, form: str) -> None:
    provider, made = FORMS[form]
    lab = "openai" if form == "openai" else "anthropic"
    calls = whole_month(calls_of(rows(), lab))
    found = reconciled(tmp_path, rows(), made(calls), provider)
    ours = [finding for finding in certain(found) if finding.kind != "not_billed"]  # LiteLLM sells any lab's models
    assert ours == []
    assert found.total.bill.tokens == found.total.ledger.tokens == sum(sum(call.tokens) for call in calls)


def test_a_model_that_the_ledger_never_saw_is_named(tmp_path: Path) -> None:
    kept, gone = without(rows(), lambda each: each.origin.agent.startswith("goose"))
    found = reconciled(tmp_path, kept, anthropic(calls_of(rows())))
    (only,) = certain(found)
    assert (only.kind, only.model) == ("model_unseen", "claude-sonnet-4-5")
    assert only.tokens == sum(sum(call.tokens) for call in calls_of(gone))
    assert only.costs == (Money.of(sum(call.amount for call in calls_of(gone)), "USD"),)


def test_days_without_the_proxy_are_named(tmp_path: Path) -> None:
    days = {FIRST + 9, FIRST + 10}
    kept, gone = without(rows(), lambda each: each.entry.started_at // A_DAY in days)
    (only,) = certain(reconciled(tmp_path, kept, anthropic(calls_of(rows()))))
    assert (only.kind, set(only.days)) == ("day_unseen", days)
    assert only.tokens == sum(sum(call.tokens) for call in calls_of(gone))
    assert "2026-11-10 to 2026-11-11" in only.says


def test_what_was_billed_before_the_ledger_began_is_told_as_that(tmp_path: Path) -> None:
    kept, gone = without(rows(), lambda each: each.entry.started_at // A_DAY < FIRST + 5)
    (only,) = certain(reconciled(tmp_path, kept, anthropic(calls_of(rows()))))
    assert only.kind == "before_ledger"
    assert "2026-11-06" in only.says
    assert only.tokens == sum(sum(call.tokens) for call in calls_of(gone))


def test_a_user_and_a_key_that_the_ledger_never_saw_are_named(tmp_path: Path) -> None:
    kept, _ = without(rows(), lambda each: each.origin.user == "bob")
    for by, name in (("user", "bob"), ("key", "key-bob")):
        people = {"key-alice": "alice"}
        found = reconciled(tmp_path, kept, anthropic(calls_of(rows())), by=by, people=people)  # type: ignore[arg-type]
        assert [finding.says.partition(":")[0] for finding in found.findings if finding.kind == f"{by}_unseen"] == [
            f"{by} {name}"
        ]


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, len(rows()) - 1), max_size=12))
def test_what_is_missing_in_the_ledger_is_named_to_the_token(
    tmp_path_factory: pytest.TempPathFactory, left_out: set[int]
) -> None:
    kept = [each for number, each in enumerate(rows()) if number not in left_out]
    gone = calls_of(rows()[number] for number in left_out)
    found = reconciled(tmp_path_factory.mktemp("bill"), kept, anthropic(calls_of(rows())))
    named = [finding for finding in certain(found) if finding.kind in NAMES_WHAT_IS_MISSING]
    assert certain(found) == named
    assert sum(finding.tokens for finding in named) == sum(sum(call.tokens) for call in gone)
    assert {day for finding in named for day in finding.days} == {call.day for call in gone}
    assert found.total.bill.tokens - found.total.ledger.tokens == sum(finding.tokens for finding in named)


@pytest.mark.parametrize("factor", ["0.85", "1.1", "0.5"])
def test_another_price_is_named_and_its_entry_fits(tmp_path: Path, factor: str) -> None:
    calls = [replace(call, amount=call.amount * Decimal(factor)) for call in calls_of(rows())]
    found = reconciled(tmp_path, rows(), anthropic(calls))
    assert {finding.kind for finding in certain(found)} == {"price"}
    entries = [tomllib.loads(finding.toml or "") for finding in certain(found)]
    prices = {name: Price(**price) for entry in entries for name, price in entry["prices"].items()}
    assert set(prices) == {each.key for each in found.lines}
    list_price = CATALOG.find("claude-opus-5-5")
    assert list_price is not None
    listed = list_price.row.steps[-1].rates.texts["input"]
    assert Decimal(prices["claude-opus-5-5"].input or 0) == Decimal(listed or 0) * Decimal(factor)
    again = reconciled(tmp_path, rows(), anthropic(calls), catalog=Catalog(prices))
    assert certain(again) == []


def test_a_model_without_a_price_gets_one_from_amounts_of_each_kind_of_tokens(tmp_path: Path) -> None:
    used = row(line("of-tomorrow", None, input=3_000_000, output=7_001), at=FIRST * A_DAY)
    amounts = (("input", "9.00", 3_000_000, 0), ("output", "0.105015", 0, 7_001))
    bucket = f'"start_time": {FIRST * 86400}, "end_time": {(FIRST + 1) * 86400}'
    usage = '{"input_tokens": 3000000, "output_tokens": 7001, "model": "of-tomorrow"}'
    costs = ", ".join(
        f'{{"amount": {{"value": {amount}, "currency": "usd"}}, "line_item": "of-tomorrow, {part}"}}'
        for part, amount, *_ in amounts
    )
    files = [
        File(name, f'{{"data": [{{{bucket}, "results": [{results}]}}], "has_more": false}}'.encode())
        for name, results in (("usage", usage), ("costs", costs))
    ]
    found = reconciled(tmp_path, [used], files, "openai")
    (price,) = [finding for finding in found.findings if finding.kind == "price"]
    assert price.toml == '[prices."of-tomorrow"]\ninput = "3"\noutput = "15"\n'
    assert "unpriced" in [finding.kind for finding in found.findings]


def test_a_price_that_differs_from_day_to_day_has_no_entry(tmp_path: Path) -> None:
    calls = [replace(call, amount=call.amount * (1 + call.day % 2)) for call in calls_of(rows())]
    found = reconciled(tmp_path, rows(), anthropic(calls))
    opus = next(finding for finding in certain(found) if finding.model == "claude-opus-5-5")
    assert (opus.kind, opus.toml) == ("price", None)
    assert "not one price for all days" in opus.says


def test_what_the_bill_rounds_is_no_other_price(tmp_path: Path) -> None:
    cent = Decimal("0.0001")
    calls = [replace(call, amount=call.amount.quantize(cent)) for call in calls_of(rows())]
    assert {finding.kind for finding in certain(reconciled(tmp_path, rows(), anthropic(calls)))} == {"rounding"}


def test_cache_writes_of_an_hour_are_told_with_what_they_cost_more(tmp_path: Path) -> None:
    used = row(priced_line(cached_write=1_000_000), at=FIRST * A_DAY)
    five, hour = calls_of([used]), calls_of([used], hour=True)
    (only,) = certain(reconciled(tmp_path, [used], anthropic(hour)))
    assert (only.kind, only.tokens) == ("cache_write", 1_000_000)
    assert only.costs == (Money.of(hour[0].amount - five[0].amount, "USD"),)
    assert 'cache_write = "1h"' in only.says


def test_agents_that_tell_the_cost_of_an_hour_themselves_leave_nothing_to_say_of_it(tmp_path: Path) -> None:
    (call,) = calls_of([row(priced_line(cached_write=1_000_000), at=FIRST * A_DAY)], hour=True)
    told = row(line("claude-sonnet-5", str(call.amount), cached_write=1_000_000), at=FIRST * A_DAY, cost_source="agent")
    assert certain(reconciled(tmp_path, [told], anthropic([call]))) == []


def test_a_turn_that_runs_over_midnight_is_no_omission(tmp_path: Path) -> None:
    late = row(priced_line(input=1000, output=10), at=(FIRST + 1) * A_DAY - 5 * MINUTE, took=6 * MINUTE)
    calls = [Call(FIRST, tokens=(600, 0, 0, 0, 5)), Call(FIRST + 1, tokens=(400, 0, 0, 0, 5))]
    (only,) = certain(reconciled(tmp_path, [late], anthropic(list(map(priced, calls)))))
    assert (only.kind, only.tokens) == ("midnight", 405)
    on_time = amended(late, id="other", ended_at=(FIRST + 1) * A_DAY - MINUTE)
    other = tmp_path / "other"
    other.mkdir()
    found = certain(reconciled(other, [on_time], anthropic(list(map(priced, calls)))))
    assert [finding.kind for finding in found] == ["day_unseen", "ledger_more"]


def test_the_same_tokens_under_other_counters_are_told(tmp_path: Path) -> None:
    used = row(priced_line(input=1000, output=10), at=FIRST * A_DAY)
    call = priced(Call(FIRST, tokens=(400, 600, 0, 0, 10)))
    found = reconciled(tmp_path, [used], anthropic([call]))
    assert [(finding.kind, finding.tokens) for finding in certain(found)] == [("told_apart", 600)]


@pytest.mark.parametrize("written_for", ["5m", "1h"])
def test_a_bill_that_does_not_tell_caches_is_priced_with_those_of_the_ledger(
    tmp_path: Path, written_for: CacheWrite
) -> None:
    catalog = Catalog(cache_write=written_for)
    (call,) = calls_of(
        [row(priced_line(input=400, cached_read=60_000, cached_write=14_000, output=10), at=FIRST * A_DAY)],
        hour=written_for == "1h",
    )
    used = row(
        line(call.model, f"{call.amount:f}", input=400, cached_read=60_000, cached_write=14_000, output=10),
        at=FIRST * A_DAY,
    )
    bill = f"date,model,prompt_tokens,output,cost\n{date_of(FIRST)},{call.model},74400,10,{call.amount}\n"
    found = reconciled(tmp_path, [used], [File("bill.csv", bill.encode())], "csv", catalog=catalog)
    assert [(finding.kind, finding.tokens) for finding in certain(found)] == [("told_apart", 74_000)]
    assert "the bill does not tell what was read from or written to a cache" in certain(found)[0].says
    assert found.difference is not None
    assert found.difference.parts == ()


def test_tokens_that_a_bill_has_no_amount_for_are_not_taken_for_free(tmp_path: Path) -> None:
    """As where the row of their costs is missing: a price of 0 would make all that is booked from then on wrong."""
    used = row(priced_line(input=1_000_000, output=7_001), at=FIRST * A_DAY)
    bucket = f'"start_time": {FIRST * 86400}, "end_time": {(FIRST + 1) * 86400}'
    usage = '{"input_tokens": 1000000, "output_tokens": 7001, "model": "gpt-5.5"}'
    costs = '{"amount": {"value": 9.000001, "currency": "usd"}, "line_item": "gpt-5.5, input"}'
    files = [
        File(name, f'{{"data": [{{{bucket}, "results": [{results}]}}], "has_more": false}}'.encode())
        for name, results in (("usage", usage), ("costs", costs))
    ]
    (price,) = [each for each in reconciled(tmp_path, [used], files, "openai").findings if each.kind == "price"]
    assert price.toml is None


def test_models_of_the_provider_that_only_the_ledger_has_are_named_and_not_counted_as_seen(tmp_path: Path) -> None:
    used = [row(priced_line(input=1000, output=10), at=FIRST * A_DAY) for _ in range(2)]
    other = row(line("claude-opus-5-5", input=5), at=FIRST * A_DAY)
    found = reconciled(tmp_path, [*used, other], anthropic(calls_of(used)))
    assert [(finding.kind, finding.model) for finding in certain(found)] == [("not_billed", "claude-opus-5-5")]
    assert found.total.ledger.tokens == found.total.bill.tokens


def test_another_currency_is_kept_and_not_compared(tmp_path: Path) -> None:
    used = row(priced_line(input=1000, output=10), at=FIRST * A_DAY)
    files = [File(file.name, file.content.replace(b'"USD"', b'"EUR"')) for file in anthropic(calls_of([used]))]
    found = reconciled(tmp_path, [used], files)
    assert [finding.kind for finding in certain(found)] == ["currency"]
    assert {cost.currency for cost in found.total.bill.costs} == {"EUR"}


def test_tokens_of_no_fixed_model_are_told_with_what_would_name_them(tmp_path: Path) -> None:
    used = [row(priced_line(input=1000, output=10), at=FIRST * A_DAY), row(line("default"), at=FIRST * A_DAY)]
    found = reconciled(tmp_path, used, anthropic(calls_of(used)))
    assert [(finding.kind, finding.tokens) for finding in found.findings] == [("unnamed", 110)]
    named = reconciled(tmp_path, [], anthropic(calls_of(used)), catalog=Catalog(aliases={"default": "claude-sonnet-5"}))
    assert [finding.kind for finding in certain(named)] == ["ledger_more"]


def test_days_of_which_the_bill_has_tokens_and_no_amounts_are_compared_by_tokens(tmp_path: Path) -> None:
    usage = [file for file in anthropic(calls_of(rows())) if file.name.startswith("usage")]
    found = reconciled(tmp_path, rows(), usage)
    assert (found.total.bill.costs, found.total.ledger.costs) == ((), ())
    assert found.total.bill.tokens == found.total.ledger.tokens


def test_uncertain_rows_are_counted_by_model(tmp_path: Path) -> None:
    used = row(priced_line(input=1000, output=10), at=FIRST * A_DAY, usage_source="partial")
    found = reconciled(tmp_path, [used], anthropic(calls_of([used])))
    assert [finding.kind for finding in found.findings] == ["at_least"]
    assert found.findings[0].says == "claude-sonnet-5: 1 of 1 row of the ledger are a lower bound of what was used"
    assert set(UNCERTAIN) >= {"at_least"}


def test_a_ledger_without_rows_is_told_and_no_model_is_blamed(tmp_path: Path) -> None:
    found = reconciled(tmp_path, [], anthropic(calls_of(rows())))
    assert [finding.kind for finding in found.findings] == ["ledger_empty"]


def test_a_bill_that_does_not_tell_users_apart_is_not_compared_by_them(tmp_path: Path) -> None:
    files = [File("bill.csv", b"date,model,input,output\n2026-11-01,m,5,6\n")]
    with pytest.raises(UsageError, match="--by user"):
        reconciled(tmp_path, rows(), files, "csv", by="user")
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    with pytest.raises(UsageError, match="at least one day"):
        reconcile(read("csv", [File("empty.csv", b"date,cost\n")], {}), ledger, CATALOG, "default", "day", {})
    ledger.close()


def test_a_bill_without_models_is_compared_as_a_whole(tmp_path: Path) -> None:
    used = [row(priced_line(input=1000, output=10), at=FIRST * A_DAY)]
    files = [File("bill.csv", b"date,input,output\n2026-11-01,1500,10\n")]
    found = reconciled(tmp_path, used, files, "csv", by="day")
    assert [(finding.kind, finding.tokens) for finding in certain(found)] == [("tokens_unseen", 500)]
    assert found.total.ledger.tokens == 1010


def priced_line(**usage: int) -> UsageLine:
    """Of a model with a known price, at that price."""
    line = UsageLine("claude-sonnet-5", Usage(**usage))
    (call,) = calls_of([row(line, at=FIRST * A_DAY)])
    return replace(line, cost=Money.of(call.amount, "USD"))


def test_the_month_has_all_its_days() -> None:
    """Else the tests above would prove less than they say."""
    assert {each.entry.started_at // A_DAY for each in rows()} == set(range(FIRST, FIRST + DAYS))
    assert isinstance(rows()[0], Row)


def test_what_a_plan_covered_is_left_out_and_said(tmp_path: Path) -> None:
    billed, covered = without(rows(), lambda each: each.origin.user == "bob")
    seated = [replace(each, origin=replace(each.origin, billing="plan")) for each in covered]
    found = reconciled(tmp_path, [*billed, *seated], anthropic(whole_month(calls_of(billed))))
    (only,) = certain(found)
    assert only.kind == "under_plan"
    assert only.tokens == sum(sum(call.tokens) for call in calls_of(covered))
    assert only.says.startswith("left out: ")
    assert found.total.bill.tokens == found.total.ledger.tokens > 0
