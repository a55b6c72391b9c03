"""Where it is midday now: today began hours ago there, and lasts for hours, whenever the tests are run."""

from __future__ import annotations

import time

_NOON = 12  # o'clock
_HOUR = 3600  # seconds


def midday() -> str:
    """The name of a time zone in which it is between twelve and one."""
    ahead = _NOON - int(time.time()) // _HOUR % 24  # hours, -11 to 12
    return f"Etc/GMT{-ahead:+d}"  # these names count hours that a zone is behind
