"""Examples of interceptors for acp-proxy."""
