"""From where on a figure of an unknown agent is taken for something else: what the agent did, and the row.

Each pair of stories differs by one token, so that no threshold moves unseen.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import ModelCounters
from acp_proxy.core.meter.readers.unknown.one_call import OneCall, known_turn, one_call
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import HERMES, UNKNOWN_AGENT, Story, inclusive, qwen_call

EMPTY = {"content": {"type": "text", "text": ""}}
Row = tuple[str, int]  # the source and the prompt
Case = tuple[str, Callable[[], Entry], Row]


def opened(how: str = "new", agent: tuple[str, str] = UNKNOWN_AGENT) -> Story:
    story = Story(agent)
    story.open("load" if how == "load" else "new")
    return story


def after_load(prompt: int, context: int | None = None, cost: str | None = None) -> Entry:
    return opened("load").turn(inclusive(prompt, 1000), used=context, cost=cost)


def after_close(prompt: int) -> Entry:
    story = opened()
    story.turn(inclusive(1000, 50))
    story.close()
    story.open("load")
    return story.turn(inclusive(prompt, 60))


def second_after_load(first: int, second: int, contexts: tuple[int | None, int | None] = (None, None)) -> Entry:
    story = opened("load")
    story.turn(inclusive(first, 100), used=contexts[0])
    return story.turn(inclusive(second, 200), used=contexts[1])


def with_tools(prompt: int, context: int | None = None) -> Entry:
    return opened().turn(inclusive(prompt, 100), used=context, tool_calls=1)


def with_rows(prompt: int, chars: int = 0) -> Entry:
    """With rows by model its counters are of the turn. The call before had 10,000 tokens of prompt, 100 of answer."""
    story = opened()
    story.turn(inclusive(10_000, 100))
    rows = (ModelCounters("mock", inclusive(prompt, 100)),)
    return story.turn(inclusive(prompt, 100), tool_calls=2, tool_chars=chars, model_usage=rows)


def with_context(prompt: int) -> Entry:
    """The same, with the contexts of the last calls."""
    story = opened()
    story.turn(inclusive(10_000, 100), used=10_100)
    rows = (ModelCounters("mock", inclusive(prompt, 100)),)
    return story.turn(inclusive(prompt, 100), used=10_600, tool_calls=1, model_usage=rows)


def second_of_small(first: int) -> Entry:
    story = opened()
    story.turn(inclusive(first, 10))
    return story.turn(inclusive(3500, 20), output_chars=80)


def told_call_by_call(largest: int, chars: int = 0) -> Entry:
    """The first call had 5000 tokens of prompt and 100 of answer; the second one writes 100 as well."""
    story = opened()
    turn = story.begin()
    for prompt in (5000, largest):
        story.update(turn, qwen_call(prompt, 100), EMPTY)
    return story.end(turn, tool_calls=1, tool_chars=chars)[-1]


def of_hermes_after_a_command(grown: int, calls: int = 1) -> Entry:
    """What it told of a session that a command may have begun anew; its calls sent 9000 tokens together, at least."""
    story = opened(agent=HERMES)
    story.turn(inclusive(10_000, 100), used=10_000, tool_calls=calls - 1)
    story.turn(None, used=10_000, output_chars=40)
    return story.turn(inclusive(10_000 + grown, 200), used=10_100)


CASES: list[Case] = [
    ("a context of nine tenths of the prompt is that of its call", lambda: after_load(10_000, 9000), ("agent", 10_000)),
    ("a token less is not", lambda: after_load(10_000, 8999), ("estimated", 10_000)),
    (
        "nothing is guessed where a cost is told that began here",
        lambda: after_load(10_000, 7000, "0.1"),
        ("agent", 10_000),
    ),
    ("a context of the total and a tenth is, too", lambda: after_load(10_000, 12_100), ("agent", 10_000)),
    ("a token more is not", lambda: after_load(10_000, 12_101), ("estimated", 10_000)),
    ("less than an agent's instructions goes on from nothing", lambda: after_load(1499), ("agent", 1499)),
    ("as much may", lambda: after_load(1500), ("estimated", 1500)),
    ("nor does it after a close", lambda: after_close(1499), ("agent", 1499)),
    ("as much may, and grew by at least", lambda: after_close(1500), ("partial", 500)),
    ("what grew by less than any call is a turn's", lambda: second_after_load(9000, 10_499), ("agent", 10_499)),
    ("what grew by a call may be a session's", lambda: second_after_load(9000, 10_500), ("partial", 1500)),
    ("after a turn that is less than any call all is taken per turn", lambda: second_of_small(1499), ("agent", 3500)),
    ("after a larger one it may be a session's", lambda: second_of_small(1500), ("partial", 2000)),
    (
        "half more than the context is what calls of one turn can have sent",
        lambda: second_after_load(10_000, 15_000, (20_000, 20_000)),
        ("partial", 5000),
    ),
    ("a token more is a session's", lambda: second_after_load(10_000, 15_001, (20_000, 20_000)), ("agent", 5001)),
    ("usage with tools below an agent's instructions is of all calls", lambda: with_tools(1499), ("agent", 1499)),
    ("as much may be of the last one", lambda: with_tools(1500), ("partial", 1500)),
    ("half more than the context may be of one call", lambda: with_tools(9000, 6000), ("partial", 9000)),
    ("a token more is of several", lambda: with_tools(9001, 6000), ("agent", 9001)),
    ("calls that send what came before them are summed", lambda: told_call_by_call(6030), ("agent", 11_030)),
    ("a larger one is the turn so far", lambda: told_call_by_call(6031), ("partial", 6031)),
    ("a call sends what passed, a token for two characters", lambda: told_call_by_call(6041, 20), ("agent", 11_041)),
    ("and no more", lambda: told_call_by_call(6042, 20), ("partial", 6042)),
    ("half more than a call can have sent may be one's", lambda: with_rows(17_130), ("partial", 17_130)),
    ("a token more is of several", lambda: with_rows(17_131), ("agent", 17_131)),
    ("what passed since may be in the call, too", lambda: with_rows(18_780, 2000), ("partial", 18_780)),
    ("and no more", lambda: with_rows(18_781, 2000), ("agent", 18_781)),
    ("a twentieth more than a call's context may be one's", lambda: with_context(11_130), ("partial", 11_130)),
    ("a token more is not", lambda: with_context(11_131), ("agent", 11_131)),
    ("counters that grew by less than a call began anew", lambda: of_hermes_after_a_command(8999), ("agent", 18_999)),
    ("by a call they may have gone on", lambda: of_hermes_after_a_command(9000), ("partial", 9000)),
    ("of two calls each sent half", lambda: of_hermes_after_a_command(4499, 2), ("agent", 14_499)),
    ("and no more", lambda: of_hermes_after_a_command(4500, 2), ("partial", 4500)),
]


@each_of(CASES, lambda case: case[0])
def test_from_one_token_on_a_row_is_another(case: Case) -> None:
    _, story, expected = case
    row = story()
    assert (row.usage_source, row.usage.prompt) == expected


KNOWN = Usage(10_000, 0, 0, 100)
WROTE = Usage(0, 0, 0, 100)


@each_of(
    [
        ("a call sends nine tenths of a known one", None, None, OneCall(9000, 9000, 11_970)),
        ("a context that a call can have had tells more", 11_970, None, OneCall(9000, 9000, 12_568, True, False)),
        ("another is not a call's", 11_971, None, OneCall(9000, 9000, 11_970)),
        ("what was there before is sent again", 11_000, 10_050, OneCall(9000, 9950, 11_550, True, False)),
        ("also where the context is less", 9000, 10_050, OneCall(9000, 9950, 9950, True, False)),
    ],
    lambda case: case[0],
)
def test_what_a_call_can_have_sent_follows_from_a_known_one(case: tuple[str, int | None, int | None, OneCall]) -> None:
    """600 tokens came since: 100 by the answer, 500 by 1000 characters."""
    _, context, before, expected = case
    known = known_turn(KNOWN, 1, 3000, None)
    assert one_call(known, WROTE, before, WROTE, context, 4000) == expected


@each_of([(1499, 1, False), (1500, 1, True), (2999, 2, False), (3000, 2, True), (0, 1, False)])
def test_a_turn_whose_calls_are_less_than_an_agents_instructions_tells_nothing_of_others(
    case: tuple[int, int, bool],
) -> None:
    prompt, calls, tells = case
    known = known_turn(Usage(prompt), calls, 0, None)
    assert (one_call(known, WROTE, None, WROTE, None, 0) is not None) is tells


def test_a_call_sends_something_however_small_a_known_one_was() -> None:
    call = one_call(known_turn(Usage(1), 1, 0, None), WROTE, None, WROTE, 5, 0)
    assert call is not None
    assert (call.floor, call.least) == (1, 1)


@each_of(
    [(1, 8999, False), (1, 9000, True), (1, 11_110, True), (1, 11_111, False), (2, 11_110, None), (2, 11_111, False)]
)
def test_a_context_is_that_of_a_known_call_only_within_a_tenth(case: tuple[int, int, bool | None]) -> None:
    """Of several calls it is the last one's, which nobody can see, unless it is more than all of them had."""
    calls, context, gauge = case
    assert known_turn(KNOWN, calls, 0, context).gauge is gauge
    known = known_turn(KNOWN, calls, 0, context)
    call = one_call(known, WROTE, None, WROTE, 10_000, 0)
    assert call is not None
    assert (call.told, call.proven) == ((False, True) if gauge is False else (True, gauge is True))


@each_of(
    [
        (4, 1, 1, False),
        (5, 1, 1, True),
        (9, 1, 1, True),
        (10, 1, 1, False),
        (10, 1, 2, True),
        (9, 2, 2, False),
        (18, 2, 2, True),
        (19, 1, 2, False),
        (15, 1, 3, True),
    ]
)
def test_so_many_calls_can_have_sent_a_prompt_or_not(case: tuple[int, int, int, bool]) -> None:
    """Calls of 5 to 9 tokens."""
    prompt, fewest, most, fits = case
    assert OneCall(5, 5, 9).fits(prompt, fewest, most) is fits
