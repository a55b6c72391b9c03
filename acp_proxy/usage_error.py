"""A mistake in a command line, wherever it is found. Imported before the agent runs, so it imports nothing."""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be understood; the text is one line for the user, and the exit status is 2."""
