"""Imported calls of one session are written together: the ledger is as if each had come by itself, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.entry import IMPORT, SessionState
from acp_proxy.core.money import Money
from acp_proxy.ledger import Row, open_ledger
from harness.rows import ALICE, MINUTE, NOON, amended, line, row

TABLES = ("session", "total", "series", "tally", "turn", "line", "session_key")


@st.composite
def calls(draw: st.DrawFn) -> Row:
    """One of few sessions, models and minutes, so that many meet."""
    at = NOON + draw(st.integers(0, 3)) * 700 * MINUTE
    version, used, size = draw(st.sampled_from(["1", "2"])), draw(st.sampled_from([None, 5, 9])), None
    if used:
        size = draw(st.sampled_from([None, 10]))
    return row(
        line(draw(st.sampled_from([None, "opus", "haiku"])), input=draw(st.integers(1, 3))),
        origin=replace(ALICE, client=IMPORT, agent_version=version),
        session=draw(st.sampled_from(["one", "two"])),
        at=at,
        took=0,
        kind="call",
        stop_reason=None,
        context_used=used,
        context_size=size,
    )


relayed = st.lists(st.integers(0, 3), max_size=2).map(
    lambda hours: [
        row(
            session="one",
            at=NOON + hour * 700 * MINUTE,
            state=SessionState(7, 8, True, (), Money.of("1", "USD"), None, "sonnet", "Title"),
        )
        for hour in hours
    ]
)


@given(relayed, st.lists(calls(), max_size=12))
def test_many_calls_together_are_what_they_are_one_by_one(before: Sequence[Row], some: Sequence[Row]) -> None:
    some = sorted(some, key=lambda row: row.entry.ended_at)
    with TemporaryDirectory() as place:
        together, alone = Path(place) / "together.db", Path(place) / "alone.db"
        for path, parts in (together, [some] if some else []), (alone, [[each] for each in some]):
            with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
                for each in before:
                    ledger.append([each])
                assert sum(map(ledger.append, parts)) == len(some)
        assert _content(together) == _content(alone)


def test_calls_handed_in_backwards_leave_the_session_as_its_last_one_does() -> None:
    made = [row(session="one", at=NOON + each * MINUTE, context_used=each + 1) for each in range(3)]
    moments = [amended(each, ended_at=each.entry.started_at) for each in made]
    with TemporaryDirectory() as place, closing(open_ledger(f"sqlite:///{place}/l.db", journals=())) as ledger:
        ledger.append(moments[::-1])
        state = ledger.state_of(ALICE, "one")
        assert state is not None
        assert state.context_used == 3


def _content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(connect(path)) as connection:
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}
