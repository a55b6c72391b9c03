"""Tells people elsewhere what the ledger has noted, by webhooks: `notifier.Notifier` runs within `acp-proxy serve`.

Reads the ledger, never the relay. What it needs from other packages is imported in `sending` alone.
"""
