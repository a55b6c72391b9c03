"""What peers take for JSON is read as they read it, however long its numbers are and however deep it is."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.lenient_json import decode

DEEP = 100_000


def read(line: bytes) -> Any:
    return decode(line, " \t\r\n\ufeff", Decimal)


def depth_of(value: Any) -> int:
    depth = 0
    while value:
        value = value[0] if isinstance(value, list) else value["a"]
        depth += 1
    return depth


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_what_is_nested_beyond_all_bounds_is_read_down_to_a_depth(begin: str, end: str) -> None:
    times = DEEP // begin.count("{") if "{" in begin else DEEP
    deep = f"{begin * times}null{end * times}"
    found = read(f'{{"method":"session/prompt","deep":{deep},"id":7}}'.encode())
    assert (found["method"], found["id"]) == ("session/prompt", 7)
    assert depth_of(found["deep"]) == 98  # the line's object is the first level, and the hundredth is no more


@given(st.integers(1, 98), st.integers(99, 110), st.text('[]{}"\\a,', max_size=8))
def test_what_stands_beside_it_is_kept(shallow: int, deep: int, said: str) -> None:
    nested = {depth: f"{'[' * depth}{']' * depth}" for depth in (shallow, deep, DEEP)}
    parts = [
        f'"one":{nested[shallow]}',
        f'"deep":{nested[deep]}',
        f'"none":{nested[DEEP]}',
        f'"other":{nested[shallow]}',
    ]
    found = read(f'{{"said":{json.dumps(said)},{",".join(parts)},"last":[{json.dumps(said)}]}}'.encode())
    assert (found["said"], found["last"]) == (said, [said])
    assert found["one"] == found["other"] == json.loads(nested[shallow])
    assert found["deep"] == found["none"] == json.loads(f"{'[' * 98}null{']' * 98}")


def test_brackets_in_text_nest_nothing() -> None:
    said = "[{" * DEEP
    assert (
        read(json.dumps({"said": said, "deep": 0}).replace("0", f"{'[' * DEEP}{']' * DEEP}").encode())["said"] == said
    )


@pytest.mark.parametrize("line", ["[" * DEEP, f"{'[' * DEEP}null{']' * (DEEP - 1)}", f"{'[' * DEEP}]]]}}]]"])
def test_what_is_never_closed_is_no_json(line: str) -> None:
    assert read(line.encode()) is None


def test_a_number_of_any_length_is_read() -> None:
    for digits in ("9" * 4000, "9" * 4001, "9" * 100_000):
        assert Decimal(read(digits.encode())) == Decimal(digits)
    assert isinstance(read(b"12"), int)
