"""`acp-proxy serve`: the page, metrics and health over HTTP. Reads the ledger, never a relay.

It writes nothing to the ledger but what became of notices, and books what proxies left that died, as any command
does. starlette and uvicorn are imported only in this package.
"""
