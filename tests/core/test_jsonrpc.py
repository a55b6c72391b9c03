"""Messages read off lines, and responses paired with requests."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import (
    Notification,
    Pairing,
    Request,
    Response,
    are_alike,
    breaks_within,
    comes_back,
    id_key,
    is_number_or_text,
    is_plain,
    may_ask,
    may_be_batch,
    may_be_object,
    may_round,
    parse,
    parse_batch,
)
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
    [
        b"",
        b"\n",
        b"[]",
        b'[{"method":"m"}]',
        b"1",
        b"null",
        b"{}",
        b'{"id":1}',
        b'{"method":1}',
        b'{"method":1,"id":2,"result":3}',
        b"npm WARN",
        b"{" * 9,
    ],
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
    "before",
    [
        "\t",
        "\v",
        "\f",
        "\x1c",
        "\x85",
        "\xa0",
        "\u1680",
        "\u2000",
        "\u2003",
        "\u200a",
        "\u2028",
        "\u3000",
        "\ufeff",
        " \ufeff\xa0",
    ],
)
def test_blanks_that_a_peer_trims_do_not_hide_a_message(before: str) -> None:
    for line in (f'{before}{{"id":1,"method":"m"}}\n', f'{{"id":1,"method":"m"}}{before}\n'):
        assert parse(line.encode()) == Request(1, "m", {})
        assert peek_line(line.encode()).method == "m"
        assert may_be_object(line.encode())


@pytest.mark.parametrize("before", ["\x0e", "\x1b", "!", "\u200b", "\u180e"])
def test_what_no_peer_trims_is_no_blank(before: str) -> None:
    line = f'{before}{{"id":1,"method":"m"}}\n'.encode()
    assert parse(line) is None
    assert not may_be_object(line)


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
    for number in (3, 4, -5, 2**62, -(2**63), 10**20):
        pairing.add(Side.AGENT, number, str(number))
    assert not pairing.has(Side.AGENT, "3")
    for text in ("3", "-5", str(2**62), str(-(2**63))):
        assert pairing.answered(Side.AGENT, text) == text
        assert pairing.take(Side.AGENT, text) == text
        assert pairing.take(Side.AGENT, text) is None
    for text in ("04", "4.0", " 4", "+4", "٤", "4e0", "", "-", "9" * 5000, str(10**20)):
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


@pytest.mark.parametrize(
    "id", [0, -5, 10**21 - 1, 1 - 10**21, Decimal("2.0"), Decimal(2**53 - 1), "", "a", "\ud7ff", "\ue000"]
)
def test_a_text_or_a_whole_number_that_no_peer_rounds_comes_back(id: Any) -> None:
    assert comes_back(id) is True


@pytest.mark.parametrize(
    "id",
    [
        True,
        False,
        None,
        10**21,
        -(10**21),
        Decimal("0.5"),
        Decimal("NaN"),
        Decimal(2**53),
        "a\ud800",
        "\udfffa",
        [],
        {},
    ],
)
def test_an_id_that_some_peer_writes_otherwise_may_not_come_back(id: Any) -> None:
    assert comes_back(id) is False


@pytest.mark.parametrize("id", [0, 2**53 - 1, 1 - 2**53, "", "a", "1.0", "1e3", "01"])
def test_an_id_that_no_peer_takes_for_another_is_plain(id: Any) -> None:
    assert is_plain(id) is True


@pytest.mark.parametrize("id", [2**53, -(2**53), "3", "-3", "ä", None, True, Decimal(1), [1]])
def test_an_id_that_some_peer_may_take_for_another_is_not_plain(id: Any) -> None:
    assert is_plain(id) is False


@pytest.mark.parametrize(
    ("id", "answers"), [(1, True), ("1", True), (Decimal("1.5"), True), (True, False), (None, False), ([], False)]
)
def test_agents_answer_by_numbers_and_texts(id: Any, answers: bool) -> None:
    assert is_number_or_text(id) is answers


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (2**53, 2**53 + 1, True),
        (2**53 + 1, 2**53 + 2, False),
        (2**53, "9007199254740992", False),
        ("a", "a", True),
        ("a", "b", False),
        (10**300, 10**300 + 1, True),
        (10**400, 10**400 + 1, False),
        (2**53, Decimal("9007199254740992.5"), False),
        (None, False, False),
    ],
)
def test_numbers_are_alike_that_a_peer_with_doubles_takes_for_one(one: Any, other: Any, alike: bool) -> None:
    assert are_alike(id_key(one), id_key(other)) is alike


@pytest.mark.parametrize(("id", "rounded"), [(2**53, True), (-(2**53), True), (2**53 - 1, False), ("9" * 30, False)])
def test_only_a_large_number_is_rounded(id: Any, rounded: bool) -> None:
    assert may_round(id) is rounded


@pytest.mark.parametrize(
    "line",
    [b'[{"method":"m"}]', b"[", b" \t[ \n{", b"\xef\xbb\xbf[{", b"[" + b" " * 1022 + b"{", b"[" + b" " * 1500 + b"x"],
)
def test_a_line_may_be_an_array_of_objects_as_far_as_it_goes(line: bytes) -> None:
    assert may_be_batch(line) is True


@pytest.mark.parametrize("line", [b"[1]", b"[x] log {", b'{"a":[{}]}', b"[[{}]]", b"", b"  ", b"x[{"])
def test_a_line_that_begins_otherwise_is_no_array_of_objects(line: bytes) -> None:
    assert may_be_batch(line) is False


def test_of_an_array_each_message_is_read_and_what_else_stands_in_it_is_left_out() -> None:
    line = b'[{"id":1,"method":"m"},7,[],{"method":"n"},{},{"id":2,"result":3}]'
    assert parse_batch(line) == [Request(1, "m", {}), Notification("n", {}), Response(2, 3)]
    assert parse(line) is None
    for other in (b'{"id":1,"method":"m"}', b"[7]", b"[", b"[{", b""):
        assert parse_batch(other) == []


@pytest.mark.parametrize(
    ("line", "breaks"),
    [
        (b"a\rb\n", True),
        (b"\ra\n", True),
        (b"a\r\n", False),
        (b"a\n", False),
        (b"a\r", False),
        (b"\rab", True),
        (b"", False),
    ],
)
def test_a_line_breaks_within_where_a_carriage_return_is_not_its_end(line: bytes, breaks: bool) -> None:
    assert breaks_within(line) is breaks


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        (b'[1,{"id":1,"method":"m"}]', True),  # each of an array
        (b'[{"method":"m"},{"id":1,"result":2}]', False),  # nobody answers these
        (b'[{"id":1,"result":"method"}]', False),
        (b'"method"', False),  # one value, and none that asks
        (b"17", False),
        (b'{"id":1,"result":2}{"id":1,"method":"m"}', True),  # two values, of which some take one
        (b'{"id":1,"m\\u0065thod":"m"', True),  # spelled otherwise
        (b'{"id":1,method:"m"}', True),  # without quotes
        (b'{\0"\0i\0d\0"\0', True),  # in another encoding
        (b'{"id":1,"result":2}\r{"id":1,"method":"m"}\n', True),  # two lines to some
        (b'17\r{"method":1}\n', True),
        (b"npm WARN", False),
    ],
)
def test_a_line_that_is_no_message_may_ask_one_who_reads_it_otherwise(line: bytes, asks: bool) -> None:
    assert may_ask(line) is asks


def test_a_request_is_open_until_it_is_answered() -> None:
    pairing: Pairing[int] = Pairing()
    ids: list[Any] = [1, -(2**53) + 1, 2**53 - 1, 2**53, "1", None, Decimal("0.5")]
    for number, name in enumerate(ids):
        assert not pairing.has(Side.AGENT, name)
        assert pairing.peek(Side.AGENT, name) is None
        pairing.add(Side.AGENT, name, number)
        assert pairing.has(Side.AGENT, name)
        assert not pairing.has(Side.CLIENT, name)
        assert pairing.take(Side.AGENT, name) == number
        assert not pairing.has(Side.AGENT, name)
    pairing.add(Side.AGENT, 2**53 + 1, 1)
    assert pairing.has(Side.AGENT, 2**53)
    pairing.clear()
    assert len(pairing) == 0
    assert not pairing.has(Side.AGENT, 2**53)


def test_of_ids_that_are_lists_in_lists_as_deep_as_can_be_all_are_one() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert id_key(deep) == ("other", "")
    assert id_key([1]) == ("other", "[1]")


def test_a_number_beyond_what_a_decimal_holds_is_none() -> None:
    message = parse(b'{"method":"m","params":{"n":1e99999999999999999999}}')
    assert isinstance(message, Notification)
    assert message.params["n"].is_nan()
