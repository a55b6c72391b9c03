"""What each reader keeps from turn to turn, and lets go of."""

from __future__ import annotations

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.agents.profile import UNKNOWN, Context, Cost, Profile, Tokens
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelSelected, SessionClosed, Turn, TurnEnded, UpdateSeen
from acp_proxy.core.meter.observations import Observation
from acp_proxy.core.meter.readers.baseline import Baseline
from acp_proxy.core.meter.readers.turn import TurnReader
from acp_proxy.core.meter.readers.unknown.caches import with_caches
from acp_proxy.core.meter.session_context import SessionContext, TurnContexts
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import (
    BOX,
    COPILOT,
    FAST,
    GOOSE,
    HERMES,
    KIMI,
    OPENCODE,
    OPENHANDS,
    QWEN,
    UNKNOWN_AGENT,
    VIBE,
    Story,
    inclusive,
    openhands,
    qwen_call,
)

CERTAIN = Profile(Tokens("session"), cost=Cost("carried"))
MORE, LESS = Counters(200, 20), Counters(100, 10)
EMPTY = {"content": {"type": "text", "text": ""}}


def baseline(profile: Profile = UNKNOWN, last: Counters | None = LESS) -> Baseline:
    made = Baseline(profile)
    if last is not None:
        made.stand_at(last)
    return made


def opened(agent: tuple[str, str]) -> Story:
    story = Story(agent)
    story.open()
    return story


# -- from where counters count


@each_of([(UNKNOWN, True), (CERTAIN, False)])
def test_after_a_close_counters_may_go_on_where_nobody_knows(case: tuple[Profile, bool]) -> None:
    profile, may = case
    tokens = baseline(profile)
    tokens.close()
    assert tokens.may_go_on(MORE) is may
    assert tokens.last == LESS


def test_counters_that_began_here_go_on_from_nothing() -> None:
    tokens = baseline(last=None)
    assert tokens.advance(LESS) == LESS
    assert not tokens.may_go_on(MORE)


def test_a_close_makes_nothing_known_that_was_not() -> None:
    tokens = baseline(last=None)
    tokens.reopen()
    tokens.close()
    assert not tokens.known


@each_of([(True, True, True), (True, False, False), (False, True, False)])
def test_a_fork_of_what_never_told_begins_at_zero_only_if_all_of_its_parent_is_known(
    case: tuple[bool, bool, bool],
) -> None:
    parent_here, parent_known, known = case
    parent, fork = baseline(last=None), baseline(last=None)
    parent.known = parent_known
    fork.fork_of(parent, known=parent_here)
    assert fork.known is known


def test_a_fork_of_a_session_that_nobody_counted_begins_at_zero() -> None:
    fork = baseline(last=None)
    fork.fork_of(None, known=True)
    assert fork.known


def test_who_goes_on_for_another_reader_stands_where_that_one_stood() -> None:
    before, after = baseline(), baseline(CERTAIN, None)
    before.close()
    after.take_over(before)
    assert (after.last, after.known, after.may_go_on(MORE)) == (LESS, True, True)


# -- what is told in mid-turn is of the turn that runs


def test_what_was_told_of_a_turn_stays_while_one_behind_it_ends() -> None:
    story = opened(QWEN)
    first, second = story.begin(), story.begin()
    story.update(first, qwen_call(6110, 20), EMPTY)
    assert story.end(second, stop="cancelled", behind=True)[-1].usage == Usage()
    assert story.end(first)[-1].usage == Usage(6110, 0, 0, 20)


@each_of([QWEN, UNKNOWN_AGENT])
def test_what_was_told_of_a_turn_is_not_told_of_the_next(agent: tuple[str, str]) -> None:
    story = opened(agent)
    turn = story.begin()
    story.update(turn, qwen_call(6110, 20), EMPTY)
    story.end(turn)
    assert story.turn(output_chars=4).usage != Usage(6110, 0, 0, 20)


@each_of([FAST, BOX])
def test_a_status_of_a_turn_is_no_status_of_the_next_that_waited(agent: tuple[str, str]) -> None:
    story = opened(agent)
    first, second = story.begin(), story.begin()
    story.update(first, {"field_meta": {"openhands.dev/metrics": {"status_line": "1,000 in, 5 out"}}})
    assert story.end(first)[-1].usage == Usage(1000, 0, 0, 5)
    assert story.end(second)[-1].usage == Usage()


def calls_of_two(*, before: str | None, between: str | None) -> list[str | None]:
    """The models of two calls of a turn in whose middle another model was chosen, by the updates around them."""
    story = opened(QWEN)
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    turn = story.begin()
    story.update(turn, qwen_call(6110, 20), EMPTY) if before is None else None
    story.tell(ModelSelected(story.now(), "s", "mock"))
    for kind in (before, between):
        if kind is not None:
            story.tell(UpdateSeen(story.now(), "s", turn, kind, {}, {}))
        story.update(turn, qwen_call(6210, 20), EMPTY) if kind is before is not None else None
    story.update(turn, qwen_call(6310, 20), EMPTY)
    return [line.model for line in story.end(turn)[-1].lines]


@each_of(
    [
        (None, "tool_call_update", ["haiku", "mock"]),
        (None, "agent_thought_chunk", ["haiku"]),
        (None, None, ["haiku"]),
        ("tool_call_update", None, ["haiku"]),  # of no call that was told
    ]
)
def test_a_call_is_of_the_model_that_was_chosen_when_the_tools_before_it_had_ended(
    case: tuple[str | None, str | None, list[str]],
) -> None:
    before, between, models = case
    assert calls_of_two(before=before, between=between) == models


def test_counters_of_a_turn_that_ends_behind_another_are_its_own() -> None:
    story = opened(OPENCODE)
    first, second = story.begin(), story.begin()
    assert story.end(second, inclusive(300, 20), stop="cancelled", behind=True)[-1].usage.prompt == 300
    assert story.end(first, inclusive(6000, 50))[-1].usage.prompt == 6000


def test_a_silent_agent_may_tell_what_its_subagents_used() -> None:
    story = opened(KIMI)
    turn = story.begin()
    usage = {"usage": {"inputTokens": 700, "outputTokens": 30, "totalTokens": 730}}
    story.tell(UpdateSeen(story.now(), "s", turn, "state_update", {}, usage, child="c"))
    story.report(turn, used=9000, meta={"usage": usage})
    assert [(row.kind, row.usage.total) for row in story.end(turn)[:-1]] == [("subagent", 730)]


def of_one_that_waits(asked: int, begun: int) -> int:
    """What a turn used, of an agent that tells of a failed one with the next: it was asked for, and begun, then.

    The turn before it told 100 at 10.
    """
    reader = TurnReader(Profile(Tokens("turn", after_failure="late")))
    seen = Observation(TurnContexts(), None, None, False, False, False, lambda: False, True, False)
    for number, (start, began, end, prompt) in enumerate(((1, 1, 10, 100), (asked, begun, 20, 250))):
        turn = Turn(f"t{number}", "s", "turn", start)
        reader.begin(turn, began, None, alone=True)
        used = reader.end(TurnEnded(end, "s", turn, "end_turn", Counters(prompt, 0)), seen, None)
    assert used is not None
    return used.usage.prompt


@each_of([(9, 11, 150), (10, 11, 250), (11, 11, 250), (9, 9, 250)])
def test_a_turn_that_was_asked_for_before_the_last_one_told_may_hold_that(case: tuple[int, int, int]) -> None:
    """Where it began when it was asked for, the order of events tells, for a clock may be set back."""
    asked, begun, prompt = case
    assert of_one_that_waits(asked, begun) == prompt


def test_a_cost_is_spend_of_who_tells_no_counters_of_the_session_with_it() -> None:
    assert TurnReader(UNKNOWN).come_with_cost(None)


# -- counters of the session


def test_a_cost_that_moves_while_counters_stand_still_is_no_spend() -> None:
    story = opened(VIBE)
    for prompt, cost in ((1000, "0.10"), (1000, "0.20")):
        turn = story.begin()
        story.report(turn, cost=cost, meta={"promptTokens": prompt, "completionTokens": 10})
        story.end(turn)
    assert story.booked() == "0.1"


def test_a_session_of_the_same_id_begins_anew() -> None:
    story = opened(VIBE)
    for prompt in (1000, 1500):
        turn = story.begin()
        story.report(turn, cost="0.10", meta={"promptTokens": prompt, "completionTokens": 10})
        row = story.end(turn)[-1]
        assert row.usage.prompt == prompt
        story.open()
    assert story.metered.state.counters is not None


def test_a_session_that_was_closed_is_counted_from_zero_only_where_the_agent_does() -> None:
    for agent, expected in ((COPILOT, 300), (HERMES, 200)):
        story = opened(agent)
        story.turn(inclusive(100, 10))
        story.close()
        assert story.turn(inclusive(300, 30)).usage.prompt == expected


def test_a_session_that_was_closed_and_used_again_is_not_closed() -> None:
    story = opened(COPILOT)
    story.turn(inclusive(100, 10))
    story.close()
    story.turn(inclusive(100, 10))
    assert story.turn(inclusive(300, 30)).usage.prompt == 200


def test_counters_of_an_agent_that_tells_them_without_output_are_counted() -> None:
    story = opened(HERMES)
    assert story.turn(Counters(1000, None, None)).usage.prompt == 1000


def test_the_same_counters_again_are_no_news() -> None:
    story = opened(OPENHANDS)
    turn = story.begin()
    story.update(turn, openhands(1000, 20))
    seen = len(story.changes)
    story.update(turn, openhands(1000, 20))
    assert len(story.changes) == seen
    story.update(turn, {"durationMs": 5})
    assert len(story.changes) == seen


def test_what_a_cancelled_turn_used_comes_with_the_next_counters_and_is_not_guessed() -> None:
    row = opened(COPILOT).turn(None, used=5000, output_chars=40, stop="cancelled")
    assert (row.usage.total, row.usage_source) == (0, "none")


def test_counters_of_another_session_of_the_same_id_are_no_state_of_this_one() -> None:
    story = opened(VIBE)
    turn = story.begin()
    story.report(turn, meta={"promptTokens": 1000, "completionTokens": 10})
    story.end(turn)
    story.open()
    story.turn()
    assert story.metered.state.counters is None


@each_of([(COPILOT, 10_000), (HERMES, None)])
def test_only_a_command_that_may_be_one_begins_counters_anew(case: tuple[tuple[str, str], int | None]) -> None:
    """Copilot's commands do not, and nothing that Hermes leaves unanswered is one."""
    agent, context = case
    story = opened(agent)
    story.turn(inclusive(10_000, 100), used=10_000)
    story.turn(None, used=context, output_chars=40 if context else 0)
    row = story.turn(inclusive(18_000, 200), used=10_100)
    assert (row.usage.prompt, row.usage_source) == (8000, "agent")


# -- the last call


@each_of([GOOSE, OPENCODE])
def test_the_context_after_a_last_call_is_what_that_call_had(agent: tuple[str, str]) -> None:
    story = opened(agent)
    assert story.turn(inclusive(5000, 100), tool_calls=3).context_used == 5100


@each_of([0, 1])
def test_one_message_is_one_call(messages: int) -> None:
    story = opened(OPENCODE)
    assert story.turn(inclusive(5000, 100), messages=messages).usage_source == "agent"


def test_two_messages_are_two_calls_of_who_gives_each_call_one() -> None:
    assert opened(OPENCODE).turn(inclusive(5000, 100), messages=2).usage_source == "partial"
    assert opened(GOOSE).turn(inclusive(5000, 100), messages=2).usage_source == "agent"


# -- an unknown agent that gives itself away


def test_who_gives_itself_away_goes_on_from_what_the_ledger_knew() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("load")
    story.restore(SessionState(counters=Counters(1000, 50)))
    turn = story.begin()
    story.update(turn, openhands(1500, 80))
    assert story.end(turn)[-1].usage == Usage(500, 0, 0, 30)


def test_counters_of_a_session_that_was_closed_may_go_on() -> None:
    story = opened(UNKNOWN_AGENT)
    for number, (prompt, context) in enumerate(((6000, 6000), (12_200, 6200), (18_600, 6400), (25_200, 6600)), 1):
        story.turn(inclusive(prompt, 10 * number), used=context)
    story.close()
    story.open("load")
    row = story.turn(inclusive(32_000, 50))
    assert (row.usage.prompt, row.usage_source) == (6800, "partial")


def test_the_usage_of_a_turn_is_repeated_only_in_its_own_session() -> None:
    story = opened(GOOSE)
    assert story.turn(inclusive(5000, 100)).usage_source == "agent"
    assert story.turn(inclusive(5000, 100)).usage_source == "none"
    story.open()
    assert story.turn(inclusive(5000, 100)).usage_source == "agent"


def test_a_session_of_an_unknown_agent_with_the_id_of_another_is_judged_by_nothing_of_that() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(inclusive(6000, 50))
    story.tell(SessionClosed(story.now(), "s"))
    story.open()
    row = story.turn(inclusive(9000, 60))
    assert (row.usage.prompt, row.usage_source) == (9000, "agent")


def test_more_cached_than_input_is_what_was_read_and_what_was_written_together() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(Counters(700, 50, None, None, 400, 400))
    assert story.turn(Counters(1000, 60, None, None, 300, 300)).usage == Usage(1000, 300, 300, 60)


def test_as_much_cached_as_input_proves_nothing() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(Counters(400, 50, None, None, 400))
    row = story.turn(Counters(1000, 60, None, None, 300))
    assert (row.usage, row.usage_source) == (Usage(700, 300, 0, 60), "partial")


def test_a_context_that_is_of_no_call_says_nothing_of_what_a_call_can_have_sent() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(inclusive(10_000, 100))
    row = story.turn(inclusive(10_200, 100), used=3000)
    assert (row.usage.prompt, row.usage_source) == (10_200, "agent")


def test_counters_that_outgrow_their_context_after_a_close_go_on_from_before_it() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("load")
    story.turn(inclusive(6000, 10), used=6000)
    story.close()
    story.open("load")
    row = story.turn(inclusive(20_000, 20), used=6500)
    assert (row.usage.prompt, row.usage_source) == (14_000, "estimated")


def test_counters_of_one_call_with_its_own_context_began_at_zero_though_the_session_was_closed() -> None:
    story = opened(UNKNOWN_AGENT)
    for number, (prompt, context) in enumerate(((6000, 6000), (12_200, 6200), (18_600, 6400), (25_200, 6600)), 1):
        story.turn(inclusive(prompt, 10 * number), used=context)
    story.close()
    story.open("load")
    row = story.turn(inclusive(26_000, 60), used=26_000)
    assert (row.usage.prompt, row.usage_source) == (26_000, "agent")


def test_a_fork_of_an_unknown_agents_session_may_go_on_from_its_parents_counters() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(inclusive(6000, 50))
    story.open("fork", "t", parent="s")
    row = story.turn(inclusive(13_000, 90), session="t")
    assert (row.usage.prompt, row.usage_source) == (7000, "partial")


def test_a_session_of_the_same_id_has_nothing_of_one_that_was_closed_before_it() -> None:
    story = opened(UNKNOWN_AGENT)
    story.turn(inclusive(6000, 50))
    story.close()
    story.turn()
    story.open()
    row = story.turn(inclusive(9000, 60))
    assert (row.usage.prompt, row.usage_source) == (9000, "agent")


@each_of([(9000, False), (9001, True)])
def test_after_a_load_more_than_half_beyond_the_context_is_of_many_turns(case: tuple[int, bool]) -> None:
    prompt, many = case
    story = Story(UNKNOWN_AGENT)
    story.open("load")
    assert ("taken as cumulative" in story.turn(inclusive(prompt, 50), used=6000).detail) is many


def caches_by(counters: Counters, context: int | None, calls: int = 1) -> InputCounts | None:
    """What one turn tells of whether input holds what was cached."""
    told = TurnContexts(told=context is not None)
    seen = Observation(told, context, "mock", False, False, False, lambda: False, True, False)
    turn, found = Turn("t", "s", "turn", 1), dict[str | None, InputCounts]()
    ended = TurnEnded(2, "s", turn, "end_turn", counters, tool_calls=calls - 1)
    with_caches(counters, None, ended, seen, UNKNOWN.overlap, found)
    return found.get("mock")


CACHES: list[tuple[tuple[int | None, int | None], int | None, int, InputCounts | None]] = [
    ((2100, 2000), 2110, 1, "includes_cache"),
    ((2100, 2000), 4110, 1, "excludes_cache"),
    ((2100, 2000), 4110, 2, None),  # the context is that of the last call
    ((2100, 2000), 3000, 1, None),
    ((2100, 2000), None, 1, None),
    ((2100, 2101), None, 2, "excludes_cache"),
    ((2100, 2100), None, 1, None),
    ((2100, 0), 2110, 1, None),
    ((2100, None), 2110, 1, None),
    ((None, 1), None, 1, "excludes_cache"),
]


@each_of(CACHES)
def test_the_context_of_a_single_call_tells_whether_its_input_holds_what_was_cached(
    case: tuple[tuple[int | None, int | None], int | None, int, InputCounts | None],
) -> None:
    (sent, cached), context, calls, counts = case
    assert caches_by(Counters(sent, 10, None, None, cached), context, calls) == counts
    assert caches_by(Counters(sent, 10, None, None, None, cached), context, calls) == counts


def test_thinking_beside_a_total_that_is_not_told_may_be_in_the_output() -> None:
    story = opened(UNKNOWN_AGENT)
    assert story.turn(Counters(2000, 10, None, 5)).usage_source == "partial"
    assert opened(UNKNOWN_AGENT).turn(Counters(2000, 10, None, 0)).usage_source == "agent"


def test_nothing_of_a_sessions_context_is_known_when_another_one_begins() -> None:
    context = SessionContext(Context())
    context.set(7000)
    context.grow(500)
    assert (context.used, context.estimated, context.grounded) == (7500, True, True)
    context.forget()
    assert (context.used, context.estimated, context.grounded) == (None, False, False)
