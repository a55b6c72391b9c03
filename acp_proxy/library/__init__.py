"""The relay as a library inside another program, with usage as a list."""
