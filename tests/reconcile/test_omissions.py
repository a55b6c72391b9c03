"""A month of recorded sessions, of which a ledger lacks models, days or a user, and a bill with more on it: whatever is
missing is found and named, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.windows import DAY as A_DAY
from acp_proxy.ledger import Row
from acp_proxy.reconcile import Finding, Reconciliation
from harness.rows import amended
from tests.bills.made import Call, anthropic
from tests.reconcile.month import CATALOG, DAYS, FIRST, calls_of, priced, reconciled, rows, whole_month

ELSEWHERE = "claude-sonnet-5"  # of another product: no recording has it
SURE = {"ledger_empty", "before_ledger", "day_unseen", "model_unseen", "tokens_unseen", "cache_write", "user_unseen"}
UNSURE = {"estimated", "at_least", "unpriced", "unnamed"}  # what is said of rows as they were recorded
Named = tuple[str, str | None, frozenset[int], int]  # kind, model, days, tokens


def at_list_price(row: Row) -> Row:
    """So that what agents told of costs is no difference."""
    lines = tuple(_listed(row, line) for line in row.entry.lines)
    return amended(row, lines=lines)


def _listed(row: Row, line: UsageLine) -> UsageLine:
    if not line.model or CATALOG.lab(line.model) != "anthropic":
        return line
    used = line.usage
    tokens = (used.input, used.cached_read, used.cached_write, 0, used.completion)
    return replace(
        line, cost=Money.of(priced(Call(row.entry.started_at // A_DAY, line.model, tokens=tokens)).amount, "USD")
    )


ROWS = tuple(map(at_list_price, rows()))
MODELS = sorted({call.model for call in calls_of(ROWS)})
USERS = sorted({row.origin.user for row in ROWS})


def day_of(row: Row) -> int:
    return row.entry.started_at // A_DAY


def models_of(row: Row) -> set[str]:
    return {line.model for line in row.entry.lines if line.model}


def billed_for(hour: Collection[str], others: Sequence[tuple[int, int]]) -> list[Call]:
    """All that was recorded, some models with cache writes of an hour, and calls of another product."""
    five = [call for call in calls_of(ROWS) if call.model not in hour]
    long = [call for call in calls_of(ROWS, hour=True) if call.model in hour]
    more = [priced(Call(FIRST + day, ELSEWHERE, "carol", "key-carol", (tokens, 0, 0, 0, 7))) for day, tokens in others]
    return whole_month([*five, *long, *more])


def expected(kept: Sequence[Row], calls: Sequence[Call]) -> set[Named]:
    """What there is to find, by what was left out alone."""
    billed: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for call in calls:
        if sum(call.tokens):
            billed[call.model][call.day] += sum(call.tokens)
    seen: dict[str, dict[int, int]] = defaultdict(dict)
    for row in kept:
        for line in row.entry.lines:
            if line.model:
                seen[line.model][day_of(row)] = seen[line.model].get(day_of(row), 0) + line.usage.total
    ran = {day_of(row) for row in kept}
    silent = {day for days in billed.values() for day in days} - ran
    found: set[Named] = set()
    for kind, days in (
        ("before_ledger", {day for day in silent if day < min(ran)}),
        ("day_unseen", {day for day in silent if day > min(ran)}),
    ):
        if days:
            found.add((kind, None, frozenset(days), sum(of.get(day, 0) for of in billed.values() for day in days)))
    for model, of in billed.items():
        rest = {day: tokens for day, tokens in of.items() if day not in silent}
        less = {day: tokens - seen[model].get(day, 0) for day, tokens in rest.items()}
        less = {day: tokens for day, tokens in less.items() if tokens}
        if less:
            found.add(("tokens_unseen" if seen[model] else "model_unseen", model, frozenset(less), sum(less.values())))
    for model in billed:
        hours = sum(call.tokens[3] for call in calls if call.model == model and call.day in seen[model])
        if hours:
            found.add(("cache_write", model, frozenset(), hours))
    return found


def named(found: Reconciliation) -> set[Named]:
    return {_named(each) for each in found.findings if each.kind not in UNSURE}


def _named(of: Finding) -> Named:
    return (of.kind, of.model, frozenset() if of.kind == "cache_write" else frozenset(of.days), of.tokens)


@settings(max_examples=60, deadline=None)
@given(
    models=st.sets(st.sampled_from(MODELS), max_size=3),
    days=st.sets(st.integers(0, DAYS - 1), max_size=4),
    user=st.sampled_from([None, *USERS]),
    hour=st.sets(st.sampled_from(MODELS), max_size=2),
    others=st.lists(st.tuples(st.integers(0, DAYS - 1), st.integers(1, 10**7)), max_size=4),
)
def test_every_omission_is_named_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    models: set[str],
    days: set[int],
    user: str | None,
    hour: set[str],
    others: list[tuple[int, int]],
) -> None:
    kept = [
        row
        for row in ROWS
        if not models & models_of(row) and day_of(row) - FIRST not in days and row.origin.user != user
    ]
    assume(kept)
    calls = billed_for(hour, others)
    found = reconciled(tmp_path_factory.mktemp("bill"), kept, anthropic(calls))
    assert named(found) == expected(kept, calls)
    missing = sum(each.tokens for each in found.findings if each.kind in SURE - {"cache_write"})
    assert missing == found.total.bill.tokens - found.total.ledger.tokens


@settings(max_examples=20, deadline=None)
@given(gone=st.sets(st.sampled_from(USERS)), others=st.integers(0, 3))
def test_who_is_missing_is_named_and_nobody_else(
    tmp_path_factory: pytest.TempPathFactory, gone: set[str], others: int
) -> None:
    kept = [row for row in ROWS if row.origin.user not in gone]
    calls = billed_for((), [(day, 1000) for day in range(others)])
    found = reconciled(tmp_path_factory.mktemp("bill"), kept, anthropic(calls), by="user")
    unseen = {each.says.partition(":")[0] for each in found.findings if each.kind == "user_unseen"}
    assert unseen == {f"user {user}" for user in (*gone, *(["carol"] if others else []))}
