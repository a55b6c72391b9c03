"""Metrics by the conventions for generative AI: with their names, and with what these mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from acp_proxy.core.entry import ToolCall, ToolSum, Work
from acp_proxy.ledger import Row
from acp_proxy.system.ids import uuid7
from harness.otlp import each_metric, values_of
from harness.rows import NOON, line, row
from tests.notify.receiver import Receiver, receiving
from tests.otlp.house import house

ALL = {"input": 10, "cached_read": 200, "cached_write": 30, "output": 5, "thought": 7}
OPT_IN = "gen_ai_latest_experimental"
OLDER = "[otlp]\ntoken_histogram = true\n"


def turn(number: int, work: Work | None = None) -> Row:
    return row(line("claude-opus-5-5", "1", "USD", **ALL), id=uuid7(NOON + number), work=work)


def last(receiver: Receiver) -> dict[str, Metric]:
    found = [body for first, _, body in receiver.requests if "/v1/metrics" in first]
    return {metric.name: metric for metric in each_metric(found[-1])}


def numbers(metric: Metric) -> list[Any]:
    return [point.as_int for point in metric.sum.data_points]


async def test_nothing_of_them_is_sent_without_the_opt_in(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        at.append(turn(1))
        await at.stream("metrics").round()
        assert not [name for name in last(receiver) if name.startswith("gen_ai")]


async def test_their_input_has_the_caches_inside_and_their_output_reasoning(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_SEMCONV_STABILITY_OPT_IN=OPT_IN) as at:
        at.append(turn(1), turn(2))
        await at.stream("metrics").round()
        found = last(receiver)
        usage = {name: numbers(metric) for name, metric in found.items() if ".usage." in name}
        assert usage == {
            "gen_ai.client.inference.usage.input_tokens": [480],
            "gen_ai.client.inference.usage.output_tokens": [24],
            "gen_ai.client.inference.usage.cache_read.input_tokens": [400],
            "gen_ai.client.inference.usage.cache_write.input_tokens": [60],
            "gen_ai.client.inference.usage.reasoning.output_tokens": [14],
        }
        metric = found["gen_ai.client.inference.usage.input_tokens"]
        assert metric.unit == "{token}"
        assert values_of(metric.sum.data_points[0].attributes) == {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.token.modality": "text",
            "gen_ai.request.model": "claude-opus-5-5",
            "gen_ai.response.model": "claude-opus-5-5",
        }
        ours = [point.as_int for point in found["acp_proxy.tokens"].sum.data_points]
        assert sum(ours) == 2 * sum(ALL.values())


WORK = Work(None, (ToolCall("read", 5, 1500, "completed"), ToolCall("edit", 9)), (ToolSum("read", 3, 0, 1500),))


async def test_turns_and_tool_calls_have_histograms_that_go_on_over_restarts(tmp_path: Path) -> None:
    async with receiving() as receiver:
        for number in range(3):
            async with house(tmp_path, receiver, OLDER, OTEL_SEMCONV_STABILITY_OPT_IN=OPT_IN) as at:
                await at.stream("traces").round()
                at.append(turn(number, WORK))
                await at.stream("traces").round()
                await at.stream("metrics").round()
        found = last(receiver)
        (duration,) = found["gen_ai.invoke_agent.duration"].histogram.data_points
        assert (duration.count, duration.sum, found["gen_ai.invoke_agent.duration"].unit) == (3, 180.0, "s")
        assert values_of(duration.attributes)["gen_ai.agent.name"] == "claude-agent-acp"
        (calls,) = found["gen_ai.invoke_agent.tool_calls"].histogram.data_points
        assert (calls.count, calls.sum) == (3, 9.0)
        (tool,) = found["gen_ai.execute_tool.duration"].histogram.data_points
        assert (tool.count, tool.sum, values_of(tool.attributes)["gen_ai.tool.name"]) == (3, 4.5, "read")
        older = found["gen_ai.client.token.usage"]
        by_type = {values_of(point.attributes)["gen_ai.token.type"]: point for point in older.histogram.data_points}
        assert {name: (point.count, point.sum) for name, point in by_type.items()} == {
            "input": (3, 720.0),
            "output": (3, 36.0),
        }
        assert list(by_type["input"].explicit_bounds) == [4.0**power for power in range(14)]
        assert by_type["input"].start_time_unix_nano == NOON


async def test_the_older_histogram_is_sent_only_where_it_is_wanted(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_SEMCONV_STABILITY_OPT_IN=OPT_IN) as at:
        await at.stream("traces").round()
        at.append(turn(1))
        await at.stream("traces").round()
        await at.stream("metrics").round()
        found = last(receiver)
        assert "gen_ai.invoke_agent.duration" in found
        assert "gen_ai.client.token.usage" not in found


async def test_histograms_need_no_receiver_of_spans(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        house(tmp_path, receiver, OTEL_TRACES_EXPORTER="none", OTEL_SEMCONV_STABILITY_OPT_IN=OPT_IN) as at,
    ):
        await at.stream("metrics").round()
        at.append(turn(1), turn(2))
        await at.stream("metrics").round()
        (duration,) = last(receiver)["gen_ai.invoke_agent.duration"].histogram.data_points
        assert duration.count == 2
