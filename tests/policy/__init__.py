"""A hub's policy as proxies follow it."""
