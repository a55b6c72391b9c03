"""Sends the ledger's notices to webhooks: `notifier.Notifier` runs within `acp-proxy serve`.

Reads the ledger, never the relay. Only `sending` imports packages of the extra.
"""
