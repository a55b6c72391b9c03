"""A ledger in a file. Importing this imports nothing: who only looks needs half of it."""
