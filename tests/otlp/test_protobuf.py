"""What is written by hand is read by protobuf's own classes, and the other way round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, NumberDataPoint

from acp_proxy.otlp.common import PartialSuccess, any_value, attribute, partial_success, status_message
from acp_proxy.otlp.protobuf import fields, fixed64, packed_double, packed_fixed64, signed64, text, whole
from harness.otlp import values_of

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(INTEGERS, st.integers(0, 2**64 - 1))
def test_integers_of_64_bits_arrive(number: int, time: int) -> None:
    point = NumberDataPoint.FromString(signed64(6, number) + fixed64(3, time) + whole(8, time % 2**32))
    assert (point.as_int, point.time_unix_nano, point.flags) == (number, time, time % 2**32)


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.floats(allow_nan=False)))
def test_packed_numbers_arrive(counts: list[int], bounds: list[float]) -> None:
    point = HistogramDataPoint.FromString(packed_fixed64(6, counts) + packed_double(7, bounds))
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == (counts, bounds)


VALUES = st.one_of(
    st.text(), st.booleans(), INTEGERS, st.floats(allow_nan=False), st.lists(st.text(), max_size=3).map(tuple)
)


@given(st.text(), VALUES)
def test_attributes_arrive(name: str, value: str | bool | int | float | tuple[str, ...]) -> None:
    name = name.encode("utf-8", "replace").decode()
    found = values_of(NumberDataPoint.FromString(attribute(7, name, value)).attributes)
    assert found == {name: _expected(value)}
    assert type(found[name]) is (list if isinstance(value, tuple) else type(value))


def _expected(value: object) -> object:
    if isinstance(value, tuple):
        return [_expected(each) for each in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def test_a_text_that_is_no_utf_8_does_not_spoil_the_rest() -> None:
    found = values_of(NumberDataPoint.FromString(attribute(7, "agent", "a\udce4b")).attributes)
    assert found == {"agent": "a?b"}


@given(st.integers(0, 2**63 - 1), st.text(alphabet="abc ä", max_size=100))
def test_what_was_rejected_is_read(rejected: int, message: str) -> None:
    response = ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = rejected
    response.partial_success.error_message = message
    assert partial_success(response.SerializeToString()) == PartialSuccess(rejected, message)


@given(st.binary())
def test_an_answer_that_is_something_else_rejects_nothing_or_what_it_says_and_raises_nothing(answer: bytes) -> None:
    assert partial_success(answer).rejected >= 0
    assert status_message(answer).isprintable()


def test_a_refusal_is_read_on_one_line_and_not_for_ever() -> None:
    assert status_message(whole(1, 3) + text(2, "no\nsuch " + "x" * 1000)) == ("nosuch " + "x" * 1000)[:200]


@pytest.mark.parametrize("cut", [b"\x0a\x05ab", b"\x09\x00", b"\x80", b"\x0b", b"\xff" * 11])
def test_a_message_that_is_cut_off_is_none(cut: bytes) -> None:
    with pytest.raises(ValueError, match="protobuf"):
        list(fields(cut))


def test_a_value_of_each_kind_is_written_as_its_own() -> None:
    assert any_value(True) != any_value(1) != any_value(1.0)
