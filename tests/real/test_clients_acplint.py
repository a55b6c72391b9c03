"""acplint says the same of an agent with and without acp-proxy in front of it."""

from __future__ import annotations

import asyncio
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.clients import SDK_AGENT
from tests.real.clients.linting import QUICK, details, report, verdicts
from tests.real.runs import PROXY

RELAY = [*PROXY, "run", "--"]
STRICT = [sys.executable, SDK_AGENT]
LENIENT = [sys.executable, "-m", "acp_proxy.demo_agent"]
STREAMED = "session_update_schema_valid"  # acplint's name of the test that counts updates by their kind


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


async def both(agent: list[str], environment: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    home = Path(environment["HOME"])
    direct = report(agent, environment, home / "direct.json")
    relayed = report([*RELAY, *agent], environment, home / "relayed.json")
    first, second = await asyncio.gather(direct, relayed)
    assert {result["category"] for result in first["results"]} == set(QUICK)
    return first, second


async def both_alike(
    agent: list[str], environment: dict[str, str], alike: Callable[[Any, Any], bool]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Again where they are not: acplint waits for answers for so many seconds, which a slow machine may take."""
    for _ in range(3):
        direct, relayed = await both(agent, environment)
        if alike(direct, relayed):
            break
    return direct, relayed


async def test_of_an_agent_that_refuses_its_prompts_the_report_is_the_same(environment: dict[str, str]) -> None:
    """acplint writes them wrongly, so there is no turn, and nothing to add."""
    direct, relayed = await both_alike(STRICT, environment, operator.eq)
    assert relayed == direct


async def test_of_an_agent_that_answers_them_only_usage_updates_are_more(environment: dict[str, str]) -> None:
    direct, relayed = await both_alike(LENIENT, environment, lambda one, other: verdicts(one) == verdicts(other))
    assert verdicts(relayed) == verdicts(direct)
    assert details(relayed, STREAMED) == details(direct, STREAMED) | {"usage_update": 1}
