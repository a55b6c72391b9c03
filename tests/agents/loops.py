"""Tests of what runs on an event loop run on both that there are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from tests.agents.client import LIMIT

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


def on(loop: Loop, test: Callable[[], Awaitable[None]]) -> None:
    """Runs a test on a loop of that kind, for so long as anything may take. What fails on the loop fails the test."""

    async def bounded() -> None:
        failed: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        async with asyncio.timeout(LIMIT):
            await test()
        assert failed == []

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(bounded())
