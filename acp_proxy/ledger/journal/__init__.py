"""What survives a `kill -9`: rows that no ledger has yet, whose they are, and who takes them over."""
