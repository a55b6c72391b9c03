#!/usr/bin/env bash
# opentelemetry-sdk 1.45.2: the name of an instrument is exported in lower case.
# Guess: a name goes out as it was given. The specification says that `acp.turns` and `ACP.Turns` are the same
# instrument for the SDK, so the second is refused or warned about; elsewhere, such as in Prometheus, they are two.
# Seen: `ACP.Turns` is exported as `acp.turns`, and what is added to the one is in the other. Nothing is logged.
source "$(dirname "$0")/common.sh"
install opentelemetry-sdk==1.45.2
cat >ask.py <<'END'
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
meter = MeterProvider([reader]).get_meter("example")
for name, amount in (("acp.turns", 1), ("ACP.Turns", 10), ("ACP.Errors", 100)):
    meter.create_counter(name).add(amount)
for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
    print(metric.name, *(point.value for point in metric.data.data_points), end="; ")
END
expect 'metrics' 'acp.turns 11; acp.errors 100; ' "$(python ask.py 2>&1)"
