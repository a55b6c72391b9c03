"""Errors as lines for the user: a mistake in a command line, and the system's reasons. Imported before the agent runs.

Imports nothing.
"""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be understood; the text is one line for the user, and the exit status is 2."""


def reason_of(error: OSError) -> str:
    """The system's word as a line of ours ends with it: `no such file or directory`."""
    return (error.strerror or str(error)).lower()
