"""What a ledger keeps for metrics, on a real database of each backend: it adds up, and can be made anew."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.core.money import NANO
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import NO_BOUND, TABLES, Tally
from harness.rows import ALICE, BOB, MINUTE, NOON, amended, line, row
from tests.ledger.conftest import AND_HUB, Open
from tests.ledger.steps import undone_since

ORGANISATION = ALICE.organisation


def tallies(ledger: BudgetLedger) -> dict[tuple[str, tuple[str | None, ...], int], tuple[int, int]]:
    found = ledger.tallied.tallies(ORGANISATION)
    return {(tally.family, tally.labels, tally.slot): (tally.number, tally.nano) for tally in found}


def wholes(ledger: BudgetLedger) -> list[tuple[Dimensions, Whole]]:
    found = ledger.tallied.wholes(ORGANISATION)
    series = ledger.tallied.series(ORGANISATION, [whole.series for whole in found])
    return sorted(((series[whole.series], whole) for whole in found), key=repr)


def fill(ledger: BudgetLedger) -> None:
    ledger.append(
        [
            row(line("opus", "0.02", input=9), line("haiku", "0.01"), context_used=76, context_size=100),
            row(line("opus", "120"), at=NOON + 100 * 24 * 60 * MINUTE),
            row(line("opus", "3", "credits"), origin=BOB, session="s2", context_used=5, context_size=0),
            row(line(None, None), origin=replace(BOB, client=None), session="s3", kind="side"),
        ]
    )


@AND_HUB
class TestTallies:
    def test_turns_fall_into_buckets_with_their_exact_sums(self, ledger: BudgetLedger) -> None:
        fill(ledger)
        agent = ALICE.agent
        assert tallies(ledger) == {
            ("turn_cost", (agent, "haiku", "USD"), 50_000_000): (1, 30_000_000),
            ("turn_cost", (agent, "opus", "USD"), NO_BOUND): (1, 120 * 10**9),
            ("turn_cost", (agent, "opus", "credits"), 5 * 10**9): (1, 3 * 10**9),
            ("turn_duration_seconds", (agent,), 60 * 10**9): (3, 3 * MINUTE),
            ("context_used_ratio", (agent, "haiku"), 900_000_000): (1, 760_000_000),
            ("sessions", (agent, "zed"), 0): (2, 0),
            ("sessions", (agent, None), 0): (1, 0),
        }

    def test_a_row_that_comes_again_counts_once(self, ledger: BudgetLedger, another: Open) -> None:
        ledger.append([row(id="a")])
        before = tallies(ledger)
        another().append([row(id="a")])
        assert tallies(ledger) == before

    def test_what_processes_add_to_shards_of_their_own_is_one_figure(self, ledger: SqlLedger, another: Open) -> None:
        for shard in (0, 7, 7, 12):
            ledger._shard = shard
            ledger.append([row(line(cost="0.6"))])
            ledger.tallied.count_relayed(ORGANISATION, f"p{row().entry.id}", 1, [Tally("relay", ("x",), 0, 2, 5)], NOON)
        found = tallies(another())
        assert found["turn_cost", (ALICE.agent, "opus", "USD"), 10**9] == (4, 2_400_000_000)
        assert found["relay", ("x",), 0] == (8, 20)
        ledger.rebuild()
        assert tallies(ledger) == found

    def test_a_late_row_begins_no_session_anew(self, ledger: BudgetLedger) -> None:
        ledger.append([row(at=NOON)])
        ledger.append([row(at=NOON - MINUTE)])
        ledger.append([row(at=NOON + MINUTE)])
        assert tallies(ledger)["sessions", (ALICE.agent, "zed"), 0] == (1, 0)

    def test_made_anew_they_are_the_same(self, ledger: BudgetLedger) -> None:
        fill(ledger)
        ledger.tallied.count_relayed(ORGANISATION, "p", 1, [Tally("relay_bytes", ("agent_to_client",), 0, 7, 0)], NOON)
        before = tallies(ledger), wholes(ledger)
        ledger.rebuild()
        assert (tallies(ledger), wholes(ledger)) == before

    def test_times_and_contexts_that_make_no_sense_are_bounded(self, ledger: BudgetLedger) -> None:
        odd = row(context_used=2**53, context_size=1)
        ledger.append([amended(odd, started_at=2**63 - 1, ended_at=-(2**63))])
        found = tallies(ledger)
        assert found["turn_duration_seconds", (ALICE.agent,), 10**9] == (1, 0)
        assert found["context_used_ratio", (ALICE.agent, "opus"), NO_BOUND] == (1, 1000 * 10**9)

    def test_a_name_of_ten_thousand_characters_is_kept_as_other(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line("".join(map(chr, range(5000, 15_000)))))])
        assert ("turn_cost", (ALICE.agent, "other", "USD"), 10_000_000) in tallies(ledger)


@AND_HUB
class TestWholes:
    def test_they_add_up_to_what_rows_add_up_to(self, ledger: BudgetLedger) -> None:
        fill(ledger)
        found = wholes(ledger)
        costs: Counter[str | None] = Counter()
        for series, whole in found:
            costs[series.currency] += whole.units * NANO + whole.nano
        (sums,) = ledger.summed(Query(), ())
        assert {cost.currency: cost.nano for cost in sums.costs} == {name: costs[name] for name in ("USD", "credits")}
        assert sum(sum(whole[2:7]) for _, whole in found) == sums.usage.total
        assert sum(whole.rows for _, whole in found) == sums.rows
        side = [series for series, _ in found if series.kind == "side"]
        assert [(each.agent, each.model, each.user, each.project) for each in side] == [
            (BOB.agent, None, "bob", "infra")
        ]

    def test_a_series_that_is_not_there_is_left_out(self, ledger: BudgetLedger) -> None:
        fill(ledger)
        names = [whole.series for _, whole in wholes(ledger)]
        found = ledger.tallied.series(ORGANISATION, [*names, *(f"none-{number}" for number in range(300))])
        assert set(found) == set(names)
        assert ledger.tallied.series("elsewhere", names) == {}

    def test_a_sum_without_bounds_is_read_from_them(self, ledger: BudgetLedger) -> None:
        fill(ledger)
        (everything,) = ledger.summed(Query(), ())
        (bounded,) = ledger.summed(Query(since=NOON - MINUTE, until=NOON + 200 * 24 * 60 * MINUTE), ())
        assert everything == bounded


@AND_HUB
class TestLabels:
    def values(self, ledger: BudgetLedger, dimension: str) -> list[str]:
        return [label.value for label in ledger.tallied.labels(ORGANISATION) if label.dimension == dimension]

    def test_values_keep_the_order_in_which_they_came(self, ledger: BudgetLedger, another: Open) -> None:
        ledger.append([row(line("zeta"))])
        another().append([row(line("alpha"), at=NOON - MINUTE), row(line("zeta"))])
        ledger.append([row(line("mid"))])
        assert self.values(ledger, "model") == ["zeta", "alpha", "mid"]
        ledger.rebuild()
        assert self.values(ledger, "model") == ["zeta", "alpha", "mid"]

    def test_positions_leave_nothing_out_however_often_a_value_comes(self, ledger: BudgetLedger, another: Open) -> None:
        for model in ("zeta", "alpha", "mid"):
            another().append([row(line(model)), row(line(model), origin=BOB)])
        ledger.append([row(line("zeta"), origin=replace(BOB, agent="codex"))])
        found = ledger.tallied.labels(ORGANISATION)
        for dimension, count in (("model", 3), ("agent", 2), ("user", 2)):
            assert [label.position for label in found if label.dimension == dimension] == [*range(1, count + 1)]

    def test_what_has_no_value_is_none_of_them(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line(None), origin=replace(BOB, client=None))])
        assert self.values(ledger, "model") == self.values(ledger, "team") == self.values(ledger, "client") == []

    def test_one_that_is_too_long_has_no_position(self, ledger: BudgetLedger) -> None:
        ledger.append([row(line("x" * 200), line("x" * 201), line("y" * 10_000))])
        labels = [label for label in ledger.tallied.labels(ORGANISATION) if label.dimension == "model"]
        assert [label.position for label in labels] == [0, 0, 1]
        assert labels[2].value == "x" * 200
        assert all(len(label.value) <= 200 for label in labels)

    def test_what_is_expected_is_known_before_its_first_row(self, ledger: BudgetLedger) -> None:
        ledger.tallied.expect(ORGANISATION, "codex-acp", None, "gpt-9")
        assert self.values(ledger, "model") == ["gpt-9"]
        assert tallies(ledger) == {("expected", ("codex-acp", None, "gpt-9"), 0): (0, 0)}

    def test_what_is_expected_is_known_whatever_came_or_was_expected_before(self, ledger: BudgetLedger) -> None:
        ledger.append([row()])
        ledger.tallied.expect("elsewhere", "codex-acp", None, "gpt-9")
        ledger.tallied.expect(ORGANISATION, "codex-acp", None, "gpt-9")
        assert self.values(ledger, "model") == ["opus", "gpt-9"]


@AND_HUB
class TestActiveSessions:
    def test_those_with_a_row_that_ended_since_count(self, ledger: BudgetLedger) -> None:
        ledger.append([row(), row(session="s2", at=NOON - 10 * MINUTE), row(origin=replace(BOB, agent="codex"))])
        for since in (NOON, NOON + MINUTE):
            assert ledger.tallied.active_sessions(ORGANISATION, since) == {ALICE.agent: 1, "codex": 1}
        assert ledger.tallied.active_sessions(ORGANISATION, NOON + MINUTE + 1) == {}


def test_a_ledger_from_before_them_gets_them_from_its_rows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = open_ledger(url, journals=())
    fill(ledger)
    expected = tallies(ledger), wholes(ledger)
    labels = ledger.tallied.labels(ORGANISATION)
    ledger.close()
    _take_back(tmp_path / "ledger.db", MIGRATIONS.index(TABLES))
    again = open_ledger(url, journals=())
    assert (tallies(again), wholes(again)) == expected
    assert {label[:2] for label in again.tallied.labels(ORGANISATION)} == {label[:2] for label in labels}
    again.append([row(at=NOON + MINUTE)])
    assert tallies(again)["sessions", (ALICE.agent, "zed"), 0] == (2, 0)
    again.close()


def _take_back(path: Path, version: int) -> None:
    """What the steps after `version` made, as far as rows are concerned."""
    assert len(MIGRATIONS) == version + 18, "steps after it must be taken back, too"
    with closing(sqlite3.connect(path)) as connection:
        for statement in undone_since(version):
            connection.execute(statement)
        connection.execute("DROP INDEX session_by_end")
        connection.execute("DELETE FROM total WHERE level = 3")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
