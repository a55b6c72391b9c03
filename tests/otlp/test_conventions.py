"""What is sent, held against the model of the semantic conventions: names, units, kinds, types, values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from acp_proxy.catalog import Catalog
from acp_proxy.core.entry import ToolCall, ToolSum, Work
from acp_proxy.ledger import open_ledger
from acp_proxy.otlp.providers import provider
from acp_proxy.otlp.settings import SIGNALS
from acp_proxy.system.ids import uuid7
from harness.otlp import each_metric, metrics_of, records_of, spans_of, values_of
from harness.rows import NOON, line, row
from tests.notify.receiver import receiving
from tests.otlp.house import house

MODEL = json.loads((Path(__file__).parent / "conventions.json").read_bytes())
TYPES = {"string": "string_value", "int": "int_value", "string[]": "array_value"}
OURS = "acp_proxy."
WORK = Work(
    None, (ToolCall("read", 1, 50, "completed"), ToolCall("edit", 9, 10, "failed")), (ToolSum("read", 2, 1, 60),)
)
MODELS = ("claude-opus-5-5", "gpt-6.1-sol", "gemini-3-pro", "grok-4", "deepseek-chat", "mistral-large-latest")


async def everything(directory: Path) -> dict[str, list[bytes]]:
    """Requests of each signal, of turns of many makers, one of which crashed and one of which was corrected."""
    used: Any = {"input": 10, "cached_read": 200, "cached_write": 30, "output": 5, "thought": 7}
    rows = [row(line(model, "1", **used), id=uuid7(NOON + number)) for number, model in enumerate(MODELS)]
    rows[0] = replace(rows[0], entry=replace(rows[0].entry, work=WORK))
    rows[1] = replace(rows[1], entry=replace(rows[1].entry, stop_reason="crashed"))
    settings = "[otlp]\ngen_ai = true\ntoken_histogram = true\n"
    async with receiving() as receiver, house(directory, receiver, settings) as at:
        for signal in SIGNALS[1:]:
            await at.stream(signal).round()
        at.append(*rows)
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            after = replace(rows[2], entry=replace(rows[2].entry, lines=(line(MODELS[2], "2", input=9, output=3),)))
            assert ledger.correct(replace(rows[2], state=None), after, NOON)
        for signal in (*SIGNALS[1:], "metrics"):
            await at.stream(signal).round()
    return {
        signal: [body for request, _, body in receiver.requests if f"/v1/{signal}" in request] for signal in SIGNALS
    }


async def test_names_units_types_and_values_are_those_of_the_conventions(tmp_path: Path) -> None:
    sent = await everything(tmp_path)
    metrics = {each.name: each for body in sent["metrics"] for each in each_metric(body)}
    theirs = {name: each for name, each in metrics.items() if not name.startswith(OURS)}
    assert set(theirs) == set(MODEL["metrics"])
    for name, metric in theirs.items():
        expected = MODEL["metrics"][name]
        data = metric.sum if expected["instrument"] == "counter" else metric.histogram
        assert metric.WhichOneof("data") == {"counter": "sum", "histogram": "histogram"}[expected["instrument"]], name
        assert metric.unit == expected["unit"], name
        for point in data.data_points:
            assert set(expected["required"]) <= {each.key for each in point.attributes}, name
    named = {key for attributes in _attributes(sent) for key in _checked(attributes)}
    assert named == set(MODEL["attributes"]), "every attribute that is listed is sent"


def _attributes(sent: dict[str, list[bytes]]) -> Iterator[Iterable[KeyValue]]:
    for body in sent["metrics"]:
        for of in metrics_of(body).resource_metrics:
            yield of.resource.attributes
        for metric in each_metric(body):
            data: Any = getattr(metric, metric.WhichOneof("data") or "sum")
            yield from (point.attributes for point in data.data_points if not metric.name.startswith(OURS))
    for body in sent["traces"]:
        yield from (span.attributes for span in spans_of(body))
    for body in sent["logs"]:
        yield from (record.attributes for record in records_of(body))


def _checked(attributes: Iterable[KeyValue]) -> Iterator[str]:
    values = values_of(attributes)
    for each in attributes:
        if each.key.startswith(OURS):
            continue
        assert each.key in MODEL["attributes"], f"no attribute of the conventions: {each.key}"
        assert each.value.WhichOneof("value") == TYPES[MODEL["attributes"][each.key]], each.key
        known = MODEL["values"].get(each.key)
        if known and each.key != "gen_ai.provider.name":  # others may be their own
            assert values[each.key] in known, each.key
        yield each.key


def test_a_maker_that_the_conventions_name_has_that_name() -> None:
    """Else dashboards would have two of one."""
    catalog = Catalog()
    names = {model: provider(catalog, model) for model in MODELS}
    known = set(MODEL["values"]["gen_ai.provider.name"])
    assert {name for name in names.values() if name} <= known, names
