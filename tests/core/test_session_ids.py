"""The id under which a session is booked: its own where a ledger can keep that, else one that stands for it alone."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.core.acp.values import storable
from acp_proxy.core.session_ids import booked

LONGEST, KEPT = 300, 200

ids = st.text(st.characters(), max_size=20) | st.builds(
    lambda text, times: text * times, st.text(st.characters(), min_size=1, max_size=3), st.integers(60, 320)
)


@given(ids)
@example("s" * LONGEST)
@example("s" * (LONGEST + 1))
@example("a\nb" * (LONGEST // 3))
def test_what_a_ledger_can_keep_is_booked_as_it_is(session: str) -> None:
    assert (booked(session) == session) is (len(session) <= LONGEST and session == storable(session))


@given(ids)
@example("s" * (LONGEST + 1))
@example("\ud83d" + "s" * LONGEST)
def test_any_other_is_booked_by_its_beginning_and_a_digest(session: str) -> None:
    name = booked(session)
    assert name == storable(name)
    assert len(name) <= LONGEST
    if name != session:
        begin, _, rest = name.rpartition("…")
        assert begin == storable(session[:KEPT])
        assert len(rest) == 16


@given(st.lists(ids, unique=True), st.text("ab", max_size=3))
@example(["s" * 301, "s" * 302, "s" * 300, "\0", "\ud83d", "\ufffd"], "")
def test_two_sessions_are_never_booked_as_one(sessions: list[str], end: str) -> None:
    assert len({booked(each + end) for each in sessions}) == len(sessions)
