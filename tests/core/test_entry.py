"""What a row says of all its models together, and what it does not know."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import CostSource, Entry, UsageLine, UsageSource
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from harness.rows import row

USAGE_SOURCES: tuple[UsageSource, ...] = ("agent", "partial", "estimated", "none")
COST_SOURCES: tuple[CostSource, ...] = ("agent", "computed", "estimated", "parent", "unknown")

usages = st.builds(Usage, *[st.integers(0, 3)] * 5)
costs = st.none() | st.builds(Money, st.integers(-3, 3), st.sampled_from(["USD", "EUR"]))
lines = st.lists(
    st.builds(UsageLine, st.sampled_from(["opus", "haiku", None]), usages, costs), min_size=1, max_size=3
).map(tuple)


def entry(*of: UsageLine, cost_source: CostSource = "computed", usage_source: UsageSource = "agent") -> Entry:
    return replace(row().entry, lines=of, cost_source=cost_source, usage_source=usage_source)


@given(lines)
def test_a_row_used_and_cost_what_its_models_did(of: tuple[UsageLine, ...]) -> None:
    turn, spent = entry(*of), Counter[str]()
    for each in of:
        spent.update({each.cost.currency: each.cost.nano} if each.cost else {})
    assert turn.usage == Usage(*(sum(getattr(each.usage, name) for each in of) for name in Usage.__struct_fields__))
    assert {cost.currency: cost.nano for cost in turn.costs} == dict(spent)


PRICED, UNPRICED = UsageLine("opus", Usage(1), Money(1, "USD")), UsageLine("opus", Usage(1))


@given(lines, st.sampled_from(COST_SOURCES))
@example((PRICED, UNPRICED), "computed")
@example((PRICED, PRICED, UNPRICED), "computed")
def test_a_row_is_unpriced_where_a_model_has_tokens_and_no_cost(of: tuple[UsageLine, ...], source: CostSource) -> None:
    missing = any(each.cost is None and each.usage.total > 0 for each in of)
    assert entry(*of, cost_source=source).unpriced is (missing and source != "parent")


@pytest.mark.parametrize("cost_source", COST_SOURCES)
@pytest.mark.parametrize("usage_source", USAGE_SOURCES)
def test_what_may_be_missing_is_untold(cost_source: CostSource, usage_source: UsageSource) -> None:
    told = entry(PRICED, cost_source=cost_source, usage_source=usage_source)
    assert told.usage_untold is (usage_source in ("partial", "none"))
    assert told.cost_untold is (told.usage_untold and cost_source in ("computed", "estimated", "unknown"))
    assert told.cost_at_least is told.cost_untold
    missing = replace(told, lines=(UNPRICED,))
    assert missing.cost_at_least is (told.cost_untold or cost_source != "parent")


def test_the_model_of_a_row_did_most_of_the_work() -> None:
    small, large = UsageLine("haiku", Usage(1, output=2)), UsageLine("opus", Usage(0, output=4))
    assert entry(small, large).model == entry(large, small).model == "opus"
    assert entry(UsageLine(None, Usage())).model is None
