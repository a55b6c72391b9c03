"""What every ledger does, on a real database of each backend."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from msgspec.structs import replace

from acp_proxy.core.acp import count
from acp_proxy.core.entry import SessionState, UsageLine
from acp_proxy.core.events import Counters
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Ledger, LedgerError, Query, Row, RowRefusedError, Sums
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.reading.rows import CHUNK
from harness.rows import ALICE, BOB, MINUTE, NOON, amended, line, row
from tests.ledger.conftest import AND_HUB, Open
from tests.ledger.strategies import any_row

DOLLARS = Money.of("1.5", "USD")
DAY = 24 * 60 * MINUTE


def rows(ledger: Ledger, **where: str | None) -> list[Row]:
    return list(ledger.rows(Query(where=tuple(where.items()))))


def summed(ledger: Ledger, *by: str, **where: str | None) -> dict[tuple[str | int | None, ...], Sums]:
    return {sums.key: sums for sums in ledger.summed(Query(where=tuple(where.items())), by)}


def test_rows_may_be_appended_while_others_are_read(ledger: Ledger, another: Open) -> None:
    ledger.append([row(at=NOON + number) for number in range(CHUNK + 100)])
    reading = ledger.rows(Query())
    next(reading)
    another().append([row(at=NOON + 10_000, id="late")])
    assert [found.entry.id for found in reading][-1] == "late"


def test_a_row_that_another_process_wrote_with_other_figures_costs_no_later_row_its_sums(
    ledger: Ledger, another: Open
) -> None:
    """As when one books a killed turn at what it held while another finds its figures in a journal."""
    another().append([row(line("opus", "1"), id="killed")])
    estimated = row(line(None, "2"), id="killed")
    assert ledger.append([estimated]) == 0
    ledger.append([amended(estimated, id="the next that is killed")])
    assert {key: sums.costs for key, sums in summed(ledger, "model").items()} == {
        ("opus",): (Money.of("1", "USD"),),
        (None,): (Money.of("2", "USD"),),
    }


@AND_HUB
class TestRows:
    def test_a_row_comes_back_as_it_was_given_but_for_its_state(self, ledger: Ledger) -> None:
        given_row = row(
            line("opus", "0.5", input=1, cached_read=2, cached_write=3, output=4, thought=5),
            line(None, None, output=1),
            line("free", "3", "credits"),
            detail="why",
            message_id="m1",
            context_used=10,
            context_size=200_000,
            state=SessionState(title="A title"),
        )
        ledger.append([given_row])
        assert rows(ledger) == [replace(given_row, state=None)]

    # Examples share the ledger: an id that came before is another example's row.
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(any_row)
    @example(amended(row(line(None, None)), ended_at=-(2**63) + 1))  # whose day began before all that a column holds
    @example(amended(row(line(None, None)), ended_at=2**63 - 1))
    def test_any_row_comes_back(self, ledger: Ledger, given_row: Row) -> None:
        number = len(rows(ledger))
        unique = amended(given_row, id=f"{number}")
        ledger.append([unique])
        assert replace(unique, state=None) in rows(ledger)

    def test_a_row_without_lines_is_kept_with_no_usage(self, ledger: Ledger) -> None:
        ledger.append([amended(row(), lines=())])
        assert [found.entry.usage for found in rows(ledger)] == [Usage()]
        for by in ("user", "host"):  # from totals, and from rows
            assert [sums.turns for sums in ledger.summed(Query(), (by,))] == [1]

    def test_names_as_long_as_they_are_let_in_are_kept(self, ledger: Ledger) -> None:
        """No index of PostgreSQL takes much more."""
        name = "".join(chr(0x20000 + number * 7919 % 40_000) for number in range(200))
        origin = replace(ALICE, user=name, team=name, project=name, agent=name, agent_version=name, client=name)
        given_row = row(line(name + name[:100], currency=name), origin=origin, message_id=name)
        ledger.append([given_row])
        assert rows(ledger) == [given_row]
        assert [sums.rows for sums in ledger.summed(Query(), ("user", "team", "project", "agent"))] == [1]

    def test_another_opener_sees_the_rows(self, ledger: Ledger, another: Open) -> None:
        ledger.append([row(id="a")])
        assert [found.entry.id for found in rows(another())] == ["a"]

    def test_a_row_whose_id_is_there_is_skipped_and_the_others_are_kept(self, ledger: Ledger) -> None:
        ledger.append([row(id="a")])
        ledger.append([row(line("other", "9"), id="a"), row(id="b")])
        ledger.append([row(id="b")])
        assert [(found.entry.id, found.entry.model) for found in rows(ledger)] == [("a", "opus"), ("b", "opus")]

    def test_a_row_that_is_skipped_leaves_its_session_alone(self, ledger: Ledger) -> None:
        ledger.append([row(id="a", state=SessionState(title="first"))])
        ledger.append([row(id="a", at=NOON + MINUTE, state=SessionState(title="second"))])
        assert [session.title for session in ledger.sessions(Query())] == ["first"]

    def test_two_organisations_may_have_the_same_id(self, ledger: Ledger) -> None:
        ledger.append([row(id="a"), row(id="a", origin=replace(ALICE, organisation="other"))])
        assert len(rows(ledger)) == 2

    def test_rows_come_by_start_then_id_over_all_organisations(self, ledger: Ledger) -> None:
        other = replace(ALICE, organisation="another")
        ledger.append([row(id="c", at=NOON), row(id="b", at=NOON, origin=other), row(id="a", at=NOON + 1)])
        ledger.append([row(id="d", at=NOON - 1, origin=other)])
        assert [found.entry.id for found in rows(ledger)] == ["d", "b", "c", "a"]

    def test_more_rows_than_a_chunk_come_once_each(self, ledger: Ledger) -> None:
        # Many start at once, so that the end of a chunk falls between them.
        given_rows = [row(line(), line("haiku"), at=NOON + number // 700, id=f"{number:05}") for number in range(2600)]
        ledger.append(given_rows)
        assert rows(ledger) == given_rows
        session = (("session", given_rows[0].entry.session),)
        assert list(ledger.rows(Query(where=session))) == given_rows

    def test_the_costliest_come_first_out_of_more_rows_than_a_chunk(self, ledger: Ledger) -> None:
        other = replace(ALICE, organisation="another")
        unknown = [row(line(cost=None), at=NOON + 3 * MINUTE), row(line(cost=None, input=9999), at=NOON)]
        foreign = [row(line(cost="2", currency="EUR"), at=NOON), row(line(cost="3", currency="EUR"), origin=other)]
        costly = row(line(cost="0.7"), line("haiku", "0.8"), line("haiku", "9", "EUR"), at=NOON + MINUTE)
        alike = [row(line(cost="1"), at=NOON + number // 700, id=f"{number:05}") for number in range(4100)]
        ledger.append([*unknown, *foreign, costly, *alike])

        def ids(most: int, query: Query | None = None, currencies: tuple[str, ...] = ("USD", "EUR")) -> list[str]:
            return [found.entry.id for found in ledger.costliest(query or Query(), currencies, most)]

        first = [costly.entry.id, *(each.entry.id for each in alike)]
        last = [each.entry.id for each in (foreign[1], foreign[0], unknown[1], unknown[0])]
        assert ledger.costliest(Query(), ("USD", "EUR"), 1) == [costly]
        assert ids(2100) == first[:2100]
        assert ids(9999) == [*first, *last]
        assert ids(2, currencies=()) == [last[2], costly.entry.id]
        assert ids(3, Query(NOON + MINUTE)) == [first[0], last[3]]
        assert ids(3, Query(NOON + 1, NOON + 3)) == first[701:704]
        assert ids(3, Query(where=(("organisation", "another"), ("user", "alice")))) == [last[0]]
        (part,) = ledger.costliest(Query(where=(("model", "haiku"),)), ("EUR",), 5)
        assert part.entry.lines == costly.entry.lines[1:]

    def test_one_row_that_cannot_be_kept_keeps_all_of_its_call_out(self, ledger: Ledger) -> None:
        for bad in (row(line(input=2**63)), row(line("\ud800"))):
            with pytest.raises(RowRefusedError, match="does not fit"):
                ledger.append([row(), bad])
        assert rows(ledger) == []


@AND_HUB
class TestQueries:
    def test_the_interval_of_starts_is_half_open(self, ledger: Ledger) -> None:
        ledger.append([row(id=str(number), at=NOON + number) for number in range(4)])
        assert [found.entry.id for found in ledger.rows(Query(NOON + 1, NOON + 3))] == ["1", "2"]

    def test_a_dimension_is_compared_for_equality(self, ledger: Ledger) -> None:
        other = replace(ALICE, **{**dict.fromkeys(ALICE.__struct_fields__, "else"), "billing": "plan"})
        wanted = row(id="a")
        ledger.append([wanted, row(line("else"), origin=other, session="else", kind="side")])
        for dimension, value in (
            ("organisation", "default"),
            ("user", "alice"),
            ("team", "core"),
            ("project", "web"),
            ("host", "laptop"),
            ("agent", "claude-agent-acp"),
            ("agent_version", "0.100.0"),
            ("client", "zed"),
            ("session", "s1"),
            ("kind", "turn"),
            ("model", "opus"),
        ):
            assert rows(ledger, **{dimension: value}) == [wanted], dimension
            assert rows(ledger, **{dimension: value[:-1]}) == [], dimension
            assert [sums.rows for sums in summed(ledger, **{dimension: value}).values()] == [1], dimension
            found = list(ledger.sessions(Query(where=((dimension, value),))))
            assert [each.session for each in found] == ["s1"], dimension

    def test_all_dimensions_of_a_query_must_match(self, ledger: Ledger) -> None:
        ledger.append([row(id="a"), row(id="b", origin=BOB)])
        assert [found.entry.id for found in rows(ledger, agent="claude-agent-acp", user="bob")] == ["b"]
        assert rows(ledger, project="web", user="bob") == []

    @pytest.mark.parametrize("dimension", ["team", "client", "agent_version", "model", "title"])
    def test_none_matches_what_has_no_value(self, ledger: Ledger, dimension: str) -> None:
        empty = replace(ALICE, team=None, client=None, agent_version=None)
        ledger.append([row(id="a", session="s2", state=SessionState(title="x")), row(line(None), id="b", origin=empty)])
        assert [found.entry.id for found in rows(ledger, **{dimension: None})] == ["b"]

    def test_a_part_of_the_title_is_enough_in_any_case(self, ledger: Ledger) -> None:
        ledger.append([row(id="a", state=SessionState(title="Größe der 100%-Ansicht")), row(id="b", session="s2")])
        for part in ("GRÖSSE", "100%", "ansicht"):
            assert [found.entry.id for found in rows(ledger, title=part)] == ["a"]
        assert rows(ledger, title="1%") == []

    def test_by_model_only_the_lines_of_that_model_are_read(self, ledger: Ledger) -> None:
        ledger.append([row(line("opus", "1"), line("haiku", "0.1", input=7)), row(line("opus"))])
        assert [found.entry.lines for found in rows(ledger, model="haiku")] == [(line("haiku", "0.1", input=7),)]
        assert summed(ledger, model="haiku")[()].usage == Usage(input=7)

    def test_an_unknown_dimension_is_a_mistake_of_the_caller(self, ledger: Ledger) -> None:
        with pytest.raises((ValueError, LedgerError), match="'colour'"):  # a hub answers in one line
            rows(ledger, colour="red")


@AND_HUB
class TestSums:
    def test_no_rows_make_no_group(self, ledger: Ledger) -> None:
        assert ledger.summed(Query(), ()) == []

    def test_everything_adds_up_to_one_group(self, ledger: Ledger) -> None:
        ledger.append(
            [
                row(line("opus", "0.5", input=1, output=2), line("haiku", "0.25", cached_read=3)),
                row(line("opus", "2", "credits", thought=4), kind="side", at=NOON + MINUTE, usage_source="partial"),
                row(line("x", None, cached_write=5), origin=replace(BOB, organisation="b"), usage_source="estimated"),
                row(line("x", None, input=0), usage_source="none", cost_source="unknown"),
            ]
        )
        assert ledger.summed(Query(), ()) == [
            Sums(
                key=(),
                rows=4,
                turns=3,
                usage=Usage(1, 3, 5, 2, 4),
                costs=(Money.of("0.75", "USD"), Money.of("2", "credits")),
                unpriced=1,
                partial=1,
                estimated=1,
                without_usage=1,
                cost_at_least=3,
                started_at=NOON,
                ended_at=NOON + 2 * MINUTE,
            )
        ]

    def test_a_sum_begins_with_the_first_of_its_rows_and_ends_with_the_last_whichever_came_late(
        self, ledger: BudgetLedger
    ) -> None:
        long = row(at=NOON + MINUTE, took=8 * MINUTE)
        for late in (long, row(at=NOON + 2 * MINUTE), row(at=NOON)):
            ledger.append([late])
        for _ in range(2):
            for by in ("user", "host", "day", "day+4"):  # from totals, and from rows
                (sums,) = summed(ledger, by).values()
                assert sums.ended_at == NOON + 9 * MINUTE
                assert sums.started_at == NOON
            ledger.rebuild()

    def test_sums_of_the_largest_counts_that_are_believed_fit(self, ledger: Ledger) -> None:
        most = next(number for number in (2**53, 10**12) if count(number) and not count(number + 1))
        lines = [line(f"m{number}", None, input=most, output=most) for number in range(2000)]
        ledger.append([row(*lines[:1000]), row(*lines[1000:], id="b")])
        assert summed(ledger)[()].usage == Usage(input=2000 * most, output=2000 * most)
        assert summed(ledger, "day")[NOON // DAY,].usage.total == 4000 * most

    def test_the_sums_of_each_group_are_those_of_its_rows(self, ledger: Ledger) -> None:
        def some(n: int) -> UsageLine:
            model = "opus" if n % 3 else "haiku"
            return line(model, f"0.{n}", input=n, cached_read=n, cached_write=n, output=n, thought=n)

        given_rows = [
            row(some(number), origin=replace(ALICE if number % 2 else BOB, agent="ab"[number // 15]))
            for number in range(1, 30)
        ]
        ledger.append(given_rows)
        groups = summed(ledger, "user", "model"), summed(ledger, "user", "model", "host")  # from totals, and from rows
        for key, sums in (group for found in groups for group in found.items()):
            mine = [one for one in given_rows if (one.origin.user, one.entry.model) == key[:2]]
            assert sums.rows == sums.turns == len(mine)
            assert sums.usage == sum((one.entry.usage for one in mine), Usage())
            assert sums.costs == (Money(sum(one.entry.costs[0].nano for one in mine), "USD"),)

    def test_a_turn_counts_once_and_by_model_once_for_each(self, ledger: Ledger) -> None:
        ledger.append([row(line("opus"), line("haiku", None)), row(line("opus"))])
        assert {key: (sums.turns, sums.unpriced) for key, sums in summed(ledger, "user").items()} == {
            ("alice",): (2, 1)
        }
        by_model = {key: (sums.turns, sums.unpriced) for key, sums in summed(ledger, "model").items()}
        assert by_model == {("opus",): (2, 0), ("haiku",): (1, 1)}

    def test_a_turn_that_costs_two_currencies_is_one_of_its_model(self, ledger: BudgetLedger) -> None:
        ledger.append(
            [row(line("opus", "1.5"), line("haiku", "3"), line("opus", "2", "credits"), usage_source="partial")]
        )
        ledger.append([row(line(None, "1.5"), line(None, "2", "credits"))])
        costs = (DOLLARS, Money.of("2", "credits"))
        for _ in range(2):
            for where in ({}, {"session": "s1"}):  # from totals, and from rows
                found = summed(ledger, "model", **where)
                counts = {key: (sums.rows, sums.turns, sums.partial) for (key,), sums in found.items()}
                assert counts == {"opus": (1, 1, 1), "haiku": (1, 1, 1), None: (1, 1, 0)}
                assert found["opus",].costs == found[None,].costs == costs
            assert {key: sums.turns for key, sums in summed(ledger, "day+4").items()} == {(NOON // DAY,): 2}
            assert [sums.costs for sums in summed(ledger, "day+4", kind="turn").values()] == [
                (Money.of("6", "USD"), Money.of("4", "credits"))
            ]
            ledger.rebuild()

    @pytest.mark.parametrize(
        "free",
        [
            row(line("opus", None), kind="subagent", cost_source="parent"),
            row(line("opus", None, input=0), kind="side"),
        ],
        ids=["paid for by the parent", "without tokens"],
    )
    def test_what_costs_nothing_more_is_not_unpriced(self, ledger: BudgetLedger, free: Row) -> None:
        ledger.append([free])
        for _ in range(2):
            for by in ((), ("model",), ("host",), ("host", "model")):  # from totals, and from rows
                assert [(sums.unpriced, sums.turns) for sums in summed(ledger, *by).values()] == [(0, 0)]
            ledger.rebuild()

    def test_quarter_hours_are_counted_from_1970(self, ledger: Ledger) -> None:
        ledger.append([row(at=NOON), row(at=NOON + 15 * MINUTE - 1), row(at=NOON + 15 * MINUTE)])
        noon = NOON // (15 * MINUTE)
        assert {key: sums.rows for key, sums in summed(ledger, "quarter_hour").items()} == {(noon,): 2, (noon + 1,): 1}

    def test_what_has_no_value_is_a_group_of_its_own(self, ledger: Ledger) -> None:
        ledger.append([row(), row(origin=BOB)])
        assert set(summed(ledger, "team")) == {("core",), (None,)}


@AND_HUB
class TestSessions:
    def test_nothing_is_known_of_a_session_without_rows(self, ledger: Ledger) -> None:
        ledger.note_session(ALICE, "s1", "A title", NOON)
        assert ledger.state_of(ALICE, "s1") is None
        assert list(ledger.sessions(Query())) == []

    def test_the_state_after_the_last_row_is_known_with_the_costs_of_all(self, ledger: Ledger, another: Open) -> None:
        state = SessionState(
            context_used=500,
            context_size=200_000,
            context_estimated=True,
            agent_cost=DOLLARS,
            counters=Counters(input=1, total=2**60),
            model="opus",
            title="A title",
        )
        ledger.append([row(line("a", "1"), line("b", "2", "credits")), row(line("a", "0.5"), at=NOON + 1, state=state)])
        known = replace(state, costs=(DOLLARS, Money.of("2", "credits")))
        assert another().state_of(ALICE, "s1") == known

    def test_a_row_that_comes_late_does_not_change_the_state(self, ledger: Ledger) -> None:
        ledger.append([row(at=NOON, state=SessionState(title="new", model="new", context_used=2))])
        ledger.append([row(at=NOON - MINUTE, state=SessionState(title="old", model="old", context_used=1))])
        found = ledger.state_of(ALICE, "s1")
        assert found
        assert (found.title, found.model, found.context_used) == ("new", "new", 2)
        assert found.costs == (Money.of("0.02", "USD"),)
        assert [session.started_at for session in ledger.sessions(Query())] == [NOON - MINUTE]

    def test_of_rows_in_order_the_last_one_counts_also_where_the_clock_was_set_back(self, ledger: Ledger) -> None:
        ahead, right = (SessionState(agent_cost=Money.of(cost, "USD"), model=cost) for cost in ("1", "2"))
        ledger.append([row(at=NOON + DAY, state=ahead)], in_order=True)
        ledger.append([row(at=NOON, state=right)], in_order=True)
        found = ledger.state_of(ALICE, "s1")
        assert found == replace(right, costs=(Money.of("0.02", "USD"),))
        (session,) = ledger.sessions(Query())
        assert (session.started_at, session.ended_at) == (NOON, NOON + DAY + MINUTE)

    def test_what_a_row_does_not_know_leaves_what_is_known(self, ledger: Ledger) -> None:
        state = SessionState(1, 2, True, (), DOLLARS, Counters(input=1), "opus", "A title")
        ledger.append([row(state=state), row(at=NOON + 1, state=SessionState())])
        assert ledger.state_of(ALICE, "s1") == replace(state, costs=(Money.of("0.02", "USD"),))

    def test_a_session_is_known_to_its_own_organisation_user_host_and_agent_only(self, ledger: Ledger) -> None:
        ledger.append([row()])
        for field in ("organisation", "user", "host", "agent"):
            assert ledger.state_of(replace(ALICE, **{field: "else"}), "s1") is None
        assert ledger.state_of(replace(ALICE, agent_version="9", client=None, project=None, team=None), "s1")

    def test_a_later_row_with_an_older_title_leaves_what_was_told_since(self, ledger: Ledger) -> None:
        older = SessionState(title="older", titled_at=NOON)
        ledger.append([row(state=older)])
        ledger.note_session(ALICE, "s1", "newer", NOON + MINUTE)
        ledger.append([row(at=NOON + 2 * MINUTE, state=older)])
        assert next(ledger.sessions(Query())).title == "newer"
        ledger.note_session(ALICE, "s1", None, NOON + 3 * MINUTE)
        ledger.append([row(at=NOON + 4 * MINUTE, state=older)])
        assert next(ledger.sessions(Query())).title is None

    def test_a_title_is_kept_until_a_later_one(self, ledger: Ledger) -> None:
        ledger.append([row(state=SessionState(title="first"))])

        def title_after(title: str | None, at: int) -> str | None:
            ledger.note_session(ALICE, "s1", title, at)
            return next(ledger.sessions(Query())).title

        assert title_after("second", NOON + 2 * MINUTE) == "second"
        assert title_after("too late", NOON + MINUTE) == "second"
        ledger.append([row(at=NOON, state=SessionState(title="older")), row(at=NOON + MINUTE, state=SessionState())])
        assert title_after("still too late", NOON + MINUTE) == "second"
        ledger.append([row(at=NOON + 2 * MINUTE, state=SessionState(title="third"))])
        assert next(ledger.sessions(Query())).title == "third"
        assert title_after(None, NOON + 9 * MINUTE) is None
        assert list(ledger.sessions(Query(where=(("title", "third"),)))) == []
        ledger.append([row(at=NOON + 3 * MINUTE, state=SessionState(title="older than none"))])
        ledger.append([row(at=NOON + 9 * MINUTE, state=SessionState())])
        assert next(ledger.sessions(Query())).title is None

    def test_sessions_come_by_start_with_their_times_and_context(self, ledger: Ledger) -> None:
        ledger.append([row(session="b", at=NOON + 1), row(session="a", at=NOON, context_used=5, context_size=10)])
        moved = replace(ALICE, team="moved", project="moved", agent_version="2", client="toad")
        ledger.append([row(session="a", at=NOON + MINUTE, origin=moved)])
        first, second = ledger.sessions(Query())
        assert (first.session, first.started_at, first.ended_at) == ("a", NOON, NOON + 2 * MINUTE)
        assert (first.context_used, first.context_size) == (5, 10)
        assert first.origin == moved
        assert second.session == "b"

    def test_sessions_are_those_with_a_matching_row(self, ledger: Ledger) -> None:
        ledger.append([row(session="a"), row(line("haiku"), session="b", at=NOON + MINUTE)])
        assert [session.session for session in ledger.sessions(Query(since=NOON + 1))] == ["b"]
        assert [session.session for session in ledger.sessions(Query(where=(("model", "opus"),)))] == ["a"]


def test_check_tells_rows_and_version_in_one_line(ledger: Ledger) -> None:
    for more, said in ((1, " 1 row, "), (1, " 2 rows, "), (998, " 1,000 rows, ")):
        ledger.append([row() for _ in range(more)])
        assert said in ledger.check()
    assert "\n" not in ledger.check()
