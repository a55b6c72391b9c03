"""A ledger in a database, for a team."""
