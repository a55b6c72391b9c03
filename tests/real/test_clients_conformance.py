"""What the protocol's conformance kit asks for gets the same answers with and without acp-proxy."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.real.clients import SDK_AGENT
from tests.real.clients.conformance import Record, Subject, record
from tests.real.clients.judging import judged
from tests.real.runs import PROXY

AGENT = [sys.executable, SDK_AGENT]


@pytest.fixture
async def records(tmp_path: Path) -> tuple[Record, Record]:
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def subject(*command: str) -> Subject:
        return Subject(command, environment, tmp_path, version=1, long_prompt="wait", patience=20)

    return await asyncio.gather(record(subject(*AGENT)), record(subject(*PROXY, "run", "--", *AGENT)))


async def test_every_verdict_is_the_same(records: tuple[Record, Record]) -> None:
    direct, relayed = (judged(seen, 1) for seen in records)
    assert relayed == direct
    assert list(direct.values()).count("pass") > 20
    assert [name for name, verdict in direct.items() if verdict == "fail"] == [
        "JSONRPC-005"
    ]  # the SDK ends at an array
