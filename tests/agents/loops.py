"""Tests of what runs on an event loop run on both that there are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from tests.agents.client import LIMIT

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


def on(loop: Loop, test: Callable[[], Awaitable[None]]) -> None:
    """Runs a test on a loop of that kind, for so long as anything may take."""

    async def bounded() -> None:
        async with asyncio.timeout(LIMIT):
            await test()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(bounded())
