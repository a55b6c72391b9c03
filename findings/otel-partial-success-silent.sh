#!/usr/bin/env bash
# opentelemetry-exporter-otlp-proto-http 1.45.2: spans that a receiver rejects in a partial success are lost in silence.
# Guess: an answer of 200 that says "1 span rejected: too old" is logged as a warning, as the protocol asks of clients.
# Seen: the exporter reports success, and logs nothing: the answer is not read.
source "$(dirname "$0")/common.sh"
install opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2
cat >ask.py <<'END'
import http.server, logging, threading
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

answer = ExportTraceServiceResponse()
answer.partial_success.rejected_spans = 1
answer.partial_success.error_message = "too old"


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        content = answer.SerializeToString()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Told(OTLPSpanExporter):
    def export(self, spans):
        result = super().export(spans)
        print(result.name)
        return result


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
logging.basicConfig(level=logging.INFO)
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Told(endpoint=f"http://127.0.0.1:{server.server_port}/v1/traces")))
with provider.get_tracer("example").start_as_current_span("turn"):
    pass
END
expect 'result, and what is logged' 'SUCCESS' "$(python ask.py 2>&1)"
