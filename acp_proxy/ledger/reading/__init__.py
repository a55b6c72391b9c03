"""Reads a ledger. Imports nothing that writes: commands that only look are started again and again."""
