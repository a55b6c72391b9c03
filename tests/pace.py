"""How fast the machine is, for tests of what may take so many seconds."""

from __future__ import annotations

import subprocess
import sys
import time

_USUAL = 0.1  # seconds that it takes where limits were chosen


def slower() -> float:
    """How many times as long as usual a process takes to start, here and now; at least 1."""
    began = time.monotonic()
    for _ in range(3):
        subprocess.run([sys.executable, "-I", "-c", "import asyncio, json, sqlite3"], check=True)
    return max(1.0, (time.monotonic() - began) / 3 / _USUAL)
