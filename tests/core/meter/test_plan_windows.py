"""Windows of plans: recordings and messages in, windows out; nonsense is nothing, and never raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.events import Event, PlanReported, Side, UsageReported
from acp_proxy.core.jsonrpc import parse
from acp_proxy.core.meter import Meter
from acp_proxy.core.meter.plan_windows import CLAUDE, plan_windows
from acp_proxy.core.plans import FULL, OVERAGE, PlanWindow
from acp_proxy.core.windows import SECOND
from harness.prices import PRICES
from harness.recordings import BEGIN, TRANSCRIPTS, events_of

RESET = 1_795_790_376
WEEK = 1_796_181_376
AT = 1_795_784_000 * SECOND
TOP = {"status": "allowed_warning", "resetsAt": RESET, "rateLimitType": "five_hour", "utilization": 0.91}


def told(limits: Any) -> list[PlanWindow]:
    """What a message tells, as it is read off the wire."""
    return [window for event in reported(limits) for window in event.windows]


def reported(limits: Any, session: str = "s1") -> list[PlanReported]:
    update = {"sessionUpdate": "usage_update", "used": 6612, "size": 1_000_000, "_meta": {CLAUDE: limits}}
    line = json.dumps({"method": "session/update", "params": {"sessionId": session, "update": update}})
    message = parse(line.encode())
    assert message is not None
    conversation, meter = Conversation(str), Meter(PRICES, str)
    events = conversation.receive(Side.AGENT, message, AT, len(line))
    return of_plans(each for event in events for each in meter.on_event(event))


def of_plans(events: Any) -> list[PlanReported]:
    return [event for event in events if isinstance(event, PlanReported)]


def metered(recording: str) -> list[Event]:
    meter = Meter(PRICES, str)
    return [each for event in events_of(Path(recording)) for each in meter.on_event(event)]


def test_a_recorded_session_of_a_plan_tells_both_of_its_windows() -> None:
    first, second = of_plans(metered("claude-plan-0.101.0/basic.jsonl"))
    five_hours, week = first.windows
    assert five_hours == PlanWindow(
        "five_hour", 910_000, "allowed_warning", RESET * SECOND, "rejected", five_hours.seen_at
    )
    assert week == PlanWindow("seven_day", 340_000, "allowed", WEEK * SECOND, "rejected", week.seen_at)
    assert BEGIN < first.at == five_hours.seen_at < second.at
    assert [window.used for window in second.windows] == [910_000, 340_000]


def test_a_session_that_pays_by_tokens_tells_none() -> None:
    recording = "claude-agent-acp-0.101.0/stopped.jsonl"
    assert (TRANSCRIPTS / recording).exists()
    assert any(isinstance(event, UsageReported) for event in events_of(Path(recording)))
    assert of_plans(metered(recording)) == []


def test_without_all_windows_the_one_that_binds_is_told() -> None:
    assert told(TOP) == [PlanWindow("five_hour", 910_000, "allowed_warning", RESET * SECOND, None, AT)]


def test_what_a_window_lacks_is_taken_from_the_top_level_if_it_binds() -> None:
    limits = {**TOP, "unifiedWindows": {"five_hour": {"utilization": 0.92}, "seven_day": {"utilization": 0.5}}}
    assert told(limits) == [
        PlanWindow("five_hour", 920_000, "allowed_warning", RESET * SECOND, None, AT),
        PlanWindow("seven_day", 500_000, None, None, None, AT),
    ]


def test_new_words_are_kept() -> None:
    (window,) = told({"rateLimitType": "lunar_month", "status": "throttled", "overageStatus": "on_loan"})
    assert (window.window, window.status, window.overage) == ("lunar_month", "throttled", "on_loan")


def test_what_is_paid_beside_the_plan_is_told() -> None:
    (window,) = told({**TOP, "isUsingOverage": True, "overageStatus": "allowed", "utilization": 1.2})
    assert (window.overage, window.used) == (OVERAGE, 1_200_000)


def test_a_plan_that_refuses_without_naming_a_window_is_told() -> None:
    (window,) = told({"status": "rejected"})
    assert (window.window, window.used, window.status) == ("plan", None, "rejected")
    assert told({"status": "allowed"}) == []


@pytest.mark.parametrize("used", ["0.91", " 0.91 ", "91e-2", 0.91, 0.9100000001])
def test_a_number_in_quotes_is_a_number(used: Any) -> None:
    (window,) = told({**TOP, "utilization": used, "resetsAt": str(RESET)})
    assert (window.used, window.resets_at) == (910_000, RESET * SECOND)


@pytest.mark.parametrize("used", [None, True, -0.1, 91, "91 %", [], {}, "nan", 1e300])
def test_what_is_no_fraction_is_unknown(used: Any) -> None:
    (window,) = told({**TOP, "utilization": used})
    assert window.used is None


@pytest.mark.parametrize("reset", [None, False, 0, -1, "soon", 10**12, [RESET]])
def test_what_is_no_time_is_unknown(reset: Any) -> None:
    (window,) = told({**TOP, "resetsAt": reset})
    assert window.resets_at is None


def test_numbers_that_no_decimal_holds_are_unknown() -> None:
    line = json.dumps({CLAUDE: {**TOP, "utilization": "HUGE", "resetsAt": "HUGE"}}).replace(
        '"HUGE"', "1e9999999999999999999"
    )
    message = parse(f'{{"method":"x","params":{line}}}'.encode())
    (window,) = plan_windows(message.params, AT)  # type: ignore[union-attr]
    assert (window.used, window.resets_at) == (None, None)


def test_names_are_cut_and_windows_are_counted() -> None:
    assert len(told({**TOP, "rateLimitType": "x" * 5000})[0].window) < 500
    many = {f"window{number}": {"utilization": 0.1} for number in range(1000)}
    assert len(told({**TOP, "unifiedWindows": many})) < 100


def test_what_a_loaded_session_told_before_is_no_news() -> None:
    event = UsageReported(AT, "s1", None, 1, 2, None, meta={CLAUDE: TOP}, replayed=True)
    assert of_plans(Meter(PRICES, str).on_event(event)) == []


def test_a_subagent_uses_the_plan_too() -> None:
    event = UsageReported(AT, "s1", None, 1, 2, None, meta={CLAUDE: TOP}, child="c1")
    assert len(of_plans(Meter(PRICES, str).on_event(event))) == 1


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["five_hour", "0.5"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text()
            | st.sampled_from([*TOP, "unifiedWindows", "isUsingOverage", "overageStatus", "five_hour", "seven_day"]),
            inner,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_nonsense_tells_nothing_that_a_ledger_could_not_keep(limits: Any) -> None:
    for window in told(limits):
        assert window.window
        assert window.used is None or 0 <= window.used <= 10 * FULL
        assert window.resets_at is None or 0 < window.resets_at < 2**63
        for word in (window.window, window.status, window.overage):
            assert word is None or ("\0" not in word and len(word.encode()) < 2000)


def test_a_window_of_which_nothing_is_used_says_so() -> None:
    (window,) = told({**TOP, "utilization": 0})
    assert window.used == 0
