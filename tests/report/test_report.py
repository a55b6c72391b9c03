"""Reports over a real ledger: the sums by every key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import CostSource, SessionState, UsageSource
from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Ledger, Query, open_ledger
from acp_proxy.report import BY, query, report, spreadsheet
from acp_proxy.text import times
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.report.house import as_json, found, keys

HOUR = 60 * MINUTE
DAY = 24 * HOUR
BERLIN = times.zone("Europe/Berlin")


def test_agents_users_hosts_and_organisations_may_share_a_session_id(ledger: Ledger) -> None:
    origins = [
        ALICE,
        replace(ALICE, user="bob"),
        replace(ALICE, host="desk"),
        replace(ALICE, agent="goose"),
        replace(ALICE, organisation="acme"),
    ]
    sessions = found(ledger, "session", *(row(origin=origin) for origin in origins))
    assert len(set(keys(sessions))) == 5
    ledger.append([row(origin=origin) for origin in origins])
    assert set(keys(report(ledger, "session", Query(), times.UTC_ZONE))) == set(keys(sessions))


def test_a_turn_of_several_models_is_one_by_turn_and_is_split_by_model(ledger: Ledger) -> None:
    turn = row(line("opus", "0.5", input=10), line("haiku", "0.1", input=3))
    by_model = found(ledger, "model", turn)
    assert [(one.key, one.turns, one.usage.total, one.costs) for one in by_model.lines] == [
        ("opus", 1, 10, (Money.of("0.5", "USD"),)),
        ("haiku", 1, 3, (Money.of("0.1", "USD"),)),
    ]
    assert (by_model.total.turns, by_model.total.costs) == (1, (Money.of("0.6", "USD"),))


def test_turns_are_rows_of_kind_turn_and_all_else_is_of_all_kinds(ledger: Ledger) -> None:
    by_kind = found(ledger, "kind", row(), row(kind="side"), row(kind="autonomous"))
    assert {one.key: one.turns for one in by_kind.lines} == {"turn": 1, "side": 0, "autonomous": 0}
    assert (by_kind.total.turns, by_kind.total.usage.total) == (1, 330)


def test_what_has_no_name_has_a_key_and_a_filter_nevertheless(ledger: Ledger) -> None:
    rows = [row(line(None, None), origin=BOB), row(origin=replace(ALICE, project=None))]
    assert keys(found(ledger, "model", *rows)) == ["opus", "unknown"]
    assert set(keys(report(ledger, "team", Query(), times.UTC_ZONE))) == {"core", "none"}
    assert set(keys(report(ledger, "project", Query(), times.UTC_ZONE))) == {"infra", "none"}
    for name, value in (("model", "unknown"), ("team", "none")):
        assert keys(report(ledger, "user", query(None, None, [(name, value)]), times.UTC_ZONE)) == ["bob"]


def test_a_row_belongs_to_the_day_of_its_start_in_the_time_zone(ledger: Ledger) -> None:
    late = row(at=NOON + 11 * HOUR + 30 * MINUTE)  # 23:30 in UTC, ends on the next day in both
    assert keys(found(ledger, "day", late)) == ["2026-11-21"]
    assert keys(report(ledger, "day", Query(), BERLIN)) == ["2026-11-22"]
    assert keys(report(ledger, "week", Query(), BERLIN)) == ["2026-W47"]
    assert keys(report(ledger, "month", Query(), BERLIN)) == ["2026-11"]


def test_days_ascend_and_other_keys_descend_by_cost(ledger: Ledger) -> None:
    rows = [
        row(line("cheap", "1"), at=NOON + DAY),
        row(line("dear", "3"), at=NOON),
        row(line("mid", "2"), at=NOON - DAY),
    ]
    assert keys(found(ledger, "day", *rows)) == ["2026-11-20", "2026-11-21", "2026-11-22"]
    assert keys(report(ledger, "model", Query(), times.UTC_ZONE)) == ["dear", "mid", "cheap"]
    assert [one.costs[0].text for one in report(ledger, "turn", Query(), times.UTC_ZONE).lines] == ["3", "2", "1"]


def test_currencies_are_never_compared_and_an_unknown_cost_comes_last(ledger: Ledger) -> None:
    rows = [
        row(line("unpriced", None, input=10**6)),
        row(line("little", None, input=1)),
        row(line("credits", "900", "credits")),
        row(line("small", "1")),
        row(line("big", "2")),
    ]
    by_model = found(ledger, "model", *rows)
    assert keys(by_model) == ["big", "small", "credits", "unpriced", "little"]
    assert as_json(by_model)["total"]["cost"] == {"USD": "3", "credits": "900"}


@pytest.mark.parametrize("by", BY)
def test_the_currency_of_most_rows_decides_also_where_each_line_has_both(ledger: Ledger, by: str) -> None:
    small, large = (row(line(model, "9", "EUR"), session=model) for model in ("small", "large"))
    dollars = [
        row(line(model, cost), session=model) for model, cost in (("small", "1"), ("large", "2"), ("large", "2"))
    ]
    one = found(ledger, by, small, large, *dollars, where=query(None, None, [("organisation", "default")]))
    assert one.currencies == ("USD", "EUR")
    if by in ("model", "session"):
        assert [[cost.text for cost in each.costs] for each in one.lines] == [["9", "4"], ["9", "1"]]


def test_what_the_sums_miss_is_counted(ledger: Ledger) -> None:
    rows = [
        row(line(None, None), cost_source="unknown"),
        row(usage_source="partial"),
        row(usage_source="partial", cost_source="agent"),
        row(usage_source="estimated", cost_source="estimated"),
        row(line(None, None, input=0), usage_source="none", cost_source="unknown"),
        row(line("opus", None), kind="subagent", cost_source="parent"),
    ]
    total = as_json(found(ledger, "day", *rows))["total"]
    assert [total[name] for name in list(total)[3:]] == [1, 2, 1, 1]
    assert [one.cost_at_least for one in report(ledger, "day", Query(), times.UTC_ZONE).lines] == [3]
    by_turn = report(ledger, "turn", Query(), times.UTC_ZONE)
    assert sum(one.cost_at_least for one in by_turn.lines) == 3
    each = as_json(by_turn)["rows"]
    assert [sum(one[name] for one in each) for name in list(total)[3:]] == [1, 2, 1, 1]
    assert as_json(by_turn)["rows"][-1]["cost"] == {}


def test_a_model_that_is_called_as_what_has_no_name_is_one_with_it(ledger: Ledger) -> None:
    sources: list[tuple[UsageSource, CostSource]] = [
        ("partial", "unknown"),
        ("none", "unknown"),
        ("estimated", "estimated"),
        ("partial", "agent"),
    ]
    rows = [
        row(line(model, cost), usage_source=usage, cost_source=cost_source)
        for usage, cost_source in sources
        for model, cost in ((None, None), ("unknown", "0.5"))
    ]
    told = found(ledger, "model", *rows)
    assert [replace(one, key="total") for one in told.lines] == [told.total]


def test_filters_select_rows_and_a_model_only_its_part_of_a_turn(ledger: Ledger) -> None:
    state = SessionState(title="Die SPÄTE Übung")
    mine = row(line("opus", "0.5"), line("haiku", "0.1"), session="s2", state=state)
    others = [row(origin=BOB), row(at=NOON - DAY), row(at=NOON + DAY)]
    since = query(NOON, NOON + 1, [("user", "alice"), ("title", "späte übung"), ("model", "haiku")])
    found_ = found(ledger, "turn", mine, *others, where=since)
    assert keys(found_) == [mine.entry.id]
    assert [cost.text for cost in found_.total.costs] == ["0.1"]


def test_the_start_of_an_interval_is_in_it_and_the_end_is_not(ledger: Ledger) -> None:
    rows = [row(at=NOON - 1), row(at=NOON), row(at=NOON + HOUR)]
    assert keys(found(ledger, "turn", *rows, where=Query(NOON, NOON + HOUR))) == [rows[1].entry.id]


@pytest.mark.parametrize("by", BY)
def test_an_empty_ledger_has_an_empty_report(ledger: Ledger, by: str) -> None:
    empty = as_json(found(ledger, by))
    assert (empty["rows"], empty["total"]["turns"], empty["total"]["cost"]) == ([], 0, {})
    assert "".join(spreadsheet.as_csv(report(ledger, by, Query(), times.UTC_ZONE))).startswith(
        "key,turns,input,cached_read,"
    )


MADE = st.tuples(
    st.sampled_from(["opus", "haiku", None]),
    st.sampled_from([Money(1, "USD"), Money(10**9, "USD"), Money(7, "credits"), None]),
    st.sampled_from(["turn", "side"]),
    st.sampled_from([ALICE, BOB]),
    st.integers(0, 40 * 24),  # hours
)


@settings(max_examples=25)
@given(st.lists(MADE, max_size=12))
def test_every_key_adds_up_to_the_same_total(tmp_path_factory: pytest.TempPathFactory, made: list[Any]) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path_factory.mktemp('sums')}/ledger.db", journals=())
    ledger.append(
        [
            row(
                replace(line(model, None, input=1 + hours), cost=cost), kind=kind, origin=origin, at=NOON + hours * HOUR
            )
            for model, cost, kind, origin, hours in made
        ]
    )
    totals = set()
    for by in BY:
        one = report(ledger, by, Query(), BERLIN)
        for limit in (1, 5, 10_000):
            some = report(ledger, by, Query(), BERLIN, limit)
            lines = list(one.lines)[-limit:] if by in times.PERIODS else list(one.lines)[:limit]
            assert (list(some.lines), some.omitted, some.total) == (lines, len(one.lines) - len(lines), one.total)
        tokens = sum((line.usage for line in one.lines), Usage())
        costs = frozenset(summed(cost for line in one.lines for cost in line.costs))
        assert (tokens, costs) == (one.total.usage, frozenset(one.total.costs))
        totals.add((sum(line.turns for line in one.lines), tokens, costs))
    ledger.close()
    assert len(totals) == 1
