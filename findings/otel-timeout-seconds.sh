#!/usr/bin/env bash
# opentelemetry-exporter-otlp-proto-http 1.45.2: OTEL_EXPORTER_OTLP_TIMEOUT is taken for seconds.
# Guess: a timeout among OpenTelemetry's variables is milliseconds, as their specification says of every duration, so
# 2 gives up at once, and 10000 is ten seconds.
# Seen: 2 waits for two seconds. What is meant as ten seconds would be nearly three hours.
source "$(dirname "$0")/common.sh"
install opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2
cat >ask.py <<'END'
import os, socket, time
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

listener = socket.create_server(("127.0.0.1", 0))  # takes connections, and never answers
os.environ["OTEL_EXPORTER_OTLP_TIMEOUT"] = "2"
exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
began = time.monotonic()
with provider.get_tracer("example").start_as_current_span("turn"):
    pass
print(f"{time.monotonic() - began:.1f}")
END
seconds=$(python ask.py 2>/dev/null)
printf 'seconds until it gave up: %s\n' "$seconds"
expect 'between one and a half and four seconds' yes "$(awk -v s="$seconds" 'BEGIN { print (s > 1.5 && s < 4) ? "yes" : "no" }')"
