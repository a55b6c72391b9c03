"""How the counters of an unknown agent are taken, turn by turn, as more becomes known of what they are of."""

from __future__ import annotations

from acp_proxy.core.events import Counters
from acp_proxy.core.meter.readers.unknown.one_call import ComparedTurn, OneCall
from acp_proxy.core.meter.readers.unknown.scope import PER_TURN, ScopeGuess
from acp_proxy.core.usage import Usage
from tests.cases import each_of

CALL = OneCall(900, 1000, 3000)


def turn(prompt: int, context: int | None = None, calls: int = 1, model: str = "mock") -> ComparedTurn:
    return ComparedTurn(1, Counters(prompt, 10), Usage(prompt, 0, 0, 10), context, calls, model)


def of_sessions() -> ScopeGuess:
    """Of an agent that is proven to count since the session began."""
    guess = ScopeGuess()
    assert guess.judge(None, turn(30_000, 1000), None, loaded=True).cumulative
    assert guess.settled
    return guess


def test_a_turn_that_waited_and_is_no_more_than_its_calls_is_its_own() -> None:
    guess = ScopeGuess()
    judged = guess.judge(turn(2000), turn(2500), CALL, loaded=False, waited=True)
    assert (judged.cumulative, judged.sure) == (False, True)


def test_a_turn_that_waited_and_is_more_may_hold_the_one_before() -> None:
    guess = ScopeGuess()
    judged = guess.judge(turn(2000), turn(3001), CALL, loaded=False, waited=True)
    assert (judged.cumulative, judged.sure, guess.settled) == (True, False, False)
    assert guess.judge(turn(2000), turn(3001), CALL, loaded=False).sure is False


def test_counters_that_were_a_sessions_begin_anew_whenever_they_fall() -> None:
    guess = of_sessions()
    for before, now in ((30_000, 5000), (5000, 2000)):
        judged = guess.judge(turn(before), turn(now), None, loaded=False)
        assert (judged.reason, judged.sure) == ("unknown agent: counters that were cumulative began anew", True)
        assert not guess.settled
    assert not guess.judge(turn(5000), turn(2000, calls=2), None, loaded=False).sure


def test_counters_that_fall_with_the_context_may_be_of_either() -> None:
    guess = ScopeGuess()
    judged = guess.judge(turn(5000, 5000), turn(2000, 2000), None, loaded=False)
    assert (judged.reason, judged.sure, guess.settled) == (PER_TURN, True, False)


@each_of([(None, None), (5000, 5000), (5000, None), (None, 2000), (5000, 5001)])
def test_counters_that_fall_by_themselves_are_a_turns_for_good(case: tuple[int | None, int | None]) -> None:
    guess = ScopeGuess()
    assert not guess.judge(turn(5000, case[0]), turn(2000, case[1]), None, loaded=False).cumulative
    assert guess.settled


def test_what_was_only_taken_for_a_sessions_and_falls_is_a_turns() -> None:
    guess = ScopeGuess()
    assert guess.judge(turn(2000), turn(4000), CALL, loaded=False).cumulative
    assert not guess.settled
    judged = guess.judge(turn(4000), turn(3999), None, loaded=False)
    assert (judged.cumulative, judged.sure, guess.settled) == (False, True, True)


@each_of(
    [(2000, 0, False), (2000, 1, True), (2000, 1499, True), (2000, 1500, False), (1501, 1, True), (1500, 1, False)]
)
def test_counters_that_grow_by_less_than_any_call_sends_are_a_turns(case: tuple[int, int, bool]) -> None:
    """But where all of them are as small, or did not grow."""
    before, grown, settled = case
    guess = ScopeGuess()
    judged = guess.judge(turn(before), turn(before + grown), None, loaded=False)
    assert (guess.settled, judged.cumulative, judged.sure) == (settled, not settled, settled)


def test_counters_that_grow_by_less_than_a_call_since_they_began_anew_may_be_of_either() -> None:
    guess = of_sessions()
    guess.judge(turn(30_000), turn(2000), None, loaded=False)
    judged = guess.judge(turn(2000), turn(2500), CALL, loaded=False)
    assert (judged.cumulative, judged.sure, guess.settled) == (True, False, False)


@each_of([(10_000, 10_000, False), (10_000, 10_001, True), (10_000, 10_899, True), (10_000, 10_900, False)])
def test_a_sessions_counters_that_grow_by_less_than_a_call_with_another_model_began_anew(
    case: tuple[int, int, bool],
) -> None:
    before, now, anew = case
    judged = of_sessions().judge(turn(before), turn(now, model="another"), CALL, loaded=False)
    assert judged.cumulative is not anew
    assert of_sessions().judge(turn(before), turn(now), CALL, loaded=False).cumulative


@each_of([(899, False), (900, True)])
def test_counters_that_are_less_than_a_call_did_not_begin_anew(case: tuple[int, bool]) -> None:
    now, anew = case
    judged = of_sessions().judge(turn(400), turn(now, model="another"), CALL, loaded=False)
    assert judged.cumulative is not anew


@each_of([((6000, 2), 6250, False), ((6000, 2), 6251, True), ((3000, 1), 8250, False), ((3000, 1), 8251, True)])
def test_counters_outgrow_what_two_calls_can_have_sent(case: tuple[tuple[int, int], int, bool]) -> None:
    """Each the context, which is 2500 now and was 2000; or what the one call before sent, and what came since."""
    (prompt, calls), now, many = case
    guess = ScopeGuess()
    judged = guess.judge(turn(prompt, 2000, calls), turn(now, 2500, 2), None, loaded=False)
    assert (judged.cumulative and judged.sure) is many
