"""Signing in: from what a request shows to who asks, and from an OpenID provider to a token for a machine.

`Authenticator` answers who asks; `routes` are what machines and browsers sign in by.
"""
