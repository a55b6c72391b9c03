"""Notifications to systemd: ready, watchdog, stopping. See sd_notify(3).

Does nothing without systemd's socket, and ignores a socket that accepts nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

_PATIENCE = 1.0  # seconds in which systemd may make room for a message
_LONGEST = 18  # digits


@asynccontextmanager
async def telling(environ: Mapping[str, str]) -> AsyncIterator[None]:
    """From when it answers until it is to end."""
    address = environ.get("NOTIFY_SOCKET", "")
    _tell(address, "READY=1")
    turning = asyncio.create_task(_turning(address, _between(environ)))
    try:
        yield
    finally:
        turning.cancel()
        _tell(address, "STOPPING=1")


async def _turning(address: str, between: float | None) -> None:
    """Runs in the serving loop: a hung loop sends nothing, and systemd restarts the process."""
    while between is not None:
        _tell(address, "WATCHDOG=1")
        await asyncio.sleep(between)


def _between(environ: Mapping[str, str]) -> float | None:
    """Seconds from one sign of life to the next, half of what may pass; None where none are waited for."""
    longest = environ.get("WATCHDOG_USEC", "")
    if not (longest.isascii() and longest.isdigit() and len(longest) <= _LONGEST and int(longest)):
        return None
    if environ.get("WATCHDOG_PID") not in (None, str(os.getpid())):  # another process has to give them
        return None
    return int(longest) / 2_000_000


def _tell(address: str, state: str) -> None:
    if address[:1] not in ("/", "@"):  # of a virtual machine, or no address
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.settimeout(_PATIENCE)
        told.connect(f"\0{address[1:]}" if address[0] == "@" else address)
        told.send(state.encode())
