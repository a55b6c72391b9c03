"""Writes to a ledger: rows, and copies of one ledger in another."""
