"""`acp-proxy serve`: the page, metrics and health over HTTP. Reads the ledger, never a relay, and writes nothing to it.

What came of a proxy that died is taken over as by any command. starlette and uvicorn are imported only in this package.
"""
