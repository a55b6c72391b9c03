"""Trials: a client, a relay and an agent as processes, of which one fails, or what they stand on does."""
