"""Ids of rows."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.system.ids import uuid7

TIMES = st.integers(0, 2**62)
TICK = 1_000_000 // 4096 + 1  # nanoseconds: the finest order that an id keeps


@given(TIMES)
def test_an_id_is_a_uuid_of_version_7_that_holds_its_time_in_milliseconds(at: int) -> None:
    made = uuid.UUID(uuid7(at))
    assert (made.version, made.variant, made.int >> 80) == (7, uuid.RFC_4122, at // 1_000_000)


@given(TIMES)
def test_ids_sort_by_time_within_a_millisecond_too(at: int) -> None:
    assert uuid7(at) < uuid7(at + TICK)


@given(TIMES)
def test_ids_of_the_same_time_differ(at: int) -> None:
    assert uuid7(at) != uuid7(at)
