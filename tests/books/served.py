"""Databases that released agents wrote before a mock model server, and beside each what that server told the agent.

`databases/AGENT-VERSION/SCENARIO.db` is VACUUMed, without tables that no reader reads, the texts of tools and the paths
of the machine. A line of `SCENARIO.served.jsonl` is a call: `session` is the one of the prompt, also for a subagent's;
what is not `whole` was cut short, of which the agent knows no tokens.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood, databases
from acp_proxy.core.usage import Usage

DATABASES = Path(__file__).parent / "databases"

Reader = Callable[[sqlite3.Connection], Iterator[Call | NotUnderstood]]


@dataclass(frozen=True)
class Served:
    session: str
    kind: str
    model: str
    usage: Usage


def served(recording: Path) -> list[Served]:
    """What the agent was told in full, but for the calls (titles) that it keeps no book of."""
    lines = recording.with_suffix(".served.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    counters = ("input", "cached_read", "cached_write", "output", "thought")
    return [
        Served(row["session"], row["kind"], row["model"], Usage(*(row[name] for name in counters)))
        for row in rows
        if row["whole"] and row["kind"] != "side"
    ]


def all_read(recording: Path, reader: Reader, directory: Path) -> list[Call | NotUnderstood]:
    """From a copy, whose directory has the same files afterwards."""
    path = Path(shutil.copy(recording, directory))
    before = sorted(directory.iterdir())
    with databases.reading(path, directory) as connection:
        found = list(reader(connection))
    assert sorted(directory.iterdir()) == before
    return found


def calls(recording: Path, reader: Reader, directory: Path) -> list[Call]:
    found = all_read(recording, reader, directory)
    assert [other for other in found if isinstance(other, NotUnderstood)] == []
    return [call for call in found if isinstance(call, Call)]


def family(call: Call) -> str:
    """The session of the prompt."""
    return call.parent if call.kind == "subagent" and call.parent is not None else call.session
