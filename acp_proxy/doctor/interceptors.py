"""The check of `doctor` for interceptors of other packages: creates one of each, as `run` does, and closes it."""

from __future__ import annotations

import asyncio

from acp_proxy.interceptor import Interceptor
from acp_proxy.plugins import found

_CLOSING = 2.0  # seconds, as long as the relay waits


def interceptor_troubles() -> list[tuple[str, str]]:
    """Each in words, with what is wrong with it; empty when nothing is."""
    return asyncio.run(_tried())  # those that want a loop have one in the relay as well


async def _tried() -> list[tuple[str, str]]:
    return [
        (f"{name}: {type(one).__qualname__} of {type(one).__module__}", await _closed(one))
        if isinstance(one, Interceptor)
        else (name, f"not loaded: {one}")
        for name, one in found()
    ]


async def _closed(interceptor: Interceptor) -> str:
    try:
        async with asyncio.timeout(_CLOSING):
            await interceptor.aclose()
    except (Exception, asyncio.CancelledError) as error:  # another's fault, and the rest is still to be examined
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise  # somebody interrupts us
        return f"its aclose failed: {error!r}"
    return ""
