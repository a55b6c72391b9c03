"""OpenTelemetry from the ledger: metrics, spans and log records, sent by `serve` as OTLP over HTTP. Never by relays."""
