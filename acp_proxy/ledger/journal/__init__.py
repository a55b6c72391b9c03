"""Journals, which survive a `kill -9`: rows that no ledger has yet, their owners, and their recovery."""
