"""Errors as lines for the user: a mistake in a command line, and the system's reasons. Imported before the agent runs.

Imports nothing.
"""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be understood; the text is one line for the user, and the exit status is 2."""


def reason_of(error: OSError) -> str:
    """The system's word as a line of ours ends with it: `no such file or directory`."""
    return (error.strerror or str(error)).lower()


def where_of(error: BaseException) -> str:
    """The kind of a fault and its place in the code, without what it says: that may be of somebody's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
    return type(error).__name__ + place
