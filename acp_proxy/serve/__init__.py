"""`acp-proxy serve`: the page, metrics and health over HTTP. Reads the ledger, never a relay.

It writes nothing to the ledger but what became of notices, and takes over what came of a proxy that died, as any
command does. starlette and uvicorn are imported only in this package.
"""
