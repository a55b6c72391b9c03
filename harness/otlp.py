"""What an exporter has sent, read with opentelemetry-proto; and as what Prometheus keeps of it.

Debian's Prometheus has no receiver of OTLP. The rules for names are those of its documentation, with suffixes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Sample = tuple[str, frozenset[tuple[str, str]]]  # name and labels

_SUFFIXES = {"s": "seconds", "By": "bytes", "1": "ratio"}


def metrics_of(request: bytes) -> ExportMetricsServiceRequest:
    found: ExportMetricsServiceRequest = ExportMetricsServiceRequest.FromString(_plain(request))
    return found


def spans_of(request: bytes) -> list[Span]:
    found = ExportTraceServiceRequest.FromString(_plain(request))
    return [span for of in found.resource_spans for scope in of.scope_spans for span in scope.spans]


def records_of(request: bytes) -> list[LogRecord]:
    found = ExportLogsServiceRequest.FromString(_plain(request))
    return [record for of in found.resource_logs for scope in of.scope_logs for record in scope.log_records]


def resource_of(request: bytes) -> dict[str, Any]:
    """Of a request of any signal: they have it in the same place."""
    (one,) = metrics_of(request).resource_metrics
    return values_of(one.resource.attributes)


def each_metric(request: bytes) -> Iterator[Metric]:
    for of in metrics_of(request).resource_metrics:
        for scope in of.scope_metrics:
            yield from scope.metrics


def values_of(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def in_prometheus(request: bytes) -> dict[Sample, float]:
    """The samples that Prometheus makes of a request, but for the labels of its target."""
    samples: dict[Sample, float] = {}
    for metric in each_metric(request):
        for name, labels, value in _samples(metric):
            key = (name, frozenset(labels.items()))
            assert key not in samples, f"twice: {key}"
            samples[key] = value
    return samples


def _samples(metric: Metric) -> Iterator[tuple[str, dict[str, str], float]]:
    name = _name(metric)
    if metric.HasField("histogram"):
        for point in metric.histogram.data_points:
            yield from _of_histogram(name, point)
        return
    points = metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points
    for each in points:
        yield name, _labels(each.attributes), each.as_double if each.HasField("as_double") else each.as_int


def _of_histogram(name: str, point: HistogramDataPoint) -> Iterator[tuple[str, dict[str, str], float]]:
    labels, below = _labels(point.attributes), 0
    for bound, count in zip((*map(repr, point.explicit_bounds), "+Inf"), point.bucket_counts, strict=True):
        below += count
        yield f"{name}_bucket", {**labels, "le": bound}, below
    yield f"{name}_sum", labels, point.sum
    yield f"{name}_count", labels, point.count


def _name(metric: Metric) -> str:
    """Words between underscores, then its unit and `total`, neither of them twice."""
    words = [word for word in re.split(r"[^A-Za-z0-9]", metric.name) if word]
    unit = "" if metric.unit.startswith("{") else _SUFFIXES.get(metric.unit, metric.unit)
    if unit == "ratio":
        unit = "ratio" if metric.HasField("gauge") else ""
        words = [word for word in words if word != unit]
    if unit and unit not in words:
        words.append(unit)
    if metric.HasField("sum") and metric.sum.is_monotonic:
        words = [*(word for word in words if word != "total"), "total"]
    return "_".join(words)


def _labels(attributes: Iterable[KeyValue]) -> dict[str, str]:
    return {re.sub(r"[^A-Za-z0-9_]", "_", each.key): str(_value(each.value)) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


def _plain(request: bytes) -> bytes:
    return gzip.decompress(request) if request.startswith(b"\x1f\x8b") else request


def by_labels(samples: Mapping[Sample, float], name: str) -> dict[frozenset[tuple[str, str]], float]:
    return {labels: value for (found, labels), value in samples.items() if found == name}
