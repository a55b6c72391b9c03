"""A ledger in an SQLite file. Importing this imports nothing: read-only callers need half of it."""
