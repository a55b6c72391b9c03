"""OTLP out of the ledger, read as a collector reads it."""
