"""What holds of a bill in each provider's form: nothing lost, nothing twice, and no order of pages matters."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.bills import Bill, BillError, File, read
from acp_proxy.core.money import Money
from tests.bills.made import FORMS, Call, anthropic, litellm

DAY = 20_760  # 2026-11-03
CALLS = st.lists(
    st.builds(
        Call,
        day=st.integers(DAY, DAY + 40),
        model=st.sampled_from(["claude-sonnet-5", "gpt-5.6-sol", "of-tomorrow"]),
        user=st.just("alice"),
        key=st.sampled_from(["key-a", "key-b"]),
        tokens=st.tuples(*[st.integers(0, 10**9)] * 5),
        amount=st.integers(0, 10**12).map(lambda nano: Decimal(nano).scaleb(-9)),
    ),
    min_size=1,
    max_size=12,
)
FORM = st.sampled_from(sorted(FORMS))


def sums(bill: Bill) -> Counter[tuple[Any, ...]]:
    """Tokens by day and model, all writes to the cache together, and nano-dollars."""
    found: Counter[tuple[Any, ...]] = Counter()
    for line in bill.lines:
        used = line.usage
        written = used.cached_write + line.cached_write_1h
        for kind, count in enumerate((used.input, used.cached_read, written, used.output)):
            found[line.day, line.model, kind] += count
        found[line.day, line.model, "money"] += line.amount.nano if line.amount else 0
    return +found


def sums_of_calls(calls: list[Call]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for call in calls:
        uncached, read, write, write_1h, output = call.tokens
        for kind, count in enumerate((uncached, read, write + write_1h, output)):
            found[call.day, call.model, kind] += count
        found[call.day, call.model, "money"] += Money.of(call.amount, "USD").nano
    return +found


@settings(max_examples=40, deadline=None)
@given(CALLS, FORM)
def test_a_bill_has_what_was_called_to_the_token_and_the_nano_dollar(calls: list[Call], form: str) -> None:
    provider, made = FORMS[form]
    assert sums(read(provider, made(calls), {})) == sums_of_calls(calls)


@settings(max_examples=40, deadline=None)
@given(CALLS, FORM, st.randoms(use_true_random=False), st.integers(0, 20))
def test_pages_that_come_twice_and_in_any_order_give_the_same_bill(
    calls: list[Call], form: str, chance: random.Random, doubled: int
) -> None:
    provider, made = FORMS[form]
    files = made(calls)
    again = [File(f"copy-{number}", file.content) for number, file in enumerate(chance.choices(files, k=doubled))]
    shuffled = files + again
    chance.shuffle(shuffled)
    assert read(provider, shuffled, {}) == read(provider, files, {})


@settings(max_examples=40, deadline=None)
@given(CALLS, st.sampled_from(["anthropic", "analytics", "openai", "litellm"]), st.data())
def test_a_page_that_is_missing_after_another_is_told_in_one_line(
    calls: list[Call], form: str, data: st.DataObject
) -> None:
    provider, made = FORMS[form]
    files = made([*calls, *(Call(DAY + week * 7) for week in range(6))])
    after = [number for number in range(1, len(files)) if b'"has_more":true' in files[number - 1].content]
    missing = data.draw(st.sampled_from(after))
    with pytest.raises(BillError, match="missing") as told:
        read(provider, files[:missing] + files[missing + 1 :], {})
    assert "\n" not in str(told.value)
    assert str(told.value).startswith(tuple(file.name for number, file in enumerate(files) if number != missing))


def test_the_lines_of_a_bill_say_who_and_by_which_key() -> None:
    calls = [Call(DAY, user="alice", key="key-a"), Call(DAY, user="bob", key="key-b")]
    for provider, made in FORMS.values():
        found = {(line.user, line.key) for line in read(provider, made(calls), {}).lines if line.tokens}
        assert found == {("alice", "key-a"), ("bob", "key-b")}


@pytest.mark.parametrize("form", ["anthropic", "openai", "litellm", "csv"])
def test_two_files_that_tell_of_one_time_differently_are_an_error_that_names_both(form: str) -> None:
    provider, made = FORMS[form]
    one = made([Call(DAY)])[0]
    other = made([Call(DAY, model="another")])[0]
    files = [File("one.json", one.content), File("other.json", other.content)]
    for given_files in (files, files[::-1]):
        with pytest.raises(BillError, match=r"^one\.json .*other\.json .*2026-11-0"):
            read(provider, given_files, {})


def test_buckets_of_hours_are_added_up_and_must_not_stand_in_a_day_of_another_page() -> None:
    hours = [_bucket(f"2026-11-03T{hour:02}:00:00Z", f"2026-11-03T{hour + 1:02}:00:00Z") for hour in range(3)]
    bill = read("anthropic", [_page("hours.json", *hours)], {})
    assert [(line.day, line.tokens) for line in bill.lines] == [(DAY, 30)]
    whole = _page("day.json", _bucket("2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z"))
    with pytest.raises(BillError, match=r"hours\.json.*day\.json|day\.json.*hours\.json"):
        read("anthropic", [_page("hours.json", *hours), whole], {})


def test_a_bucket_that_is_no_day_of_utc_is_an_error() -> None:
    of_berlin = _page("berlin.json", _bucket("2026-11-02T23:00:00Z", "2026-11-03T23:00:00Z"))
    with pytest.raises(BillError, match=r"berlin\.json: expected buckets of one day of UTC or less"):
        read("anthropic", [of_berlin], {})


@pytest.mark.parametrize("provider", ["anthropic", "openai", "litellm", "csv"])
@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"error": "forbidden"}', b"\xff\xfe\x00", b"[" * 5000, b"a,b\n1,2\n", b"null"]
)
def test_what_is_no_bill_is_told_in_one_line_that_names_the_file(provider: Any, content: bytes) -> None:
    with pytest.raises(BillError, match=r"^page\.json: expected ") as told:
        read(provider, [File("page.json", content)], {})
    assert "\n" not in str(told.value)


def test_a_bill_of_another_provider_is_told_by_what_was_expected() -> None:
    usage = anthropic([Call(DAY)])[0]
    with pytest.raises(BillError, match=r"usage-1\.json: expected a page of OpenAI's"):
        read("openai", [usage], {})
    with pytest.raises(BillError, match=r"activity-1\.json: expected a page of Anthropic's"):
        read("anthropic", litellm([Call(DAY)]), {})


def test_an_amount_that_is_none_is_an_error() -> None:
    for amount in ("NaN", "Infinity", "1e30", "sNaN"):
        row = f'{{"amount": "{amount}", "currency": "USD", "model": "m"}}'
        page = _page("cost.json", _bucket("2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z", row))
        with pytest.raises(BillError, match=r"^cost\.json: expected .*(not an amount of money|an amount is no number)"):
            read("anthropic", [page], {})


@pytest.mark.parametrize("year", ["0001", "1968", "2262", "9999"])
def test_a_day_that_no_ledger_can_have_is_an_error(year: str) -> None:
    day = f"{year}-12-31"
    log = f'[{{"request_id": "r", "startTime": "{day}T23:59:59-10:00", "spend": 1}}]'
    activity = f'{{"results": [{{"date": "{day}", "metrics": {{}}}}]}}'
    bucket = f'{{"start_time": {10**18}, "end_time": {10**18}, "results": []}}'
    pages = [
        ("anthropic", _page("bill", _bucket(f"{day}T00:00:00Z", f"{day}T01:00:00Z")).content),
        ("litellm", log.encode()),
        ("litellm", activity.encode()),
        ("csv", f"date,cost\n{day},1\n".encode()),
        ("openai", f'{{"data": [{bucket}], "has_more": false}}'.encode()),
    ]
    for provider, content in pages:
        with pytest.raises(BillError, match=r"^bill: .*expected .* the years from 1970 to 2261"):
            read(provider, [File("bill", content)], {})  # type: ignore[arg-type]


def test_amounts_are_cents_and_other_currencies_are_kept() -> None:
    rows = ('{"amount": "123.45", "currency": "usd"}', '{"amount": "100", "currency": "doubloons"}')
    page = _page("cost.json", _bucket("2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z", ", ".join(rows)))
    found = {line.amount for line in read("anthropic", [page], {}).lines}
    assert found == {Money.of("1.2345", "USD"), Money.of("1", "doubloons")}


def test_a_float_is_read_by_its_digits() -> None:
    amount = '{"amount": {"value": 0.1000000000000000055, "currency": "usd"}, "line_item": "m, input"}'
    bucket = f'{{"start_time": {DAY * 86400}, "end_time": {DAY * 86400 + 3600}, "results": [{amount}, {amount}]}}'
    page = File("costs.json", f'{{"data": [{bucket}], "has_more": false}}'.encode())
    (line,) = read("openai", [page], {}).lines
    assert (line.amount, line.part, line.amounts) == (Money.of("0.2", "USD"), "input", 2)


@pytest.mark.parametrize(
    ("form", "known", "new"),
    [
        (
            "anthropic",
            b'"uncached_input_tokens":',
            b'"inference_geo":"mars","speed":{"tier":9},"uncached_input_tokens":',
        ),
        ("anthropic", b'"has_more":', b'"organisation":{"id":1},"has_more":'),
        ("openai", b'"input_tokens":', b'"input_video_tokens":0,"service_tier":["flex"],"input_tokens":'),
        ("litellm", b'"prompt_tokens":', b'"carbon_grams":0.5,"prompt_tokens":'),
    ],
    ids=["anthropic row", "anthropic page", "openai row", "litellm row"],
)
def test_a_field_that_is_new_changes_nothing_of_the_rest(form: str, known: bytes, new: bytes) -> None:
    provider, made = FORMS[form]
    files = made([Call(DAY), Call(DAY + 1, "a-model-of-tomorrow")])
    changed = [File(file.name, file.content.replace(known, new)) for file in files]
    assert changed != files
    assert read(provider, changed, {}) == read(provider, files, {})


def test_what_costs_money_beside_tokens_is_no_model() -> None:
    rows = '{"amount": "5", "cost_type": "web_search"}, {"amount": "7", "cost_type": "tokens", "model": "m"}'
    page = _page("cost.json", _bucket("2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z", rows))
    assert {(line.model, line.item) for line in read("anthropic", [page], {}).lines} == {
        (None, "web_search"),
        ("m", None),
    }


def test_requests_of_litellm_that_differ_under_one_id_are_an_error() -> None:
    def log(spend: str) -> bytes:
        return f'[{{"request_id": "r", "startTime": "2026-11-03 10:00:00", "spend": {spend}}}]'.encode()

    with pytest.raises(BillError, match="one and two have request r"):
        read("litellm", [File("one", log("0.1")), File("two", log("0.2"))], {})


def test_days_and_requests_of_litellm_are_not_added_up() -> None:
    log = File("logs", b'[{"request_id": "r", "startTime": "2026-11-03 10:00:00", "spend": 1}]')
    with pytest.raises(BillError, match=r"activity-1\.json has days and logs requests"):
        read("litellm", [log, *litellm([Call(DAY)])], {})


def test_columns_are_those_of_the_header_or_those_that_are_named() -> None:
    text = b'When,Modell,Preis,Rein,Raus\n2026-11-03T23:30:00-02:00,m,$1.50,"1,000",5\n'
    with pytest.raises(BillError, match=r"bill\.csv: expected a column of days"):
        read("csv", [File("bill.csv", text)], {})
    columns = {"day": "When", "model": "Modell", "amount": "Preis", "prompt": "Rein", "output": "raus"}
    (line,) = read("csv", [File("bill.csv", text)], columns).lines
    assert (line.day, line.model, line.tokens, line.amount) == (DAY + 1, "m", 1005, Money.of("1.5", "USD"))
    with pytest.raises(BillError, match="expected a column 'Nowhere'"):
        read("csv", [File("bill.csv", text)], {**columns, "user": "Nowhere"})


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("yesterday,5,1", "expected a date such as 2026-11-01, not 'yesterday'"),
        ("2026-11-03,5.5,1", "input: expected a number of tokens, not '5.5'"),
        ("2026-11-03,-5,1", "input: expected a number of tokens, not '-5'"),
        ("2026-11-03,5,much", "amount: expected a decimal number, not 'much'"),
        ("2026-11-03,5,nan", "not an amount of money"),
    ],
)
def test_a_cell_that_is_not_what_its_column_holds_is_told_with_its_row(row: str, told: str) -> None:
    with pytest.raises(BillError) as found:
        read("csv", [File("bill.csv", f"date,input,cost\n2026-11-01,1,1\n{row}\n".encode())], {})
    assert str(found.value).startswith("bill.csv: row 3: ")
    assert told in str(found.value)


def _bucket(start: str, end: str, rows: str = '{"uncached_input_tokens": 10, "model": "m"}') -> str:
    return f'{{"starting_at": "{start}", "ending_at": "{end}", "results": [{rows}]}}'


def _page(name: str, *buckets: str) -> File:
    return File(name, f'{{"data": [{", ".join(buckets)}], "has_more": false}}'.encode())
