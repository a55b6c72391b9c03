"""Every recorded session past everything that watches, cut into pieces of any size, while the ledger takes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from acp_proxy.config import load
from acp_proxy.core.events import Side
from acp_proxy.core.traffic import Traffic
from acp_proxy.core.wire.framing import Framer
from acp_proxy.dispatch import Dispatcher
from acp_proxy.interceptors.summary import Summary
from acp_proxy.ledger import open_ledger
from acp_proxy.log import Log
from acp_proxy.wiring import wired
from harness.recordings import TRANSCRIPTS
from tests.ends import Wire
from tests.replayed_end import recorded

RECORDINGS = sorted(TRANSCRIPTS.glob("*/*.jsonl"))
CONFIG = """
[ledger]
url = "sqlite:///{file}"
on_unavailable = "open"
admission_timeout = "5ms"
[[budget]]
name = "daily"
window = "day"
limit = {{ amount = "1000000", currency = "USD" }}
"""


@pytest.fixture
def ledger_that_takes_nothing(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{file}", journals=())):
        pass  # its tables are there
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield file
        assert other.execute("SELECT count(*) FROM turn").fetchone() == (0,)
        other.execute("ROLLBACK")


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_every_recorded_line_passes_as_it_is(
    recording: Path, ledger_that_takes_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    config = tmp_path / "config.toml"
    config.write_text(CONFIG.format(file=ledger_that_takes_nothing))
    watching = wired(
        load({"config": str(config)}, os.environ),
        ["agent"],
        Log("error", tmp_path / "log"),
        [Summary()],
        traffic=Traffic(),
    )
    to_client, added = await _play(watching, recording)
    watching.finish()
    await watching.aclose()
    assert to_client == []
    assert watching.failures == 0
    for line in added:
        told = json.loads(line)["params"]["update"]["sessionUpdate"] == "usage_update"
        assert told or b"its ledger is out of reach" in line or b"Not counted by budget" in line


async def _play(watching: Dispatcher, recording: Path) -> tuple[list[bytes], list[bytes]]:
    """What the client was not told of what the agent said, and what else it was told."""
    client, agent = Wire(), Wire()
    watching.attach(client, agent)
    framers = {side: Framer(partial(watching.streams, side)) for side in Side}
    dice = random.Random(recording.stem)
    asked = b""
    for line in recorded(recording):
        side = Side.CLIENT if line.sender == "c2a" else Side.AGENT
        for piece in _cut(line.raw, dice):
            for each in framers[side].feed(piece):
                if isinstance(each, bytes):
                    watching.lines(side, each)
                else:
                    watching.part(side, each.data, last=each.last)
        if side is Side.CLIENT:
            asked += line.raw
            async with asyncio.timeout(30):
                while len(agent.data) < len(asked):  # it waits for admission
                    agent.written.clear()
                    await agent.written.wait()
    assert agent.data == asked
    told = iter(client.data.splitlines(keepends=True))
    missing, added = [], []
    for said in (line.raw for line in recorded(recording) if line.sender == "a2c"):
        for got in told:
            if got == said:
                break
            added.append(got)
        else:
            missing.append(said)
    return missing, [*added, *told]


def _cut(data: bytes, dice: random.Random) -> Iterator[bytes]:
    most = max(200, len(data) // 20)
    while data:
        size = dice.randint(1, most)
        yield data[:size]
        data = data[size:]
