"""Messages read off lines, and responses paired with requests."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Notification, Pairing, Request, Response, id_key, may_be_object, parse
from acp_proxy.core.wire.peek import peek_line
from tests.core.messages import JSON


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id":1,"method":"m","params":{"a":1}}', Request(1, "m", {"a": 1})),
        (b'{"id":null,"method":"m"}', Request(None, "m", {})),
        (b'{"method":"m","params":[1]}', Notification("m", {})),
        (b'{"id":"x","result":null}', Response("x")),
        (b'{"id":1,"result":{"a":[]},"error":null}', Response(1, {"a": []})),
        (b'{"id":1,"result":null,"error":{"code":2}}', Response(1, None, {"code": 2})),
        (b'{"id":1,"error":null}', Response(1, None, {})),
        (b'{"id":1,"error":"bad"}', Response(1, None, {})),
        (b'{"method":null,"id":1,"result":2}', Response(1, 2)),
        (b' {"method":"m"}\r\n', Notification("m", {})),
        (b'{"m\\u0065thod":"session\\/prompt"}', Notification("session/prompt", {})),
    ],
)
def test_a_line_is_the_message_that_it_says(line: bytes, message: object) -> None:
    assert parse(line) == message


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"[]", b'[{"method":"m"}]', b"1", b"null", b"{}", b'{"id":1}', b'{"method":1}', b"npm WARN", b"{" * 9],
)
def test_a_line_that_is_no_single_message_is_none(line: bytes) -> None:
    assert parse(line) is None


def test_numbers_keep_every_digit() -> None:
    message = parse(b'{"method":"m","params":{"a":0.1000000000000000055,"b":1e2,"c":12345678901234567890123}}')
    assert isinstance(message, Notification)
    assert message.params == {"a": Decimal("0.1000000000000000055"), "b": Decimal("1E+2"), "c": 12345678901234567890123}


@pytest.mark.parametrize("text", ["\\ud83d", "\\udc00\\ud800", "\xff"])
def test_text_that_is_no_text_does_not_hide_a_message(text: str) -> None:
    message = parse(f'{{"id":1,"method":"m","params":{{"text":"{text}"}}}}'.encode("latin-1"))
    assert isinstance(message, Request)
    assert message.method == "m"


@pytest.mark.parametrize(
    "before", ["\t", "\v", "\f", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\ufeff", " \ufeff\xa0"]
)
def test_blanks_that_a_peer_trims_do_not_hide_a_message(before: str) -> None:
    for line in (f'{before}{{"id":1,"method":"m"}}\n', f'{{"id":1,"method":"m"}}{before}\n'):
        assert parse(line.encode()) == Request(1, "m", {})
        assert peek_line(line.encode()).method == "m"
        assert may_be_object(line.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_what_python_would_guess_the_encoding_of_is_read(encoding: str) -> None:
    line = '{"id":1,"method":"m","params":{"text":"ä"}}'.encode(encoding) + b"\n"
    assert parse(line) == Request(1, "m", {"text": "ä"})
    assert peek_line(line).method == "m"


def test_numbers_of_any_length_hide_no_message() -> None:
    message = parse(b'{"id":1,"method":"m","params":{"n":%s,"f":0.%s}}' % (b"9" * 6000, b"9" * 6000))
    assert isinstance(message, Request)
    assert message.params["n"] == Decimal("9" * 6000)


@pytest.mark.parametrize("depth", [99, 100, 101, 1000, 5000, 100_000])
def test_what_is_nested_as_deep_as_anyone_likes_hides_no_message(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"]":', b"}"), (b'[ "\\"[", {"a":', b"}, 1]")):
        deep = opening * depth + b"1" + closing * depth
        message = parse(b'{"id":7,"params":{"a":%s,"sessionId":"s"},"method":"m"}' % deep)
        assert isinstance(message, Request)
        assert (message.id, message.method, message.params["sessionId"]) == (7, "m", "s")


@pytest.mark.parametrize(
    "value", [b"1e99999999999999999999", b"9" * 6000, b"[" * 100_000, b'{"a":' * 100_000, b"1." + b"1" * 100_000]
)
def test_values_beyond_all_bounds_do_no_harm(value: bytes) -> None:
    parse(b'{"id":' + value + b',"result":' + value + b"}")


@given(st.binary())
def test_any_bytes_are_read_without_raising(line: bytes) -> None:
    parse(line)


@given(st.dictionaries(st.sampled_from(["id", "method", "params", "result", "error", "jsonrpc"]), JSON | st.just("m")))
def test_any_object_is_read_without_raising(value: dict[str, Any]) -> None:
    message = parse(json.dumps(value).encode())
    assert (message is None) == (
        not isinstance(value.get("method"), str)
        and (value.get("method") is not None or "id" not in value or not {"result", "error"} & value.keys())
    )


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, True), (0, False), (None, "None"), (0, None), (1, 1.5)])
def test_ids_of_different_types_are_different(one: Any, other: Any) -> None:
    assert id_key(one) != id_key(other)


def test_a_number_is_the_same_id_however_it_is_written() -> None:
    assert id_key(1) == id_key(Decimal("1.0")) == id_key(Decimal("1E+0"))


def test_an_id_in_use_by_both_sides_is_two_ids() -> None:
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, 0, "asked by the client")
    pairing.add(Side.CLIENT, 0, "asked by the agent")
    assert pairing.take(Side.CLIENT, 0) == "asked by the agent"
    assert pairing.take(Side.AGENT, 0) == "asked by the client"


def test_an_id_used_again_while_open_queues_up() -> None:
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, 7, "first")
    pairing.add(Side.AGENT, 7, "second")
    assert [pairing.take(Side.AGENT, 7) for _ in range(3)] == ["first", "second", None]


def test_an_answered_request_is_forgotten() -> None:
    pairing: Pairing[int] = Pairing()
    for number in range(10):
        pairing.add(Side.AGENT, number, number)
        assert pairing.peek(Side.AGENT, number) == pairing.take(Side.AGENT, number) == number
    assert len(pairing) == 0


def test_an_id_that_comes_back_rounded_is_still_found() -> None:
    """Agents that know only doubles give 2**53 + 1 back as 2**53."""
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, "9007199254740993", "text")
    pairing.add(Side.AGENT, 2**53 + 1, "odd")
    pairing.add(Side.AGENT, 12345678901234567891, "long")
    assert pairing.take(Side.AGENT, 2**53 + 2) is None
    assert pairing.take(Side.CLIENT, 2**53) is None
    assert pairing.take(Side.AGENT, 2**53) == "odd"
    assert pairing.take(Side.AGENT, 2**53) is None
    assert pairing.take(Side.AGENT, 12345678901234567168) == "long"


def test_an_exact_id_wins_over_a_rounded_one() -> None:
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, 2**60 + 1, "first")
    pairing.add(Side.AGENT, 2**60, "second")
    assert pairing.take(Side.AGENT, 2**60) == "second"
    assert pairing.take(Side.AGENT, 2**60) == "first"


def test_an_answer_by_the_text_of_a_number_is_that_to_the_number() -> None:
    pairing: Pairing[str] = Pairing()
    for number in (3, 4, -5, 2**62):
        pairing.add(Side.AGENT, number, str(number))
    assert not pairing.has(Side.AGENT, "3")
    for text in ("3", "-5", str(2**62)):
        assert pairing.answered(Side.AGENT, text) == text
        assert pairing.take(Side.AGENT, text) == text
        assert pairing.take(Side.AGENT, text) is None
    for text in ("04", "4.0", " 4", "+4", "٤", "4e0", "", "-", "9" * 5000):
        assert pairing.take(Side.AGENT, text) is None
    assert pairing.take(Side.CLIENT, "4") is None


def test_a_request_whose_id_is_that_very_text_is_answered_first() -> None:
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, 3, "number")
    pairing.add(Side.AGENT, "3", "text")
    assert [pairing.take(Side.AGENT, "3") for _ in range(2)] == ["text", "number"]


@given(st.lists(st.tuples(st.sampled_from(Side), JSON)))
def test_any_ids_pair_without_raising(ids: list[tuple[Side, Any]]) -> None:
    pairing: Pairing[int] = Pairing()
    for number, (side, value) in enumerate(ids):
        pairing.add(side, value, number)
    for side, value in ids:
        assert pairing.peek(side, value) is not None
        pairing.take(side, value)
    assert len(pairing) == 0
