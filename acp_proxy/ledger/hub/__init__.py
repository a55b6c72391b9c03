"""The backend that asks a hub over HTTP: `acp-proxy hub` keeps the ledger. It needs the standard library alone."""
