"""The relay inside another program, and what was used as a list."""
