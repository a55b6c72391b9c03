#!/usr/bin/env bash
# opentelemetry-exporter-otlp-proto-http 1.45.2: where no collector listens, `shutdown()` takes seven seconds.
# Guess: a refused connection on loopback fails at once, so a process that ends is not held up.
# Seen: the exporter retries with growing pauses during shutdown, 7.5 s in all.
source "$(dirname "$0")/common.sh"
install opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2
cat >ask.py <<'END'
import socket, time
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
exporter = OTLPMetricExporter(endpoint=f"http://127.0.0.1:{port}/v1/metrics")
provider = MeterProvider([PeriodicExportingMetricReader(exporter)])
provider.get_meter("example").create_counter("turns").add(1)
began = time.monotonic()
provider.shutdown()
print(f"{time.monotonic() - began:.1f}")
END
seconds=$(python ask.py 2>/dev/null)
printf 'seconds until shutdown returned: %s\n' "$seconds"
expect 'more than five seconds' yes "$(awk -v s="$seconds" 'BEGIN { print (s > 5) ? "yes" : "no" }')"
